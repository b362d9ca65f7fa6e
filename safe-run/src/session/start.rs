//! Starts a command and runs its session, within limits of time and output and with a cancellation.

use std::ffi::OsString;
use std::io::{self, PipeReader};
use std::os::fd::{AsFd, OwnedFd};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

use jiff::Timestamp;
use nix::sys::signal::Signal;
use rustix::fs::Access;

use super::event_loop::{Limits, Phase, Session, after};
use super::io::{Io, Signals, TakenSignals};
use super::streams::{OutputPipe, READ_BYTES};
use super::terminal::{InputRelay, Pty, RawMode, Terminal};
use crate::capture::{Capture, Stream};
use crate::command::{Command, Input, Observer};
use crate::options::{Options, OutputMode};
use crate::record::{Ending, Record, StartError, StopReason};
use crate::supervision::{self, CommandStreams, Placement, ProcessSetup, Supervised};

/// Runs a command to its end and returns its record. Signals that are sent through `io` are forwarded to the command; see also
/// [`Options::owns_process`].
pub fn record(
    command: &[OsString],
    options: &Options,
    io: Io,
    observer: &mut Observer<'_>,
) -> Result<Record, StartError> {
    let taken = if options.owns_process && !command.is_empty() {
        io.signals.take_from_process().map_err(StartError::Setup)?
    } else {
        TakenSignals::none()
    };
    record_after_taking(command, options, io, taken, observer)
}

/// Runs a command as [`record`] does, in a process whose signals were taken before. So the process can have started threads since.
pub fn record_after_taking(
    command: &[OsString],
    options: &Options,
    io: Io,
    taken: TakenSignals,
    observer: &mut Observer<'_>,
) -> Result<Record, StartError> {
    let Io { input, signals: _, received } = io;
    run_session(command, options, SessionInput { input, received, taken, limits: Limits::default() }, observer)
}

pub(super) struct SessionInput {
    pub(super) input: Input,
    pub(super) received: PipeReader,
    pub(super) taken: TakenSignals,
    pub(super) limits: Limits,
}

pub(super) fn run_session(
    command: &[OsString],
    options: &Options,
    SessionInput { input, received, taken, limits }: SessionInput,
    observer: &mut Observer<'_>,
) -> Result<Record, StartError> {
    let program = command.first().ok_or(StartError::NoCommand)?.to_string_lossy().into_owned();
    if options.owns_process {
        supervision::adopt_orphans().map_err(StartError::Setup)?;
    }
    let (started_at, started) = (Timestamp::now(), Instant::now());
    supervision::check_possible(options)?;
    let StartedCommand { supervised, sources, relay } =
        start(command, options, input, taken).map_err(|error| setup_error(options, error))?;
    // Dropped at the end of this function, which restores the terminal on every path.
    let _raw_mode = options.terminal.then(RawMode::enter);
    let mut session = Session {
        options,
        observer: &mut |stream, at, bytes| observer(stream, at, bytes),
        started,
        supervisor: Some(supervised.connection),
        supervisor_process: supervised.process,
        group: None,
        signals: received,
        sources,
        remaining: [None; 2],
        outputs: Stream::ALL.map(|stream| match options.output {
            OutputMode::Forward => OutputPipe::open(stream),
            OutputMode::Capture | OutputMode::ObserveOnly => OutputPipe::closed(stream),
        }),
        buffer: vec![0; READ_BYTES],
        capture: Capture::default(),
        capture_error: None,
        output_errors: Vec::new(),
        terminal: Terminal::default(),
        relay,
        ending: None,
        start_error: None,
        aborted_by: None,
        time_limit: limits.timeout.and_then(after),
        output_left: limits.output,
        stopped: None,
        left_behind: 0,
        phase: Phase::Running,
        deadline: None,
    };
    session.run().map_err(StartError::Setup)?;
    // It has closed its connection or was killed. It is not waited for before, because a command can stop it.
    let _ = session.supervisor_process.wait();
    if let Some(error) = session.start_error {
        return Err(StartError::Command { program, source: io::Error::from_raw_os_error(error) });
    }
    Ok(into_record(session, command, started_at))
}

