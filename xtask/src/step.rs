//! One command that is run on the way: shown before, timed after. Its output goes where ours goes.

use std::ffi::OsString;
use std::io::{self, Write as _};
use std::process::{Command, Stdio};
use std::time::Instant;

use camino::{Utf8Path, Utf8PathBuf};

/// Why a task did not get to its end.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Failure {
    /// A command ended badly.
    #[error("`{0}` failed")]
    Step(String),
    /// A command could not be started.
    #[error("failed to start `{line}`: {source}")]
    Start { line: String, source: io::Error },
    /// A file or folder could not be read, written or removed.
    #[error("failed to read, write or remove `{path}`: {source}")]
    File { path: Utf8PathBuf, source: io::Error },
    /// What is to be measured does not run as it should.
    #[error("failed to measure `{path}`: {source}")]
    Measure { path: Utf8PathBuf, source: io::Error },
    /// A server of somebody else does not do what it should.
    #[error("{0}")]
    Interop(String),
    /// What is checked in is not what would be recorded.
    #[error("sample-runs/ is not what `cargo xtask samples` records:\n{0}")]
    Samples(String),
}

/// A command to be run at the root of the workspace.
pub(crate) struct Step {
    arguments: Vec<String>,
    environment: Vec<(&'static str, &'static str)>,
}

impl Step {
    /// A cargo command.
    pub(crate) fn cargo<const N: usize>(arguments: [&str; N]) -> Self {
        Self { arguments: arguments.map(str::to_owned).to_vec(), environment: Vec::new() }
    }

    /// Adds arguments.
    pub(crate) fn with(mut self, arguments: &[String]) -> Self {
        self.arguments.extend_from_slice(arguments);
        self
    }

    /// Sets an environment variable.
    pub(crate) fn env(mut self, name: &'static str, value: &'static str) -> Self {
        self.environment.push((name, value));
        self
    }

    /// Runs the command and waits for it.
    pub(crate) fn run(self) -> Result<(), Failure> {
        let line = format!("cargo {}", self.arguments.join(" "));
        say(&format!("==> {line}"));
        let start = Instant::now();
        let status = self.command().status().map_err(|source| Failure::Start { line: line.clone(), source })?;
        if !status.success() {
            return Err(Failure::Step(line));
        }
        say(&format!("    done in {:.1} s", start.elapsed().as_secs_f64()));
        Ok(())
    }

    /// True where the command can be run; its output is not shown.
    pub(crate) fn works(self) -> bool {
        let status = self.command().stdout(Stdio::null()).stderr(Stdio::null()).status();
        status.is_ok_and(|status| status.success())
    }

    fn command(&self) -> Command {
        // Cargo tells the programs that it runs where it is itself.
        let cargo = std::env::var_os("CARGO").unwrap_or_else(|| OsString::from("cargo"));
        let mut command = Command::new(cargo);
        command.args(&self.arguments).envs(self.environment.iter().copied());
        command.current_dir(root()).stdin(Stdio::null());
        command
    }
}

/// Says what happens, in the order in which it happens.
pub(crate) fn say(line: &str) {
    let _ = writeln!(io::stderr(), "{line}");
}

/// The root of the workspace.
pub(crate) fn root() -> &'static Utf8Path {
    let here = Utf8Path::new(env!("CARGO_MANIFEST_DIR"));
    here.parent().unwrap_or(here)
}
