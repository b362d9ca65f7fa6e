//! The input of a command, and its signals as bytes in a pipe, so that one `poll` waits for them together with everything else.
//!
//! Signals are blocked and received by a thread; no handler is installed. A signal that was ignored when this process started
//! therefore stays ignored for the command.

use std::io::{self, PipeReader, PipeWriter, Write as _};
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::Arc;
use std::thread;

use nix::sys::signal::{SigSet, Signal};

use crate::command::Input;
use crate::signal_actions::{contains, ignored};
use crate::supervision::{ENDING, NOTIFYING};

impl AsFd for Input {
    fn as_fd(&self) -> BorrowedFd<'_> {
        match self {
            Input::Inherited => rustix::stdio::stdin(),
            Input::Descriptor(descriptor) => descriptor.as_fd(),
        }
    }
}

#[derive(Debug)]
pub struct Io {
    pub input: Input,
    pub signals: Signals,
    /// The receiver of the signals; both come from [`Signals::pipe`].
    pub received: PipeReader,
}

/// Job control and window size signals.
const TERMINAL: [Signal; 3] = [Signal::SIGTSTP, Signal::SIGCONT, Signal::SIGWINCH];

#[derive(Debug, Clone)]
pub struct Signals(Arc<PipeWriter>);

impl Signals {
    pub fn pipe() -> io::Result<(Self, PipeReader)> {
        let (reader, writer) = io::pipe()?;
        Ok((Self(Arc::new(writer)), reader))
    }

    /// Sends a signal, as if this process had received it: 15 for TERM, for example. 9 (KILL) ends every process at once.
    pub fn send(&self, signal: u8) {
        // A write fails only if the receiver is gone, and then the command has ended.
        let _ = (&*self.0).write_all(&[signal]);
    }

    /// Blocks the signals of this process and forwards them to the pipe. Returns the signals that were not blocked before: the
    /// command must unblock them. Must be called while the process has a single thread, because new threads inherit the mask.
    pub fn take_from_process(&self) -> io::Result<TakenSignals> {
        let ignored = ignored();
        let wanted = ENDING.into_iter().chain(NOTIFYING).chain(TERMINAL);
        let taken: SigSet = wanted.filter(|signal| !contains(ignored, *signal)).collect();
        let mut blocked = taken;
        // Giving the terminal away and taking it back from the background would otherwise stop this process.
        blocked.add(Signal::SIGTTOU);
        let before = SigSet::thread_get_mask()?;
        blocked.thread_block()?;
        let signals = self.clone();
        // The thread is never joined: it waits for signals until the process ends.
        thread::spawn(move || {
            while let Ok(signal) = taken.wait() {
                signals.send(u8::try_from(signal as i32).unwrap_or(0));
            }
        });
        Ok(TakenSignals(blocked.iter().filter(|signal| !before.contains(*signal)).collect()))
    }
}

/// Signals that a process has blocked to receive them itself. A command that it starts must unblock them.
#[derive(Debug, Clone, Copy)]
pub struct TakenSignals(pub(crate) SigSet);

impl TakenSignals {
    /// No signals: those of this process stay as they are.
    pub fn none() -> Self {
        Self(SigSet::empty())
    }
}
