//! Runs a command to its end.

use std::ffi::OsString;
use std::fs::File;
use std::io::{self, Seek as _, Write as _};
use std::thread;
use std::time::Instant;

use counterproof_safe_run::{Input, Io, Options, Record, Signals, StartError, Stream, record};

use super::watchdog::{OutputMeter, Watchdog};
use super::{Cancellation, FinishedCommand, ShellCommand, StopReason};

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
    if cancellation.is_cancelled() {
        return Err(ProcessError::Cancelled);
    }
    let storage = |source| ProcessError::Storage { line: command.line.clone(), source };
    let start = |source| ProcessError::Start { line: command.line.clone(), source };
    let input = open_input(&command.input).map_err(storage)?;
    let (signals, received) = Signals::pipe().map_err(storage)?;
    let watchdog = Watchdog::new(cancellation, &signals, Instant::now().checked_add(command.timeout));
    let mut meter = OutputMeter::new(&signals, command.output_limit);
    let (recorded, stopped) = thread::scope(|scope| {
        let watching = thread::Builder::new().name("watchdog".to_owned()).spawn_scoped(scope, || watchdog.watch());
        let watching = watching.map_err(StartError::Setup)?;
        let running = watchdog.guard();
        let io = Io { input: Input::Descriptor(input.into()), signals: signals.clone(), received };
        let recorded =
            record(&words(&command.line), &options(command), io, &mut |_, _, bytes| meter.count(bytes.len()));
        drop(running);
        let stopped = watching.join().unwrap_or_else(|payload| std::panic::resume_unwind(payload));
        Ok((recorded?, stopped))
    })
    .map_err(start)?;
    let stopped = if meter.is_exceeded() { Some(StopReason::OutputTooLarge) } else { stopped };
    finish(recorded, stopped, command).map_err(storage)
}

fn words(line: &str) -> [OsString; 3] {
    ["sh".into(), "-c".into(), line.into()]
}

fn options(command: &ShellCommand) -> Options {
    Options {
        grace: command.grace,
        supervisor: command.supervisor.clone(),
        working_directory: Some(command.folder.clone().into_std_path_buf()),
        environment: command.environment.clone(),
        ..Options::default()
    }
}

/// Opens the standard input: a file without a name and not a pipe, so that no command waits for a writer and no writer for a
/// command.
fn open_input(input: &[u8]) -> io::Result<File> {
    let mut file = tempfile::tempfile()?;
    file.write_all(input)?;
    file.rewind()?;
    Ok(file)
}

fn finish(record: Record, stopped: Option<StopReason>, command: &ShellCommand) -> io::Result<FinishedCommand> {
    let mut record = record;
    // A check must not judge output that is incomplete because the disk was full.
    if let Some(error) = record.capture_error.take() {
        return Err(error);
    }
    Ok(FinishedCommand {
        started_at: record.started_at,
        duration: record.elapsed,
        ending: record.ending,
        stopped,
        stdout: record.head(Stream::Stdout, command.stdout_limit)?,
        stderr: record.head(Stream::Stderr, command.stderr_limit)?,
        record,
    })
}
