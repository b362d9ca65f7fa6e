//! One command from its start to its end: one thread waits for both of its streams, for signals, and for what the supervisor
//! says, and keeps and passes on what comes.

mod passage;
mod pty;
mod run;
mod signals;
mod terminal;
mod wait;

use std::ffi::OsString;
use std::io::PipeReader;
use std::os::fd::{AsFd as _, OwnedFd};
use std::time::{Duration, Instant};

use jiff::Timestamp;
use nix::sys::signal::SigSet;
use rustix::process::Pid;

use crate::options::Options;
use crate::record::{Ending, Record, StartError};
use crate::stage::{self, Control, Place, Placement, Streams, Supervised};
use crate::tape::{Stream, Tape};
use passage::Passage;
use pty::{Pty, Raw};
use terminal::Terminal;

pub use signals::Signals;

/// Gets what comes from a command while it runs: the stream, the time since the start, and the bytes of one read.
pub type Observer<'a> = dyn FnMut(Stream, Duration, &[u8]) + 'a;

/// A command while it runs.
struct Session<'a> {
    options: &'a Options,
    observer: &'a mut Observer<'a>,
    started: Instant,
    /// `None` once the supervisor is gone.
    control: Option<Control>,
    group: Option<Pid>,
    signals: PipeReader,
    sources: [Option<OwnedFd>; 2],
    /// How many bytes of each are still read, once the time for them is over.
    owed: [Option<u64>; 2],
    passages: [Passage; 2],
    /// The buffer into which everything is read.
    buffer: Vec<u8>,
    tape: Tape,
    lost: Option<std::io::Error>,
    terminal: Terminal,
    input: Option<wait::Input>,
    ending: Option<Ending>,
    not_started: Option<i32>,
    aborted_by: Option<i32>,
    left_behind: u32,
    /// When patience ends: with a command that was told to end, with those who hold its streams, with the supervisor.
    deadline: Option<Instant>,
    is_finishing: bool,
}

/// Runs a command to its end. Signals put into `signals` are passed on to it; see also [`Options::owns_process`].
pub fn record(
    command: &[OsString],
    options: &Options,
    (signals, received): (&Signals, PipeReader),
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
    let (Supervised { control, mut process }, sources, input) =
        start(command, options, blocked).map_err(StartError::Setup)?;
    let passage = |stream| if options.is_live { Passage::open(stream) } else { Passage::closed(stream) };
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
        terminal: Terminal::default(),
        input,
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
        tape: session.tape,
    })
}

type Started = (Supervised, [Option<OwnedFd>; 2], Option<wait::Input>);

fn start(command: &[OsString], options: &Options, blocked: SigSet) -> std::io::Result<Started> {
    if options.terminal {
        let pty = Pty::open()?;
        let streams = Streams {
            stdin: pty.slave.as_fd(),
            stdout: pty.slave.try_clone()?.into(),
            stderr: pty.slave.try_clone()?.into(),
        };
        let input = wait::Input::new(pty.master.try_clone()?);
        let supervised = stage::supervise(&Place { placement: Placement::Terminal, blocked }, command, streams)?;
        return Ok((supervised, [Some(pty.master), None], Some(input)));
    }
    let (stdout, stderr) = (std::io::pipe()?, std::io::pipe()?);
    let streams = Streams { stdin: rustix::stdio::stdin(), stdout: stdout.1.into(), stderr: stderr.1.into() };
    let supervised = stage::supervise(&Place { placement: Placement::Group, blocked }, command, streams)?;
    Ok((supervised, [Some(stdout.0.into()), Some(stderr.0.into())], None))
}
