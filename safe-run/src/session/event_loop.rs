//! What is done when something comes, and when nothing comes for too long.

use std::io::{self, Read as _};
use std::time::{Duration, Instant};

use nix::sys::signal::Signal as Number;
use rustix::process::{Pid, Signal};

use super::poll::Ready;
use super::start::Session;
use super::{poll as wait, pty, terminal};
use crate::capture::Stream;
use crate::record::Ending;
use crate::supervision::{self as stage, Said};

/// How long the supervisor may take to kill what is left.
const KILLING: Duration = Duration::from_secs(5);

impl Session<'_> {
    /// Runs until the command has ended, its streams are at their end, and nothing of it is left.
    pub(super) fn run(&mut self) -> io::Result<()> {
        while !self.is_over() {
            let ready = self.wait()?;
            for ready in &ready {
                match *ready {
                    Ready::Source(stream) => self.read(stream),
                    Ready::Passage(stream) => self.advance(stream),
                    Ready::Control => self.hear(),
                    Ready::Signals => self.take_signal(),
                    Ready::Input | Ready::InputRoom => self.relay(*ready),
                }
            }
            let is_drained = self.sources.iter().all(Option::is_none);
            if self.ending.is_some() && is_drained && !self.is_finishing {
                self.finish();
            }
            // Whoever prints without end is out of time like one who is silent; only the supervisor's last words are heard first.
            let is_expired = self.deadline.is_some_and(|deadline| deadline <= Instant::now());
            if is_expired && !(self.is_finishing && ready.contains(&Ready::Control)) {
                self.lose_patience(&ready);
            }
        }
        let was_given = self.terminal.take_back();
        if let Some(Ending::Killed(signal @ (2 | 3))) = self.ending.filter(|_| was_given) {
            // The terminal's key reached the command alone; without us it would have reached everyone around it.
            self.aborted_by = Some(signal);
            if let Some(signal) = Signal::from_named_raw(signal) {
                let _ = rustix::process::kill_current_process_group(signal);
            }
        }
        Ok(())
    }

    fn is_over(&self) -> bool {
        let is_drained = self.sources.iter().all(Option::is_none);
        let is_passed_on = !self.passages.iter().any(super::output_pipe::Passage::is_waiting);
        self.control.is_none() && is_drained && is_passed_on || self.not_started.is_some()
    }

    fn hear(&mut self) {
        match self.control.as_ref().and_then(stage::Control::hear) {
            Some(Said::Started(process)) => self.group = Pid::from_raw(process),
            Some(Said::NotStarted(error)) => self.not_started = Some(error),
            Some(Said::Stopped(signal)) => self.command_stopped(signal),
            Some(Said::Exited(code)) => self.ended(Ending::Exited(code)),
            Some(Said::Killed(signal)) => self.ended(Ending::Killed(signal)),
            Some(Said::LeftBehind(count)) => self.left_behind = count.unsigned_abs(),
            None => self.supervisor_gone(),
        }
    }

    fn ended(&mut self, ending: Ending) {
        self.ending = Some(ending);
        if !self.is_finishing {
            self.deadline = Some(Instant::now() + self.options.drain);
        }
    }

    /// Has everything killed that is left.
    fn finish(&mut self) {
        self.is_finishing = true;
        self.deadline = Some(Instant::now() + KILLING);
        if let Some(control) = &self.control {
            control.finish();
        }
    }

    fn supervisor_gone(&mut self) {
        self.control = None;
        if self.ending.is_none() {
            // It was killed, and the command with it; what the command had started is ours now.
            if let Some(group) = self.group {
                let _ = rustix::process::kill_process_group(group, Signal::KILL);
            }
            if self.options.owns_process {
                self.left_behind = stage::kill_all(self.group).unsigned_abs();
            }
            self.ending = Some(Ending::Killed(Number::SIGKILL as i32));
        }
        self.is_finishing = true;
        self.deadline = Some(Instant::now() + self.options.drain);
    }

    /// The deadline has come, with no more to do than this.
    fn lose_patience(&mut self, ready: &[Ready]) {
        if !self.is_finishing {
            return self.finish();
        }
        // Whoever is slow to read what we pass on is asked again.
        self.deadline = Some(Instant::now() + self.options.drain);
        if self.control.take().is_some() {
            // Not even KILL has ended everything within the time.
            self.ending = self.ending.or(Some(Ending::Killed(Number::SIGKILL as i32)));
        }
        for stream in Stream::ALL {
            let passage = &mut self.passages[stream as usize];
            let is_moving = ready.contains(&Ready::Source(stream)) || ready.contains(&Ready::Passage(stream));
            // Whoever is slow to read our output gets all of it, unless we were told to end.
            if self.aborted_by.is_some() && !is_moving {
                passage.give_up();
            }
            if !passage.is_waiting() && !is_moving {
                self.sources[stream as usize] = None;
            }
            let Some(source) = &self.sources[stream as usize] else { continue };
            // Somebody may print on whom nobody could kill. What the command itself printed is in the pipe by now.
            let held = rustix::io::ioctl_fionread(source).unwrap_or(0).max(wait::PIPE as u64);
            self.owed[stream as usize].get_or_insert(held);
        }
    }

    fn take_signal(&mut self) {
        let mut signal = [0];
        if self.signals.read_exact(&mut signal).is_err() {
            return;
        }
        let Ok(signal) = Number::try_from(i32::from(signal[0])) else { return };
        match signal {
            Number::SIGTSTP => {
                self.terminal.take_back();
                self.pass_on(signal);
                terminal::stop();
            }
            Number::SIGCONT => {
                if let Some(group) = self.group.filter(|_| self.terminal.was_wanted()) {
                    self.terminal.give(group);
                }
                self.pass_on(signal);
            }
            Number::SIGWINCH => {
                if let Some(relay) = &self.relay {
                    pty::copy_size(&relay.master);
                }
            }
            _ if self.ending.is_some() || signal == Number::SIGKILL => {
                self.aborted_by = self.aborted_by.or(Some(signal as i32));
                self.finish();
            }
            _ => {
                self.pass_on(signal);
                self.aborted_by = self.aborted_by.or(Some(signal as i32));
                self.deadline = self.deadline.or(Some(Instant::now() + self.options.grace));
            }
        }
    }

    fn pass_on(&self, signal: Number) {
        if let Some(control) = self.control.as_ref().filter(|_| !self.is_finishing) {
            // Where the supervisor is gone, that is heard next.
            let _ = control.signal(signal as i32);
        }
    }

    /// The command was stopped: for want of the terminal, by the terminal's key, or by somebody else.
    fn command_stopped(&mut self, signal: i32) {
        let Some(group) = self.group.filter(|_| self.options.owns_process) else { return };
        let wants_terminal = signal == Number::SIGTTIN as i32 || signal == Number::SIGTTOU as i32;
        if wants_terminal {
            if self.terminal.give(group) {
                self.pass_on(Number::SIGCONT);
            } else if self.terminal.was_wanted() {
                // We are in the background ourselves, and whoever has us continued makes it ours.
                terminal::stop();
            }
        } else if self.terminal.take_back() {
            // Everyone around us stops too, as the terminal would have had it; ours comes back as a signal to pass on.
            let _ = rustix::process::kill_current_process_group(Signal::TSTP);
        }
    }
}
