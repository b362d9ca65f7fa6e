//! One command from its start to its end: one thread waits for both of its streams, for signals, and for what the supervisor
//! says, and keeps and passes on what comes.

use std::ffi::OsString;
use std::io::PipeReader;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::time::{Duration, Instant};

use jiff::Timestamp;
use nix::sys::signal::SigSet;
use rustix::process::Pid;

use super::output_pipe::Passage;
use super::pty::{Pty, Raw};
use super::terminal::Terminal;
use crate::capture::{Stream, Tape};
use crate::options::{Options, Output};
use crate::record::{Ending, Record, StartError};
use crate::supervision::{self as stage, Control, Place, Placement, Streams, Supervised};

use super::{Signals, poll as wait};

/// Gets what comes from a command while it runs: the stream, the time since the start, and the bytes of one read.
pub type Observer<'a> = dyn FnMut(Stream, Duration, &[u8]) + 'a;

/// What a command reads.
#[derive(Debug)]
pub enum Input {
    /// The standard input of this process.
    Ours,
    /// This, which the command alone holds once it runs.
    From(OwnedFd),
}

impl AsFd for Input {
    fn as_fd(&self) -> BorrowedFd<'_> {
        match self {
            Input::Ours => rustix::stdio::stdin(),
            Input::From(descriptor) => descriptor.as_fd(),
        }
    }
}

/// What a command is connected to besides its two streams.
#[derive(Debug)]
pub struct Wires {
    /// What it reads.
    pub input: Input,
    /// Where signals for it are put in.
    pub signals: Signals,
    /// Where they come out.
    pub received: PipeReader,
}

/// A command while it runs.
pub(super) struct Session<'a> {
    pub(super) options: &'a Options,
    pub(super) observer: &'a mut Observer<'a>,
    pub(super) started: Instant,
    /// `None` once the supervisor is gone.
    pub(super) control: Option<Control>,
    pub(super) group: Option<Pid>,
    pub(super) signals: PipeReader,
    pub(super) sources: [Option<OwnedFd>; 2],
    /// How many bytes of each are still read, once the time for them is over.
    pub(super) owed: [Option<u64>; 2],
    pub(super) passages: [Passage; 2],
    /// The buffer into which everything is read.
    pub(super) buffer: Vec<u8>,
    pub(super) tape: Tape,
    pub(super) lost: Option<std::io::Error>,
    pub(super) unwritten: Vec<(Stream, std::io::Error)>,
    pub(super) terminal: Terminal,
    pub(super) relay: Option<wait::Relay>,
    pub(super) ending: Option<Ending>,
    pub(super) not_started: Option<i32>,
    pub(super) aborted_by: Option<i32>,
    pub(super) left_behind: u32,
    /// When patience ends: with a command that was told to end, with those who hold its streams, with the supervisor.
    pub(super) deadline: Option<Instant>,
    pub(super) is_finishing: bool,
}

/// Runs a command to its end. Signals put in are passed on to it; see also [`Options::owns_process`].
pub fn record(
    command: &[OsString],
    options: &Options,
    Wires { input, signals, received }: Wires,
    observer: &mut Observer<'_>,
) -> Result<Record, StartError> {
    let program = command.first().ok_or(StartError::Nothing)?.to_string_lossy().into_owned();
    let mut blocked = SigSet::empty();
    if options.owns_process {
        blocked = signals.take_from_process().map_err(StartError::Setup)?;
        #[cfg(target_os = "linux")]
        rustix::process::set_child_subreaper(Pid::from_raw(1)).map_err(|error| StartError::Setup(error.into()))?;
    }
    let (started_at, started) = (Timestamp::now(), Instant::now());
    if options.supervisor.is_none() && !stage::is_entered() {
        return Err(StartError::NotEntered);
    }
    let (Supervised { control, mut process }, sources, relay) =
        start(command, options, input, blocked).map_err(StartError::Setup)?;
    let passage = |stream| match options.output {
        Output::Live => Passage::open(stream),
        Output::Kept | Output::Observed => Passage::closed(stream),
    };
    let _raw = options.terminal.then(Raw::enter);
    let mut session = Session {
        options,
        observer: &mut |stream, at, bytes| observer(stream, at, bytes),
        started,
        control: Some(control),
        group: None,
        signals: received,
        sources,
        owed: [None; 2],
        passages: Stream::ALL.map(passage),
        buffer: vec![0; wait::READ],
        tape: Tape::default(),
        lost: None,
        unwritten: Vec::new(),
        terminal: Terminal::default(),
        relay,
        ending: None,
        not_started: None,
        aborted_by: None,
        left_behind: 0,
        deadline: None,
        is_finishing: false,
    };
    session.run().map_err(StartError::Setup)?;
    if session.is_finishing && session.control.is_some() {
        // It waits for a process that even KILL does not end. That one is left to the system.
        let _ = process.kill();
    } else {
        let _ = process.wait();
    }
    if let Some(error) = session.not_started {
        return Err(StartError::Command { program, source: std::io::Error::from_raw_os_error(error) });
    }
    Ok(Record {
        command: command.to_vec(),
        started_at,
        elapsed: started.elapsed(),
        // Without a word from the supervisor there is nothing but its own death.
        ending: session.ending.unwrap_or(Ending::Killed(9)),
        aborted_by: session.aborted_by,
        left_behind: session.left_behind,
        lost: session.lost,
        unwritten: session.unwritten,
        tape: session.tape,
    })
}

type Started = (Supervised, [Option<OwnedFd>; 2], Option<wait::Relay>);

fn start(command: &[OsString], options: &Options, input: Input, blocked: SigSet) -> std::io::Result<Started> {
    let supervise = |placement, streams| {
        stage::supervise(options.supervisor.as_deref(), &Place { placement, blocked }, command, streams)
    };
    if options.terminal {
        let pty = Pty::open()?;
        let streams = Streams {
            stdin: pty.slave.as_fd(),
            stdout: pty.slave.try_clone()?.into(),
            stderr: pty.slave.try_clone()?.into(),
        };
        let relay = wait::Relay::new(pty.master.try_clone()?, input);
        return Ok((supervise(Placement::Terminal, streams)?, [Some(pty.master), None], Some(relay)));
    }
    let (stdout, stderr) = (std::io::pipe()?, std::io::pipe()?);
    let streams = Streams { stdin: input.as_fd(), stdout: stdout.1.into(), stderr: stderr.1.into() };
    Ok((supervise(Placement::Group, streams)?, [Some(stdout.0.into()), Some(stderr.0.into())], None))
}
