//! A program supervised by safe-run: all its descendants end when it ends, and all of them end when this process ends.

use std::ffi::OsString;
use std::io;
use std::path::Path;
use std::thread;
use std::time::Duration;

use counterproof_safe_run::{Ending, Input, Io, Options, OutputMode, Signals, StartError, Stream, record};
use tokio::net::unix::pipe;
use tokio::sync::mpsc;

use super::run_program::{AgentProgram, ProcessEvent};

/// The signal number of SIGKILL.
const KILL: u8 = 9;

/// The pipe to the standard input of a program.
pub(crate) type ProgramInput = pipe::Sender;

/// Kills the program when it is dropped.
pub(super) struct KillGuard(Signals);

impl Drop for KillGuard {
    fn drop(&mut self) {
        self.0.send(KILL);
    }
}

/// Starts the program, and sends its events to `sender`. Returns the guard that kills it, and the pipe to its standard input.
pub(super) fn start(
    program: &AgentProgram,
    sender: mpsc::Sender<ProcessEvent>,
) -> io::Result<(KillGuard, ProgramInput)> {
    let (reader, writer) = io::pipe()?;
    let input = pipe::Sender::from_owned_fd(writer.into())?;
    let (signals, received) = Signals::pipe()?;
    let io = Io { input: Input::Descriptor(reader.into()), signals: signals.clone(), received };
    let command = program.command.words();
    let options = Options {
        output: OutputMode::ObserveOnly,
        // Background processes of the program must not delay its answer.
        drain: Duration::ZERO,
        supervisor: program.supervisor.clone(),
        working_directory: program.command.folder().map(Path::to_owned),
        environment: program.command.variables().to_options(),
        ..Options::default()
    };
    let run = move || {
        let ending = run(&command, &options, io, &sender);
        let _ = sender.blocking_send(ProcessEvent::Ended(ending));
    };
    // A separate thread and not the blocking pool: it lives as long as the program, and the pool is bounded.
    thread::Builder::new().name("agent".to_owned()).spawn(run)?;
    Ok((KillGuard(signals), input))
}

fn run(command: &[OsString], options: &Options, io: Io, sender: &mpsc::Sender<ProcessEvent>) -> io::Result<Ending> {
    let record = record(command, options, io, &mut |stream, _, bytes| {
        let piece = bytes.to_vec();
        // The receiver is dropped only after the program was killed.
        let _ = sender.blocking_send(match stream {
            Stream::Stdout => ProcessEvent::Stdout(piece),
            Stream::Stderr => ProcessEvent::Stderr(piece),
        });
    });
    record.map(|record| record.ending).map_err(|error| match error {
        StartError::Command { source, .. }
        | StartError::WorkingDirectory { source, .. }
        | StartError::Setup(source) => source,
        StartError::NoCommand | StartError::Cancelled | StartError::NotEntered | StartError::NoProc => {
            io::Error::other(error)
        }
    })
}
