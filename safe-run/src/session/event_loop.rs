//! The state of a running command, and the loop that reacts to its streams, the supervisor, signals, the terminal and deadlines.
//!
//! ```text
//! Running ── command ended and streams closed, or grace or drain time over ─▶ Finishing: the supervisor kills what is left
//! ```

use std::io::{self, PipeReader, Read as _};
use std::os::fd::OwnedFd;
use std::process::Child;
use std::time::{Duration, Instant};

use nix::sys::signal::Signal as SignalNumber;
use rustix::event::{PollFd, PollFlags, Timespec};
use rustix::io::Errno;
use rustix::process::{Pid, Signal};

use super::streams::OutputPipe;
use super::streams::PIPE_BYTES;
use super::terminal::InputRelay;
use super::terminal::{self, Terminal};
use crate::capture::{Capture, Stream};
use crate::command::Observer;
use crate::options::Options;
use crate::record::{Ending, StopReason};
use crate::supervision::{self, Connection, KILL_TIMEOUT, NOTIFYING, Status};

impl Session<'_> {
    pub(super) fn run(&mut self) -> io::Result<()> {
        while !self.is_over() {
            let ready = self.poll()?;
            for ready in &ready {
                match *ready {
                    Ready::Source(stream) => self.read(stream),
                    Ready::Output(stream) => self.write_pending(stream),
                    Ready::Supervisor => self.receive_status(),
                    Ready::Signals => self.receive_signal(),
                    Ready::Input | Ready::InputRoom => self.relay_input(*ready),
                }
            }
            if self.ending.is_some() && self.is_drained() && !self.is_finishing() {
                self.finish();
            }
            if self.time_limit.is_some_and(|limit| limit <= Instant::now()) {
                self.on_time_limit();
            }
            // The deadline applies even while streams are readable: a command that prints without end must not extend it.
            // Only pending messages of the supervisor are read first, because they hold the ending.
            let is_expired = self.deadline.is_some_and(|deadline| deadline <= Instant::now());
            if is_expired && !(self.is_finishing() && ready.contains(&Ready::Supervisor)) {
                self.on_deadline(&ready);
            }
        }
        self.raise_terminal_signal();
        Ok(())
    }

    fn is_over(&self) -> bool {
        let is_forwarded = !self.outputs.iter().any(super::streams::OutputPipe::is_pending);
        self.supervisor.is_none() && self.is_drained() && is_forwarded || self.start_error.is_some()
    }

    fn raise_terminal_signal(&mut self) {
        let had_terminal = self.terminal.take_back();
        if let Some(Ending::Killed(signal @ (2 | 3))) = self.ending.filter(|_| had_terminal) {
            // Only the command received the key's signal, but without safe-run every process of the job would have.
            self.aborted_by = Some(signal);
            if let Some(signal) = Signal::from_named_raw(signal) {
                let _ = rustix::process::kill_current_process_group(signal);
            }
        }
    }

    fn receive_status(&mut self) {
        match self.supervisor.as_ref().and_then(Connection::receive) {
            Some(Status::Started(process)) => self.group = Pid::from_raw(process),
            Some(Status::NotStarted(error)) => self.start_error = Some(error),
            Some(Status::Stopped(signal)) => self.on_command_stopped(signal),
            Some(Status::Exited(code)) => self.set_ending(Ending::Exited(code)),
            Some(Status::Killed(signal)) => self.set_ending(Ending::Killed(signal)),
            Some(Status::LeftBehind(count)) => self.left_behind = count.unsigned_abs(),
            None => self.on_supervisor_gone(),
        }
    }

    fn on_supervisor_gone(&mut self) {
        self.supervisor = None;
        if self.ending.is_none() {
            // The supervisor was killed, and the system killed the command with it. The processes that the command had started
            // are now children of this process.
            if let Some(group) = self.group {
                let _ = rustix::process::kill_process_group(group, Signal::KILL);
            }
            if self.options.owns_process {
                self.left_behind = supervision::kill_descendants(self.group).unsigned_abs();
            }
            self.ending = Some(Ending::Killed(SignalNumber::SIGKILL as i32));
        }
        self.finish_without_supervisor();
    }

    fn receive_signal(&mut self) {
        let mut signal = [0];
        if self.signals.read_exact(&mut signal).is_err() {
            return;
        }
        if let Ok(signal) = SignalNumber::try_from(i32::from(signal[0])) {
            self.on_signal(signal);
        }
    }

    fn on_time_limit(&mut self) {
        self.time_limit = None;
        // Not if the command is ending already, by a signal or by the output limit.
        if self.aborted_by.is_none() {
            self.stopped = Some(StopReason::TimedOut);
            self.on_signal(SignalNumber::SIGTERM);
        }
    }

    pub(super) fn count_output(&mut self, bytes: u64) {
        let Some(left) = self.output_left else { return };
        self.output_left = left.checked_sub(bytes);
        if self.output_left.is_none() {
            self.stopped = Some(StopReason::OutputTooLarge);
            // No grace time, in which the command could print as much again.
            self.on_signal(SignalNumber::SIGKILL);
        }
    }

    fn on_signal(&mut self, signal: SignalNumber) {
        match signal {
            SignalNumber::SIGTSTP => {
                // The command must stop before this process does, or its signal would wait until CONT.
                self.terminal.take_back();
                self.forward_signal(signal);
                terminal::stop_this_process();
            }
            SignalNumber::SIGCONT => {
                if let Some(group) = self.group.filter(|_| self.terminal.was_requested()) {
                    self.terminal.give(group);
                }
                self.forward_signal(signal);
            }
            SignalNumber::SIGWINCH => {
                if let Some(relay) = &self.relay {
                    terminal::copy_window_size(&relay.master);
                }
            }
            signal if NOTIFYING.contains(&signal) => self.forward_signal(signal),
            // After the end of the command, a signal can only mean "stop waiting".
            _ if self.ending.is_some() || signal == SignalNumber::SIGKILL => {
                self.aborted_by = self.aborted_by.or(Some(signal as i32));
                self.finish();
            }
            _ => {
                self.forward_signal(signal);
                self.aborted_by = self.aborted_by.or(Some(signal as i32));
                // A second signal must not extend the grace time.
                self.deadline = self.deadline.or_else(|| after(self.options.grace));
            }
        }
    }

    fn forward_signal(&self, signal: SignalNumber) {
        if let Some(supervisor) = self.supervisor.as_ref().filter(|_| !self.is_finishing()) {
            // If the supervisor is gone, the next poll reports it.
            let _ = supervisor.send_signal(signal as i32);
        }
    }

    /// Handles a stop of the command: by a read from the terminal, by the terminal's stop key, or by another process.
    fn on_command_stopped(&mut self, signal: i32) {
        let Some(group) = self.group.filter(|_| self.options.owns_process) else { return };
        let wants_terminal = signal == SignalNumber::SIGTTIN as i32 || signal == SignalNumber::SIGTTOU as i32;
        if wants_terminal {
            if self.terminal.give(group) {
                self.forward_signal(SignalNumber::SIGCONT);
            } else if self.terminal.was_requested() {
                // This process is in the background itself. A shell that continues it also gives it the terminal.
                terminal::stop_this_process();
            }
        } else if self.terminal.take_back() {
            // The stop key stops the whole job. Our own stop arrives as a signal and is forwarded when we continue.
            let _ = rustix::process::kill_current_process_group(Signal::TSTP);
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Phase {
    Running,
    /// The supervisor was asked to kill every remaining process.
    Finishing,
}

#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Limits {
    pub(super) timeout: Option<Duration>,
    pub(super) output: Option<u64>,
}

pub(super) struct Session<'a> {
    pub(super) options: &'a Options,
    pub(super) observer: &'a mut Observer<'a>,
    pub(super) started: Instant,
    /// The connection to the supervisor; `None` after the supervisor has ended.
    pub(super) supervisor: Option<Connection>,
    pub(super) supervisor_process: Child,
    /// The process group of the command.
    pub(super) group: Option<Pid>,
    pub(super) signals: PipeReader,
    /// The command's output streams; `None` after a stream was closed.
    pub(super) sources: [Option<OwnedFd>; 2],
    /// Number of bytes still to read from each stream after the deadline for the streams.
    pub(super) remaining: [Option<u64>; 2],
    pub(super) outputs: [OutputPipe; 2],
    pub(super) buffer: Vec<u8>,
    pub(super) capture: Capture,
    pub(super) capture_error: Option<io::Error>,
    pub(super) output_errors: Vec<(Stream, io::Error)>,
    pub(super) terminal: Terminal,
    /// Present only if the command has a terminal of its own.
    pub(super) relay: Option<InputRelay>,
    pub(super) ending: Option<Ending>,
    /// The operating system's error number, if the command could not be started.
    pub(super) start_error: Option<i32>,
    pub(super) aborted_by: Option<i32>,
    /// The end of the time limit; `None` after it has passed.
    pub(super) time_limit: Option<Instant>,
    /// The bytes that the command may still print; `None` without a limit, and after it was exceeded.
    pub(super) output_left: Option<u64>,
    /// The first limit that was exceeded.
    pub(super) stopped: Option<StopReason>,
    pub(super) left_behind: u32,
    pub(super) phase: Phase,
    /// When the current wait ends: for a command that received a signal, for open streams, or for the supervisor.
    pub(super) deadline: Option<Instant>,
}

