//! Runs a command to its end.

use std::io;

use counterproof_safe_run::{Cancellation, Command, Input, Options, Record, StartError, Stream};

use super::{FinishedCommand, ShellCommand};

/// A command that could not be run, or whose record is not complete.
#[derive(Debug, thiserror::Error)]
pub enum ProcessError {
    /// It was cancelled before the start.
    #[error("cancelled before the command was started")]
    Cancelled,
    /// The command could not be started.
    #[error("cannot run the command `{line}`")]
    Start {
        line: String,
        /// The error of safe-run.
        source: StartError,
    },
    /// The input could not be prepared, or the output could not be captured.
    #[error("cannot store the input or the output of the command `{line}`")]
    Storage {
        line: String,
        /// The error of the operating system.
        source: io::Error,
    },
}

impl ProcessError {
    /// The stable code.
    pub const fn code(&self) -> &'static str {
        match self {
            ProcessError::Cancelled => "cancelled",
            ProcessError::Start { .. } => "command_not_started",
            ProcessError::Storage { .. } => "storage_error",
        }
    }
}

/// Runs a command until it ends, its limits are exceeded, or it is cancelled. No process of it is left then.
pub fn run(command: &ShellCommand, cancellation: &Cancellation) -> Result<FinishedCommand, ProcessError> {
    let storage = |source| ProcessError::Storage { line: command.line.clone(), source };
    let supervised = Command {
        options: Options {
            grace: command.grace,
            supervisor: command.supervisor.clone(),
            working_directory: Some(command.folder.clone().into_std_path_buf()),
            environment: command.environment.clone(),
            ..Options::default()
        },
        input: Input::bytes(&command.input).map_err(storage)?,
        timeout: Some(command.timeout),
        output_limit: Some(command.output_limit),
        cancel: cancellation.clone(),
        ..Command::new(["sh", "-c", &command.line])
    };
    match supervised.run(&mut |_, _, _| {}) {
        Ok(record) => finish(record, command).map_err(storage),
        Err(StartError::Cancelled) => Err(ProcessError::Cancelled),
        Err(source) => Err(ProcessError::Start { line: command.line.clone(), source }),
    }
}

fn finish(mut record: Record, command: &ShellCommand) -> io::Result<FinishedCommand> {
    // A check must not judge output that is incomplete because the disk was full.
    if let Some(error) = record.capture_error.take() {
        return Err(error);
    }
    Ok(FinishedCommand {
        started_at: record.started_at,
        duration: record.elapsed,
        ending: record.ending,
        stopped: record.stopped,
        stdout: record.head(Stream::Stdout, command.stdout_limit)?,
        stderr: record.head(Stream::Stderr, command.stderr_limit)?,
        record,
    })
}
