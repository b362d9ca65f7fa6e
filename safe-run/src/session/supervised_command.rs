//! A command under the same supervision as a recorded one, whose streams belong to the caller.

use std::ffi::OsString;
use std::io::{self, PipeReader, PipeWriter};
use std::process::Child;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec};
use rustix::process::{Pid, Signal};

use super::io::TakenSignals;
use super::start::setup_error;
use crate::options::Options;
use crate::record::{Ending, StartError};
use crate::supervision::{self, CommandStreams, Connection, KILL_TIMEOUT, Placement, ProcessSetup, Status, Supervised};

/// A supervised command. The caller reads and writes its streams; nothing is recorded.
///
/// When this value is dropped, or when this process dies, every process of the command is killed.
#[derive(Debug)]
pub struct SupervisedCommand {
    signals: CommandSignals,
    /// Closed when [`CommandSignals::kill`] was called.
    killed: PipeReader,
    supervisor: Child,
    group: Option<Pid>,
    owns_process: bool,
}

/// Sends signals to a supervised command, from any thread.
#[derive(Debug, Clone)]
pub struct CommandSignals {
    connection: Arc<Connection>,
    /// Wakes [`SupervisedCommand::wait`] when it is dropped.
    kill: Arc<Mutex<Option<PipeWriter>>>,
}

impl CommandSignals {
    /// Sends a signal to the process group of the command: 15 for TERM, for example.
    pub fn send(&self, signal: i32) {
        // A write fails only if the supervisor is gone, and then the command has ended, or if the command has stopped it.
        let _ = self.connection.send_signal(signal);
    }

    /// Kills every process of the command. [`SupervisedCommand::wait`] then returns within some seconds.
    pub fn kill(&self) {
        self.connection.finish();
        self.kill.lock().unwrap_or_else(PoisonError::into_inner).take();
    }
}

impl SupervisedCommand {
    /// Starts a command. Of the options, only those of the process apply: supervisor, working directory, environment and
    /// [`Options::owns_process`].
    ///
    /// `taken` are the signals that [`Signals::take_from_process`](super::Signals::take_from_process) has blocked: the command must receive them.
    pub fn start(
        command: &[OsString],
        options: &Options,
        streams: CommandStreams<'_>,
        taken: &TakenSignals,
    ) -> Result<Self, StartError> {
        // Before anything is changed in this process.
        let program = command.first().ok_or(StartError::NoCommand)?.to_string_lossy().into_owned();
        supervision::check_possible(options)?;
        if options.owns_process {
            supervision::adopt_orphans().map_err(StartError::Setup)?;
        }
        let setup = ProcessSetup { placement: Placement::NewGroup, blocked: taken.0 };
        let Supervised { connection, mut process } =
            supervision::supervise(options, &setup, command, streams).map_err(|error| setup_error(options, error))?;
        let (killed, kill) = io::pipe().map_err(StartError::Setup)?;
        match connection.receive() {
            Some(Status::Started(group)) => Ok(Self {
                signals: CommandSignals { connection: Arc::new(connection), kill: Arc::new(Mutex::new(Some(kill))) },
                killed,
                supervisor: process,
                group: Pid::from_raw(group),
                owns_process: options.owns_process,
            }),
            Some(Status::NotStarted(error)) => {
                let _ = process.wait();
                Err(StartError::Command { program, source: io::Error::from_raw_os_error(error) })
            }
            _ => {
                let _ = process.wait();
                Err(StartError::Setup(io::ErrorKind::BrokenPipe.into()))
            }
        }
    }

    pub fn signals(&self) -> CommandSignals {
        self.signals.clone()
    }

    /// Waits until the command has ended. Processes that it started may still run until [`SupervisedCommand::finish`].
    pub fn wait(&self) -> Ending {
        let mut end = None;
        loop {
            match self.receive(&mut end) {
                Some(Status::Exited(code)) => return Ending::Exited(code),
                Some(Status::Killed(signal)) => return Ending::Killed(signal),
                Some(_) => {}
                None => {
                    // The supervisor was killed, and the system killed the command with it.
                    if let Some(group) = self.group {
                        let _ = rustix::process::kill_process_group(group, Signal::KILL);
                    }
                    return Ending::Killed(Signal::KILL.as_raw());
                }
            }
        }
    }

    /// Kills every process that is left. Returns their number, without the command itself.
    pub fn finish(mut self) -> u32 {
        // The supervisor also notices the closed connection, but only when the last clone is gone.
        self.signals.kill();
        let (mut left_behind, mut end) = (0, None);
        while let Some(status) = self.receive(&mut end) {
            if let Status::LeftBehind(count) = status {
                left_behind = count.unsigned_abs();
            }
        }
        let _ = self.supervisor.wait();
        if self.owns_process {
            // Only if the supervisor was killed before are there processes that this process has adopted.
            left_behind += supervision::kill_descendants(self.group).unsigned_abs();
        }
        left_behind
    }

    /// Receives the next status; `None` if the supervisor is gone. `end` is set when the command is killed: a supervisor that has not
    /// finished by then is killed.
    fn receive(&self, end: &mut Option<Instant>) -> Option<Status> {
        let connection = &*self.signals.connection;
        loop {
            let mut polled = vec![PollFd::new(connection, PollFlags::IN)];
            if end.is_none() {
                polled.push(PollFd::new(&self.killed, PollFlags::IN));
            }
            let left = end.map(|end| end.saturating_duration_since(Instant::now()) + Duration::from_millis(1));
            let left = left.and_then(|left| Timespec::try_from(left).ok());
            let _ = rustix::event::poll(&mut polled, left.as_ref());
            let is_ready = |index: usize| polled.get(index).is_some_and(|polled| !polled.revents().is_empty());
            if is_ready(0) {
                return connection.receive();
            } else if is_ready(1) {
                *end = Some(Instant::now() + KILL_TIMEOUT);
            } else if end.is_some_and(|end| end <= Instant::now()) {
                supervision::kill_tree(Pid::from_child(&self.supervisor), self.group);
                return None;
            }
        }
    }
}

impl Drop for SupervisedCommand {
    fn drop(&mut self) {
        self.signals.kill();
    }
}
