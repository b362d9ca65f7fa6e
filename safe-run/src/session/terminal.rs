//! The controlling terminal, as a shell treats it: a command that reads from it is given it, and who stops or ends gives it back.
//!
//! The command is in a group of its own, so it gets neither the terminal's input nor its signals by itself. It is given the
//! terminal when it is stopped for want of it, and not before: until then Ctrl-C reaches us and everyone around us, as ever.

use std::fs::File;

use rustix::process::{Pid, Signal};
use rustix::termios::{tcgetpgrp, tcsetpgrp};

/// Who has the terminal.
#[derive(Debug, Default)]
pub(crate) struct Terminal {
    /// Open since it was first given away.
    device: Option<File>,
    given: bool,
}

impl Terminal {
    /// Gives the terminal to a group; false where it is not ours to give.
    pub(crate) fn give(&mut self, group: Pid) -> bool {
        let device = self.device.take().or_else(|| File::open("/dev/tty").ok());
        let Some(device) = device else { return false };
        let foreground = tcgetpgrp(&device).ok();
        let is_ours = foreground == Some(rustix::process::getpgrp());
        self.given = foreground == Some(group) || is_ours && tcsetpgrp(&device, group).is_ok();
        self.device = Some(device);
        self.given
    }

    /// Takes it back; false where it was not given.
    pub(crate) fn take_back(&mut self) -> bool {
        if let Some(device) = self.device.as_ref().filter(|_| self.given) {
            let _ = tcsetpgrp(device, rustix::process::getpgrp());
        }
        std::mem::take(&mut self.given)
    }

    /// True once the command has wanted it.
    pub(crate) fn was_wanted(&self) -> bool {
        self.device.is_some()
    }
}

/// Stops this process until somebody has it continued.
pub(crate) fn stop() {
    let _ = rustix::process::kill_process(rustix::process::getpid(), Signal::STOP);
}