impl Session<'_> {
    /// Returns true if both output streams of the command are closed.
    pub(super) fn is_drained(&self) -> bool {
        self.sources.iter().all(Option::is_none)
    }

    pub(super) fn is_finishing(&self) -> bool {
        self.phase == Phase::Finishing
    }

    pub(super) fn set_ending(&mut self, ending: Ending) {
        self.ending = Some(ending);
        // Processes that the command left behind may hold its streams open: they get the drain time. While finishing, the deadline
        // is that of the supervisor.
        if !self.is_finishing() {
            self.deadline = after(self.options.drain);
        }
    }
}

/// Returns the end of a time that starts now. A time that the clock cannot represent has no end.
pub(super) fn after(time: Duration) -> Option<Instant> {
    Instant::now().checked_add(time)
}

impl Session<'_> {
    pub(super) fn finish(&mut self) {
        self.phase = Phase::Finishing;
        self.deadline = Some(Instant::now() + KILL_TIMEOUT);
        if let Some(supervisor) = &self.supervisor {
            supervisor.finish();
        }
    }

    pub(super) fn finish_without_supervisor(&mut self) {
        self.phase = Phase::Finishing;
        self.deadline = after(self.options.drain);
    }

    /// Handles an expired deadline. `ready` is what the last poll returned.
    pub(super) fn on_deadline(&mut self, ready: &[Ready]) {
        if !self.is_finishing() {
            return self.finish();
        }
        // A slow reader of our output gets further turns, one drain time each.
        self.deadline = after(self.options.drain);
        if self.supervisor.take().is_some() {
            // The command has stopped it, or a process has not ended even after KILL.
            let supervisor = Pid::from_child(&self.supervisor_process);
            self.left_behind = supervision::kill_tree(supervisor, self.group).unsigned_abs();
            self.ending = self.ending.or(Some(Ending::Killed(SignalNumber::SIGKILL as i32)));
        }
        for stream in Stream::ALL {
            self.close_idle_stream(stream, ready);
        }
    }

    fn close_idle_stream(&mut self, stream: Stream, ready: &[Ready]) {
        let output = &mut self.outputs[stream as usize];
        let is_moving = ready.contains(&Ready::Source(stream)) || ready.contains(&Ready::Output(stream));
        // A slow reader gets the whole output, unless a signal asked us to end.
        if self.aborted_by.is_some() && !is_moving {
            output.discard();
        }
        if !output.is_pending() && !is_moving {
            self.sources[stream as usize] = None;
        }
        let Some(source) = &self.sources[stream as usize] else { return };
        // A process that could not be killed may print forever. The command's own output is in the pipe by now, so reading
        // one pipe's worth of bytes loses nothing of it.
        let buffered = rustix::io::ioctl_fionread(source).unwrap_or(0).max(PIPE_BYTES as u64);
        self.remaining[stream as usize].get_or_insert(buffered);
    }
}

