//! Job control of the controlling terminal, as a shell does it: a command that reads from the terminal gets it, and loses it when
//! the command stops or ends.
//!
//! The command has its own process group, so at first it receives neither the terminal's input nor its signals. It gets the
//! terminal only when a read has stopped it. Until then Ctrl-C reaches the process group of safe-run, as without safe-run.

use std::fs::File;

use rustix::process::{Pid, Signal};
use rustix::termios::{tcgetpgrp, tcsetpgrp};

/// The controlling terminal and whether the command has it.
#[derive(Debug, Default)]
pub(super) struct Terminal {
    /// Opened when the command first requests the terminal.
    device: Option<File>,
    is_given: bool,
}

impl Terminal {
    /// Gives the terminal to a process group. Returns false if this process does not have it.
    pub(super) fn give(&mut self, group: Pid) -> bool {
        let device = self.device.take().or_else(|| File::open("/dev/tty").ok());
        let Some(device) = device else { return false };
        let foreground = tcgetpgrp(&device).ok();
        let is_ours = foreground == Some(rustix::process::getpgrp());
        self.is_given = foreground == Some(group) || is_ours && tcsetpgrp(&device, group).is_ok();
        self.device = Some(device);
        self.is_given
    }

    /// Takes the terminal back. Returns false if the command did not have it.
    pub(super) fn take_back(&mut self) -> bool {
        if let Some(device) = self.device.as_ref().filter(|_| self.is_given) {
            let _ = tcsetpgrp(device, rustix::process::getpgrp());
        }
        std::mem::take(&mut self.is_given)
    }

    /// Returns true if the command has ever requested the terminal.
    pub(super) fn was_requested(&self) -> bool {
        self.device.is_some()
    }
}

/// Stops this process until it receives CONT.
pub(super) fn stop_this_process() {
    let _ = rustix::process::kill_process(rustix::process::getpid(), Signal::STOP);
}
