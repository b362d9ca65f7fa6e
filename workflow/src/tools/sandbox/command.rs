//! A line for `sh -c`, run under safe-run and in a sandbox.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

use camino::Utf8PathBuf;
use counterproof_safe_run::{Cancellation, Command, Input, Options, OutputMode, Record, Stream};

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
    /// As in safe-run's options.
    pub supervisor: Option<PathBuf>,
}

/// Receives the output of a command while it runs, on any thread.
pub type OutputObserver<'a> = dyn FnMut(Stream, Duration, &[u8]) + Send + 'a;

impl SandboxedCommand {
    /// Runs the command to its end. The record has no output: the observer gets it. No process of the command is left.
    pub fn run(
        self,
        sandbox: Sandbox,
        cancel: &Cancellation,
        observer: &mut OutputObserver<'_>,
    ) -> Result<Record, SandboxError> {
        let mut words: Vec<OsString> = Vec::new();
        #[cfg(target_os = "linux")]
        if sandbox == Sandbox::Bwrap {
            words = super::bubblewrap::words(&self);
        }
        words.extend(["sh", "-c", &self.line].map(OsString::from));
        let command = Command {
            options: Options {
                // The thread that runs a command under Landlock cannot create the files of a capture.
                output: OutputMode::ObserveOnly,
                grace: self.grace,
                supervisor: self.supervisor.clone(),
                working_directory: Some(self.workspace.clone().into()),
                environment: changes(std::env::vars_os(), &self.private, &self.environment),
                ..Options::default()
            },
            timeout: self.timeout,
            output_limit: self.output_limit,
            cancel: cancel.clone(),
            words,
            input: Input::Inherited,
        };
        match sandbox {
            #[cfg(target_os = "linux")]
            Sandbox::Landlock => super::landlock::run(self, command, observer),
            _ => Ok(Command { input: self.input, ..command }.run(&mut |stream, at, bytes| observer(stream, at, bytes))?),
        }
    }
}
