//! A terminal for the command: ours is relayed to it, byte for byte, with its size and without its own line editing.

use std::fs::{File, OpenOptions};
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::ffi::OsStringExt as _;
use std::os::unix::fs::OpenOptionsExt as _;

use rustix::fs::OFlags;
use rustix::io::FdFlags;
use rustix::pty::OpenptFlags;
use rustix::termios::{OptionalActions, Termios, tcgetattr, tcgetwinsize, tcsetattr, tcsetwinsize};

/// A terminal's two ends.
pub(crate) struct Pty {
    /// Ours.
    pub(crate) master: OwnedFd,
    /// The command's.
    pub(crate) slave: File,
}

impl Pty {
    /// A new terminal, of the size of ours where we have one.
    pub(crate) fn open() -> io::Result<Self> {
        let flags = OpenptFlags::RDWR | OpenptFlags::NOCTTY;
        #[cfg(target_os = "linux")]
        let flags = flags | OpenptFlags::CLOEXEC;
        let master = rustix::pty::openpt(flags)?;
        // Not every system can open it so that the command does not inherit it.
        rustix::io::fcntl_setfd(&master, FdFlags::CLOEXEC)?;
        rustix::pty::grantpt(&master)?;
        rustix::pty::unlockpt(&master)?;
        let name = rustix::pty::ptsname(&master, Vec::new())?;
        let mut options = OpenOptions::new();
        options.read(true).write(true).custom_flags(OFlags::NOCTTY.bits().cast_signed());
        #[expect(clippy::disallowed_methods, reason = "a terminal, and no file that could be torn")]
        let slave = options.open(std::ffi::OsString::from_vec(name.into_bytes()))?;
        copy_size(&master);
        Ok(Self { master, slave })
    }
}

/// Gives a terminal the size of ours.
pub(crate) fn copy_size(master: impl AsFd) {
    if let Ok(size) = tcgetwinsize(rustix::stdio::stdin()).or_else(|_| tcgetwinsize(rustix::stdio::stdout())) {
        let _ = tcsetwinsize(master, size);
    }
}

/// Our own terminal without line editing, for as long as this lives.
pub(crate) struct Raw(Option<Termios>);

impl Raw {
    pub(crate) fn enter() -> Self {
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

impl Drop for Raw {
    fn drop(&mut self) {
        if let Some(before) = &self.0 {
            let _ = tcsetattr(rustix::stdio::stdin(), OptionalActions::Drain, before);
        }
    }
}
