//! The loop of a session, and the reactions to the supervisor, to signals and to the terminal.

use std::io::{self, Read as _};
use std::time::Instant;

use nix::sys::signal::Signal as SignalNumber;
use rustix::process::{Pid, Signal};

use super::deadline::after;
use super::pty;
use super::ready::Ready;
use super::state::Session;
use super::terminal;
use crate::record::{Ending, StopReason};
use crate::supervision::{self, Connection, NOTIFYING, Status};

impl Session<'_> {
    /// Runs until the command has ended, its streams are closed, and no process of it is left.
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
        let is_forwarded = !self.outputs.iter().any(super::output_pipe::OutputPipe::is_pending);
        self.supervisor.is_none() && self.is_drained() && is_forwarded || self.start_error.is_some()
    }

    /// Takes the terminal back. If its INT or QUIT key ended the command, sends the same signal to our own process group: only
    /// the command received it, but without safe-run every process of the job would have.
    fn raise_terminal_signal(&mut self) {
        let had_terminal = self.terminal.take_back();
        if let Some(Ending::Killed(signal @ (2 | 3))) = self.ending.filter(|_| had_terminal) {
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

    /// Asks the command to end, unless it is ending already, by a signal or by the output limit.
    fn on_time_limit(&mut self) {
        self.time_limit = None;
        if self.aborted_by.is_none() {
            self.stopped = Some(StopReason::TimedOut);
            self.on_signal(SignalNumber::SIGTERM);
        }
    }

    /// Counts output and kills the command beyond the limit. It gets no grace time, in which it could print as much again.
    pub(super) fn count_output(&mut self, bytes: u64) {
        let Some(left) = self.output_left else { return };
        self.output_left = left.checked_sub(bytes);
        if self.output_left.is_none() {
            self.stopped = Some(StopReason::OutputTooLarge);
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
                    pty::copy_window_size(&relay.master);
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
