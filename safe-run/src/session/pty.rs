//! A pseudo-terminal for the command. Input is relayed to it byte for byte, it gets the size of our terminal, and ours is in raw
//! mode meanwhile.

use std::fs::{File, OpenOptions};
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::ffi::OsStringExt as _;
use std::os::unix::fs::OpenOptionsExt as _;

use rustix::fs::OFlags;
use rustix::io::FdFlags;
use rustix::pty::OpenptFlags;
use rustix::termios::{OptionalActions, Termios, tcgetattr, tcgetwinsize, tcsetattr, tcsetwinsize};

/// The two ends of a pseudo-terminal.
pub(super) struct Pty {
    /// Our end.
    pub(super) master: OwnedFd,
    /// The end of the command.
    pub(super) slave: File,
}

impl Pty {
    /// Opens a terminal with the size of ours, if we have one.
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

/// Sets the window size of a terminal to that of ours.
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
