//! A program that runs through safe-run: whatever it starts, and wherever that goes, ends with it, and all of it ends with us.

use std::ffi::OsString;
use std::io;
use std::thread;
use std::time::Duration;

use counterproof_safe_run::{Ending, Input, Io, Options, OutputMode, Signals, StartError, Stream, record};
use tokio::net::unix::pipe;
use tokio::sync::mpsc;

use super::agent_process::{Came, Watched};

/// Ends everything at once.
const KILL: u8 = 9;

/// The way to end a program, which ends it when it is dropped.
pub(super) struct Leash(Signals);

impl Drop for Leash {
    fn drop(&mut self) {
        self.0.send(KILL);
    }
}

/// Starts a program that is killed when its leash is dropped, and gives the way to its standard input. What comes from it goes
/// to `sender`.
pub(super) fn start(watched: &Watched, sender: mpsc::Sender<Came>) -> io::Result<(Leash, pipe::Sender)> {
    let (reader, writer) = io::pipe()?;
    let input = pipe::Sender::from_owned_fd(writer.into())?;
    let (signals, received) = Signals::pipe()?;
    let io = Io { input: Input::Descriptor(reader.into()), signals: signals.clone(), received };
    let words = std::iter::once(watched.command.program()).chain(watched.command.arguments());
    let command: Vec<OsString> = words.map(OsString::from).collect();
    let options = Options {
        output: OutputMode::ObserveOnly,
        // What it leaves behind does not hold its answer back.
        drain: Duration::ZERO,
        supervisor: watched.supervisor.clone(),
        ..Options::default()
    };
    let run = move || {
        let ended = run(&command, &options, io, &sender);
        let _ = sender.blocking_send(Came::Ended(ended));
    };
    thread::Builder::new().name("agent".to_owned()).spawn(run)?;
    Ok((Leash(signals), input))
}

fn run(command: &[OsString], options: &Options, io: Io, sender: &mpsc::Sender<Came>) -> io::Result<Ending> {
    let record = record(command, options, io, &mut |stream, _, bytes| {
        let piece = bytes.to_vec();
        // Where nobody takes it any more, the program is being killed.
        let _ = sender.blocking_send(match stream {
            Stream::Stdout => Came::Stdout(piece),
            Stream::Stderr => Came::Stderr(piece),
        });
    });
    record.map(|record| record.ending).map_err(|error| match error {
        StartError::Command { source, .. } | StartError::Setup(source) => source,
        StartError::NoCommand | StartError::NotEntered => io::Error::other(error),
    })
}
