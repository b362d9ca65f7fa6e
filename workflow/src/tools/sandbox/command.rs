//! A line for `sh -c`, run under safe-run and in a sandbox.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

use camino::Utf8PathBuf;
use counterproof_safe_run::{Cancellation, Command, Input, Observer, Options, OutputMode, Record};

use super::environment::changes;
use super::kind::{Sandbox, SandboxError};

/// A line for `sh -c`, and what it may use.
#[derive(Debug)]
pub struct SandboxedCommand {
    pub line: String,
    /// The working directory, and the only folder besides `private` that the command may write.
    pub workspace: Utf8PathBuf,
    /// A folder for temporary files, outside of the workspace. It must exist.
    pub private: Utf8PathBuf,
    /// Further files and folders that the command may read, where the sandbox would hide them.
    pub readable: Vec<Utf8PathBuf>,
    /// Changes of the environment, after secrets and variables of git were removed.
    pub environment: BTreeMap<OsString, Option<OsString>>,
    pub input: Input,
    /// Ports that the command may connect to over TCP. With bubblewrap, any port opens the whole network.
    pub tcp_ports: Vec<u16>,
    pub timeout: Option<Duration>,
    /// The most bytes of both streams together.
    pub output_limit: Option<u64>,
    /// How long the command may run after it was asked to end, before it is killed.
    pub grace: Duration,
    /// The program that supervises the command and starts the sandbox. It must call [`enter`](super::enter) first in `main`.
    /// `None` is this program.
    pub supervisor: Option<PathBuf>,
}

impl SandboxedCommand {
    /// Runs the command to its end. The record has no output: the observer gets it. No process of the command is left.
    pub fn run(
        self,
        sandbox: Sandbox,
        cancel: &Cancellation,
        observer: &mut Observer<'_>,
    ) -> Result<Record, SandboxError> {
        let mut words = self.sandbox_words(sandbox)?;
        words.extend(["sh", "-c", &self.line].map(OsString::from));
        let command = Command {
            options: Options {
                output: OutputMode::ObserveOnly,
                grace: self.grace,
                supervisor: self.supervisor,
                working_directory: Some(self.workspace.into()),
                environment: changes(std::env::vars_os(), &self.private, &self.environment),
                ..Options::default()
            },
            timeout: self.timeout,
            output_limit: self.output_limit,
            cancel: cancel.clone(),
            words,
            input: self.input,
        };
        Ok(command.run(observer)?)
    }

    /// Returns the words before the command itself, which set up the sandbox.
    fn sandbox_words(&self, sandbox: Sandbox) -> Result<Vec<OsString>, SandboxError> {
        match sandbox {
            Sandbox::None => Ok(Vec::new()),
            #[cfg(target_os = "linux")]
            Sandbox::Landlock => super::launcher::words(self),
            #[cfg(target_os = "linux")]
            Sandbox::Bwrap => Ok(super::bubblewrap::words(self)),
            #[cfg(not(target_os = "linux"))]
            _ => Err(SandboxError::Unavailable(sandbox)),
        }
    }
}
