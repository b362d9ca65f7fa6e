//! A command under the same supervision as a recorded one, whose streams belong to the caller.

use std::ffi::OsString;
use std::io;
use std::process::Child;
use std::sync::Arc;

use rustix::process::{Pid, Signal};

use super::io::TakenSignals;
use super::start::setup_error;
use crate::options::Options;
use crate::record::{Ending, StartError};
use crate::supervision::{self, CommandStreams, Connection, Placement, ProcessSetup, Status, Supervised};

/// A supervised command. The caller reads and writes its streams; nothing is recorded.
///
/// When this value is dropped, or when this process dies, every process of the command is killed.
#[derive(Debug)]
pub struct SupervisedCommand {
    connection: Arc<Connection>,
    supervisor: Child,
    group: Option<Pid>,
    owns_process: bool,
}

/// Sends signals to a supervised command, from any thread.
#[derive(Debug, Clone)]
pub struct CommandSignals(Arc<Connection>);

impl CommandSignals {
    /// Sends a signal to the process group of the command: 15 for TERM, for example.
    pub fn send(&self, signal: i32) {
        // A write fails only if the supervisor is gone, and then the command has ended.
        let _ = self.0.send_signal(signal);
    }

    pub fn kill(&self) {
        self.0.finish();
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
        match connection.receive() {
            Some(Status::Started(group)) => Ok(Self {
                connection: Arc::new(connection),
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
        CommandSignals(self.connection.clone())
    }

    /// Waits until the command has ended. Processes that it started may still run until [`SupervisedCommand::finish`].
    pub fn wait(&self) -> Ending {
        loop {
            match self.connection.receive() {
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
        self.connection.finish();
        let mut left_behind = 0;
        while let Some(status) = self.connection.receive() {
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
}

impl Drop for SupervisedCommand {
    fn drop(&mut self) {
        self.connection.finish();
    }
}
