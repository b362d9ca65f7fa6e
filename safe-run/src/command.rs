//! A command to run, with its limits. How it runs is the matter of each system: in `session` on Unix, in `windows` on Windows.

use std::ffi::OsString;
use std::io::{self, Seek as _, Write as _};
#[cfg(unix)]
use std::os::fd::OwnedFd as OwnedDescriptor;
#[cfg(windows)]
use std::os::windows::io::OwnedHandle as OwnedDescriptor;
use std::time::Duration;

use crate::cancellation::Cancellation;
use crate::capture::Stream;
use crate::options::Options;

/// Receives the output of a command while it runs: the stream, the time since the start, and the bytes of one read.
pub type Observer<'a> = dyn FnMut(Stream, Duration, &[u8]) + 'a;

#[derive(Debug)]
pub enum Input {
    /// The standard input of this process.
    Inherited,
    /// An open file. Once the command runs, only the command holds it.
    Descriptor(OwnedDescriptor),
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

/// A command and its limits. At the time limit and when it is cancelled, the command gets TERM and has the grace time of the options
/// to end. At the output limit it is killed. On Windows, it is killed with all of its processes in each of these cases; `grace` and
/// `supervisor` have no effect, and a terminal is refused.
#[derive(Debug)]
pub struct Command {
    pub words: Vec<OsString>,
    pub options: Options,
    pub input: Input,
    pub timeout: Option<Duration>,
    pub output_limit: Option<u64>,
    pub cancel: Cancellation,
}

impl Command {
    /// Creates a command without limits, with the standard input of this process.
    pub fn new(words: impl IntoIterator<Item = impl Into<OsString>>) -> Self {
        Self {
            words: words.into_iter().map(Into::into).collect(),
            options: Options::default(),
            input: Input::Inherited,
            timeout: None,
            output_limit: None,
            cancel: Cancellation::default(),
        }
    }
}
