//! A program that runs through safe-run: whatever it starts, and wherever that goes, ends with it, and all of it ends with us.

use std::ffi::OsString;
use std::io;
use std::thread;
use std::time::Duration;

use counterproof_safe_run::{Ending, Input, Options, Output, Signals, StartError, Stream, Wires, record};
use tokio::net::unix::pipe;
use tokio::sync::mpsc;

use super::{Came, Watched};

/// How many pieces of output wait to be taken, each of one read.
const WAITING: usize = 4;

/// Ends everything at once.
const KILL: u8 = 9;

/// A program while it runs. When this is dropped, the program is killed.
#[derive(Debug)]
pub(super) struct Program {
    came: mpsc::Receiver<Came>,
    signals: Signals,
}

impl Program {
    /// Starts a program, and gives the way to its standard input.
    pub(super) fn start(watched: &Watched) -> io::Result<(Self, pipe::Sender)> {
        let (reader, writer) = io::pipe()?;
        let input = pipe::Sender::from_owned_fd(writer.into())?;
        let (signals, received) = Signals::pipe()?;
        let wires = Wires { input: Input::From(reader.into()), signals: signals.clone(), received };
        let words = std::iter::once(watched.command.program()).chain(watched.command.arguments());
        let command: Vec<OsString> = words.map(OsString::from).collect();
        let options = Options {
            output: Output::Observed,
            // What it leaves behind does not hold its answer back.
            drain: Duration::ZERO,
            supervisor: watched.supervisor.clone(),
            ..Options::default()
        };
        let (sender, came) = mpsc::channel(WAITING);
        let run = move || {
            let ended = run(&command, &options, wires, &sender);
            let _ = sender.blocking_send(Came::Ended(ended));
        };
        thread::Builder::new().name("agent".to_owned()).spawn(run)?;
        Ok((Self { came, signals }, input))
    }

    /// What comes next.
    pub(super) async fn next(&mut self) -> Came {
        let gone = || Came::Ended(Err(io::ErrorKind::BrokenPipe.into()));
        self.came.recv().await.unwrap_or_else(gone)
    }

    /// Ends the program where it has not ended, and waits until nothing is left of it. What it still says is lost.
    pub(super) async fn end(mut self) {
        self.signals.send(KILL);
        while self.came.recv().await.is_some() {}
    }
}

impl Drop for Program {
    fn drop(&mut self) {
        self.signals.send(KILL);
    }
}

fn run(command: &[OsString], options: &Options, wires: Wires, sender: &mpsc::Sender<Came>) -> io::Result<Ending> {
    let record = record(command, options, wires, &mut |stream, _, bytes| {
        let piece = bytes.to_vec();
        // Where nobody takes it any more, the program is being killed.
        let _ = sender.blocking_send(match stream {
            Stream::Stdout => Came::Stdout(piece),
            Stream::Stderr => Came::Stderr(piece),
        });
    });
    record.map(|record| record.ending).map_err(|error| match error {
        StartError::Command { source, .. } | StartError::Setup(source) => source,
        StartError::Nothing | StartError::NotEntered => io::Error::other(error),
    })
}
