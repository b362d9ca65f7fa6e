//! The connections of a command to the program that runs it.

use std::io::{self, PipeReader, Seek as _, Write as _};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::time::Duration;

use super::Signals;
use crate::capture::Stream;

/// Receives the output of a command while it runs: the stream, the time since the start, and the bytes of one read.
pub type Observer<'a> = dyn FnMut(Stream, Duration, &[u8]) + 'a;

/// The standard input of a command.
#[derive(Debug)]
pub enum Input {
    /// The standard input of this process.
    Inherited,
    /// A file descriptor. Once the command runs, only the command holds it.
    Descriptor(OwnedFd),
}

impl Input {
    /// Input of these bytes. They are in a file without a name and not in a pipe, so the command cannot wait for a writer, nor a writer
    /// for the command.
    pub fn bytes(bytes: &[u8]) -> io::Result<Self> {
        let mut file = tempfile::tempfile()?;
        file.write_all(bytes)?;
        file.rewind()?;
        Ok(Input::Descriptor(file.into()))
    }
}

impl AsFd for Input {
    fn as_fd(&self) -> BorrowedFd<'_> {
        match self {
            Input::Inherited => rustix::stdio::stdin(),
            Input::Descriptor(descriptor) => descriptor.as_fd(),
        }
    }
}

/// The input and the signals of a command.
#[derive(Debug)]
pub struct Io {
    pub input: Input,
    /// The sender of signals to the command.
    pub signals: Signals,
    /// The receiver of the signals; both come from [`Signals::pipe`].
    pub received: PipeReader,
}
