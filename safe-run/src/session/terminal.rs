//! Job control of the controlling terminal, as a shell does it: a command that reads from the terminal gets it, and loses it when
//! the command stops or ends.
//!
//! The command has its own process group, so at first it receives neither the terminal's input nor its signals. It gets the
//! terminal only when a read has stopped it. Until then Ctrl-C reaches the process group of safe-run, as without safe-run.

use std::fs::{File, OpenOptions};
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::ffi::OsStringExt as _;
use std::os::unix::fs::OpenOptionsExt as _;

use rustix::event::{PollFd, PollFlags};
use rustix::fs::OFlags;
use rustix::io::{Errno, FdFlags};
use rustix::process::{Pid, Signal};
use rustix::pty::OpenptFlags;
use rustix::termios::{
    OptionalActions, Termios, tcgetattr, tcgetpgrp, tcgetwinsize, tcsetattr, tcsetpgrp, tcsetwinsize,
};

use super::event_loop::Ready;
use crate::command::Input;

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

    pub(super) fn was_requested(&self) -> bool {
        self.device.is_some()
    }
}

pub(super) fn stop_this_process() {
    let _ = rustix::process::kill_process(rustix::process::getpid(), Signal::STOP);
}

pub(super) struct Pty {
    /// Our end.
    pub(super) master: OwnedFd,
    pub(super) slave: File,
}

impl Pty {
    pub(super) fn open() -> io::Result<Self> {
        let flags = OpenptFlags::RDWR | OpenptFlags::NOCTTY;
        #[cfg(target_os = "linux")]
        let flags = flags | OpenptFlags::CLOEXEC;
        let master = rustix::pty::openpt(flags)?;
        // Only Linux accepts CLOEXEC in openpt; the command must not inherit the master on any system.
        rustix::io::fcntl_setfd(&master, FdFlags::CLOEXEC)?;
        rustix::pty::grantpt(&master)?;
        rustix::pty::unlockpt(&master)?;
        let name = rustix::pty::ptsname(&master, Vec::new())?;
        let mut options = OpenOptions::new();
        options.read(true).write(true).custom_flags(OFlags::NOCTTY.bits().cast_signed());
        #[expect(clippy::disallowed_methods, reason = "a terminal, which a crash cannot leave half-written")]
        let slave = options.open(std::ffi::OsString::from_vec(name.into_bytes()))?;
        copy_window_size(&master);
        Ok(Self { master, slave })
    }
}

pub(super) fn copy_window_size(master: impl AsFd) {
    if let Ok(size) = tcgetwinsize(rustix::stdio::stdin()).or_else(|_| tcgetwinsize(rustix::stdio::stdout())) {
        let _ = tcsetwinsize(master, size);
    }
}

/// Raw mode of our terminal; dropping it restores the previous mode.
pub(super) struct RawMode(Option<Termios>);

impl RawMode {
    pub(super) fn enter() -> Self {
        let stdin = rustix::stdio::stdin();
        let before = tcgetattr(stdin).ok();
        if let Some(before) = &before {
            let mut raw = before.clone();
            raw.make_raw();
            let _ = tcsetattr(stdin, OptionalActions::Flush, &raw);
        }
        Self(before)
    }
}

impl Drop for RawMode {
    fn drop(&mut self) {
        if let Some(before) = &self.0 {
            // Drain: output that is still queued was written for raw mode.
            let _ = tcsetattr(rustix::stdio::stdin(), OptionalActions::Drain, before);
        }
    }
}

/// The character that ends the input of a terminal (Ctrl-D).
const END_OF_INPUT: u8 = 4;

pub(super) struct InputRelay {
    pub(super) master: OwnedFd,
    source: Input,
    pending: Vec<u8>,
    is_at_end: bool,
}

impl InputRelay {
    pub(super) fn new(master: OwnedFd, source: Input) -> Self {
        Self { master, source, pending: Vec::new(), is_at_end: false }
    }

    /// Returns what to poll for: room in the terminal if bytes are pending, otherwise new input.
    pub(super) fn interest(&self) -> Option<(Ready, PollFd<'_>)> {
        if !self.pending.is_empty() {
            Some((Ready::InputRoom, PollFd::new(&self.master, PollFlags::OUT)))
        } else if !self.is_at_end {
            Some((Ready::Input, PollFd::new(&self.source, PollFlags::IN)))
        } else {
            None
        }
    }

    pub(super) fn read(&mut self) {
        let mut buffer = [0; 4096];
        match rustix::io::read(&self.source, &mut buffer) {
            Ok(0) | Err(_) => {
                self.is_at_end = true;
                // Closing the master would hang up the terminal. The character only ends its input.
                self.pending.push(END_OF_INPUT);
            }
            Ok(read) => self.pending.extend_from_slice(&buffer[..read]),
        }
    }

    pub(super) fn write(&mut self) {
        match rustix::io::write(&self.master, &self.pending) {
            Ok(written) => drop(self.pending.drain(..written)),
            Err(Errno::AGAIN | Errno::INTR) => {}
            Err(_) => {
                // The command has closed its terminal, so further input has no reader.
                self.pending.clear();
                self.is_at_end = true;
            }
        }
    }
}
