//! One external command of a task: its line is printed before it runs, and its time after it. Output is inherited.

use std::ffi::OsString;
use std::io::{self, Write as _};
use std::process::{Command, Stdio};
use std::time::Instant;

use camino::{Utf8Path, Utf8PathBuf};

#[derive(Debug, thiserror::Error)]
pub(crate) enum Failure {
    #[error("`{0}` failed")]
    Step(String),
    #[error("failed to start `{line}`: {source}")]
    Start { line: String, source: io::Error },
    #[error("failed to read, write or remove `{path}`: {source}")]
    File { path: Utf8PathBuf, source: io::Error },
    #[error("{0}")]
    Interop(String),
    #[error("failed to parse `{path}`: {error}")]
    Syntax { path: Utf8PathBuf, error: syn::Error },
    #[error("failed to parse `{path}`: {error}")]
    Manifest { path: Utf8PathBuf, error: toml::de::Error },
    #[error("import cycles between folders; move the shared part to where both may import it:\n{0}")]
    Cycles(String),
    #[error("words that are not plain, standard English:\n{0}")]
    Language(String),
    #[error("files are read with `counterproof_store::read_file`, which refuses pipes and has limits:\n{0}")]
    Readers(String),
    #[error("lines of documents over 120 columns:\n{0}")]
    Width(String),
    #[error("{0}")]
    Source(String),
    #[error("sample-runs/ is not what `cargo xtask samples` records:\n{0}")]
    Samples(String),
}

/// A command without input, at the root of the workspace unless it has another folder.
pub(crate) struct Step {
    line: String,
    command: Command,
}

impl Step {
    pub(crate) fn cargo<const N: usize>(arguments: [&str; N]) -> Self {
        // Cargo sets this variable to its own path in the programs that it runs.
        let cargo = std::env::var_os("CARGO").unwrap_or_else(|| OsString::from("cargo"));
        let mut command = Command::new(cargo);
        command.args(arguments);
        Self::new(format!("cargo {}", arguments.join(" ")), command)
    }

    /// A program, under the name that the log shows.
    pub(crate) fn new(line: String, mut command: Command) -> Self {
        if command.get_current_dir().is_none() {
            command.current_dir(root());
        }
        // A program that asks a question must fail and not wait.
        command.stdin(Stdio::null());
        Self { line, command }
    }

    pub(crate) fn with(mut self, arguments: &[String]) -> Self {
        for argument in arguments {
            self.line.push(' ');
            self.line.push_str(argument);
        }
        self.command.args(arguments);
        self
    }

    pub(crate) fn env(mut self, name: &'static str, value: &str) -> Self {
        self.command.env(name, value);
        self
    }

    pub(crate) fn run(self) -> Result<(), Failure> {
        let line = self.line.clone();
        match self.code()? {
            Some(0) => Ok(()),
            _ => Err(Failure::Step(line)),
        }
    }

    pub(crate) fn code(mut self) -> Result<Option<i32>, Failure> {
        progress(&format!("==> {}", self.line));
        let start = Instant::now();
        let status = self.command.status().map_err(|source| Failure::Start { line: self.line.clone(), source })?;
        progress(&format!("    {} took {:.1} s", first_words(&self.line), start.elapsed().as_secs_f64()));
        Ok(status.code())
    }

    /// Returns true if the command succeeds. Its output is discarded.
    pub(crate) fn works(mut self) -> bool {
        let status = self.command.stdout(Stdio::null()).stderr(Stdio::null()).status();
        status.is_ok_and(|status| status.success())
    }
}

/// Names a step after its end: steps that run at the same time mix their lines.
fn first_words(line: &str) -> String {
    line.split(' ').take(2).collect::<Vec<_>>().join(" ")
}

pub(crate) fn progress(line: &str) {
    let _ = writeln!(io::stderr(), "{line}");
}

pub(crate) fn root() -> &'static Utf8Path {
    let here = Utf8Path::new(env!("CARGO_MANIFEST_DIR"));
    here.parent().unwrap_or(here)
}