impl Session<'_> {
    /// Waits until something is ready or the deadline passes. The result is empty at the deadline.
    pub(super) fn poll(&self) -> io::Result<Vec<Ready>> {
        let mut roles = Vec::with_capacity(8);
        let mut polled = Vec::with_capacity(8);
        for stream in Stream::ALL {
            let output = &self.outputs[stream as usize];
            // While output is pending the stream is not read, so a slow reader slows the command down, as without safe-run.
            if output.is_pending() {
                roles.push(Ready::Output(stream));
                polled.push(PollFd::new(output, PollFlags::OUT));
            } else if let Some(source) = &self.sources[stream as usize] {
                roles.push(Ready::Source(stream));
                polled.push(PollFd::new(source, PollFlags::IN));
            }
        }
        if let Some(supervisor) = &self.supervisor {
            roles.push(Ready::Supervisor);
            polled.push(PollFd::new(supervisor, PollFlags::IN));
        }
        roles.push(Ready::Signals);
        polled.push(PollFd::new(&self.signals, PollFlags::IN));
        let relay = self.relay.as_ref().filter(|_| self.ending.is_none());
        if let Some((role, interest)) = relay.and_then(InputRelay::interest) {
            roles.push(role);
            polled.push(interest);
        }
        let deadline = self.deadline.into_iter().chain(self.time_limit).min();
        let timeout = deadline.map(|deadline| deadline.saturating_duration_since(Instant::now()));
        // One millisecond more, because poll may return early by a fraction of one.
        let timeout = timeout.and_then(|timeout| Timespec::try_from(timeout + Duration::from_millis(1)).ok());
        match rustix::event::poll(&mut polled, timeout.as_ref()) {
            Err(Errno::INTR) | Ok(_) => {}
            Err(error) => return Err(error.into()),
        }
        let ready = roles.into_iter().zip(&polled).filter(|(_, polled)| !polled.revents().is_empty());
        Ok(ready.map(|(role, _)| role).collect())
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Ready {
    /// An output stream of the command can be read.
    Source(Stream),
    /// A stream of this process has room for pending output.
    Output(Stream),
    Supervisor,
    Signals,
    Input,
    /// The terminal of the command has room for input.
    InputRoom,
}
