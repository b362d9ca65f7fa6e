//! The signals that reach this program, one byte each in a pipe, so that they can be waited for together with everything else.
//!
//! They are blocked and taken by a thread, never handled: what was ignored when we were started stays so for the command.

use std::io::{self, PipeReader, PipeWriter, Write as _};
use std::sync::Arc;
use std::thread;

use nix::sys::signal::{SigSet, Signal};

/// Signals that end a command, and are passed on to it.
pub(crate) const ENDING: [Signal; 4] = [Signal::SIGINT, Signal::SIGTERM, Signal::SIGHUP, Signal::SIGQUIT];

/// Signals about the terminal.
const TERMINAL: [Signal; 3] = [Signal::SIGTSTP, Signal::SIGCONT, Signal::SIGWINCH];

/// The way in for signals that come from elsewhere than the system.
#[derive(Debug, Clone)]
pub struct Signals(Arc<PipeWriter>);

impl Signals {
    /// Where signals are put in and taken out.
    pub fn pipe() -> io::Result<(Self, PipeReader)> {
        let (reader, writer) = io::pipe()?;
        Ok((Self(Arc::new(writer)), reader))
    }

    /// Acts as if this process had been sent a signal, such as 15 for TERM; 9, for KILL, ends everything at once.
    pub fn send(&self, signal: u8) {
        // Where nobody reads any more, the command has ended.
        let _ = (&*self.0).write_all(&[signal]);
    }

    /// Takes the signals of this process from now on, and gives those that are blocked for it and were not before: they have to
    /// be let through again in the command. To be called while there is one thread only.
    pub(crate) fn take_from_process(&self) -> io::Result<SigSet> {
        let ignored = ignored();
        let wanted = ENDING.into_iter().chain(TERMINAL);
        let taken: SigSet = wanted.filter(|signal| ignored & (1 << (*signal as i32 - 1)) == 0).collect();
        let mut blocked = taken;
        // Whoever gives the terminal away and takes it back must not be stopped for it.
        blocked.add(Signal::SIGTTOU);
        let before = SigSet::thread_get_mask()?;
        blocked.thread_block()?;
        let signals = self.clone();
        thread::spawn(move || {
            while let Ok(signal) = taken.wait() {
                signals.send(u8::try_from(signal as i32).unwrap_or(0));
            }
        });
        Ok(blocked.iter().filter(|signal| !before.contains(*signal)).collect())
    }
}

/// The signals that this process ignores, the lowest bit for the first: those that `nohup` and background jobs of scripts are
/// not to be bothered with. Where the system does not tell, none.
fn ignored() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    mask.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok()).unwrap_or(0)
}