pub(super) fn setup_error(options: &Options, error: io::Error) -> StartError {
    // The system reports the same error for the program and for the folder, so the folder is checked again.
    let Some(folder) = &options.working_directory else { return StartError::Setup(error) };
    // The slash makes the check fail for a file.
    match rustix::fs::access(folder.join(""), Access::EXEC_OK) {
        Ok(()) => StartError::Setup(error),
        Err(source) => StartError::WorkingDirectory { folder: folder.clone(), source: source.into() },
    }
}

fn into_record(session: Session<'_>, command: &[OsString], started_at: Timestamp) -> Record {
    Record {
        command: command.to_vec(),
        started_at,
        elapsed: session.started.elapsed(),
        // Without a message about the end, the supervisor was killed, and the command with it.
        ending: session.ending.unwrap_or(Ending::Killed(9)),
        aborted_by: session.aborted_by,
        stopped: session.stopped,
        left_behind: session.left_behind,
        capture_error: session.capture_error,
        output_errors: session.output_errors,
        capture: session.capture,
    }
}

struct StartedCommand {
    supervised: Supervised,
    sources: [Option<OwnedFd>; 2],
    relay: Option<InputRelay>,
}

fn start(command: &[OsString], options: &Options, input: Input, taken: TakenSignals) -> io::Result<StartedCommand> {
    let supervise = |placement, streams| {
        let setup = ProcessSetup { placement, blocked: taken.0 };
        supervision::supervise(options, &setup, command, streams)
    };
    if options.terminal {
        let pty = Pty::open()?;
        let streams = CommandStreams {
            stdin: pty.slave.as_fd(),
            stdout: pty.slave.try_clone()?.into(),
            stderr: pty.slave.try_clone()?.into(),
        };
        let relay = InputRelay::new(pty.master.try_clone()?, input);
        let supervised = supervise(Placement::NewSession, streams)?;
        // A terminal merges both streams, so there is no second source. Returning closes our copy of the slave; with it open, the
        // master would never report the end.
        return Ok(StartedCommand { supervised, sources: [Some(pty.master), None], relay: Some(relay) });
    }
    let (stdout, stderr) = (io::pipe()?, io::pipe()?);
    let streams = CommandStreams { stdin: input.as_fd(), stdout: stdout.1.into(), stderr: stderr.1.into() };
    let supervised = supervise(Placement::NewGroup, streams)?;
    Ok(StartedCommand { supervised, sources: [Some(stdout.0.into()), Some(stderr.0.into())], relay: None })
}

impl Command {
    /// Runs the command. When this returns, no process of it is left, and [`Record::stopped`] has the limit that ended it.
    pub fn run(self, observer: &mut Observer<'_>) -> Result<Record, StartError> {
        if self.cancel.is_cancelled() {
            return Err(StartError::Cancelled);
        }
        let (signals, received) = Signals::pipe().map_err(StartError::Setup)?;
        let was_cancelled = Arc::new(AtomicBool::new(false));
        let callback = self.cancel.on_cancel({
            let was_cancelled = Arc::clone(&was_cancelled);
            move || {
                was_cancelled.store(true, Ordering::Relaxed);
                signals.send(Signal::SIGTERM as u8);
            }
        });
        let limits = Limits { timeout: self.timeout, output: self.output_limit };
        let input = SessionInput { input: self.input, received, taken: TakenSignals::none(), limits };
        let mut record = run_session(&self.words, &self.options, input, observer)?;
        drop(callback);
        // The session knows the other limits only, and has recorded the first one.
        let cancelled = was_cancelled.load(Ordering::Relaxed).then_some(StopReason::Cancelled);
        record.stopped = record.stopped.or(cancelled);
        Ok(record)
    }
}
