//! The way of live output to our own streams. A reader that is slow holds up the command, as it would without us, but never
//! this program: writes do not block where the system lets us.

use std::fs::{File, OpenOptions};
use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::fs::OpenOptionsExt as _;

use rustix::fs::{FileType, OFlags};
use rustix::io::Errno;
use rustix::net::SendFlags;

use crate::capture::Stream;

/// One of our own streams.
#[derive(Debug)]
pub(crate) struct Passage {
    stream: Stream,
    way: Way,
    waiting: Vec<u8>,
    done: usize,
}

#[derive(Debug)]
enum Way {
    /// A pipe or a terminal, opened once more so that ours alone does not block.
    Reopened(File),
    /// Each call says that it must not block.
    Socket,
    /// A file, which is always ready; or what cannot be done otherwise.
    Plain,
    /// Nobody reads any more, or nobody shall.
    Closed,
}

impl Passage {
    /// The way to a stream of this process.
    pub(crate) fn open(stream: Stream) -> Self {
        let kind = rustix::fs::fstat(standard(stream)).map(|stat| FileType::from_raw_mode(stat.st_mode));
        let way = match kind {
            Ok(FileType::Socket) => Way::Socket,
            Ok(FileType::Fifo) => reopen(stream),
            Ok(FileType::CharacterDevice) if rustix::termios::isatty(standard(stream)) => reopen(stream),
            _ => Way::Plain,
        };
        Self { stream, way, waiting: Vec::new(), done: 0 }
    }

    /// A way to nowhere.
    pub(crate) fn closed(stream: Stream) -> Self {
        Self { stream, way: Way::Closed, waiting: Vec::new(), done: 0 }
    }

    /// Passes bytes on, or keeps them until there is room. An error if nobody reads any more, or if it cannot be
    /// written.
    pub(crate) fn push(&mut self, bytes: &[u8]) -> io::Result<()> {
        let mut done = 0;
        while done < bytes.len() {
            match self.write(&bytes[done..]) {
                Ok(written) => done += written,
                Err(Errno::AGAIN) => {
                    self.waiting.extend_from_slice(&bytes[done..]);
                    return Ok(());
                }
                Err(error) => return self.close(error),
            }
        }
        Ok(())
    }

    /// Goes on with what waits.
    pub(crate) fn advance(&mut self) -> io::Result<()> {
        while self.is_waiting() {
            match self.write(&self.waiting[self.done..]) {
                Ok(written) => self.done += written,
                Err(Errno::AGAIN) => return Ok(()),
                Err(error) => return self.close(error),
            }
        }
        self.waiting.clear();
        self.done = 0;
        Ok(())
    }

    /// True where something waits for room.
    pub(crate) fn is_waiting(&self) -> bool {
        self.done < self.waiting.len()
    }

    /// Lets go of what waits.
    pub(crate) fn give_up(&mut self) {
        self.waiting.clear();
        self.done = 0;
        self.way = Way::Closed;
    }

    fn close(&mut self, error: Errno) -> io::Result<()> {
        self.give_up();
        Err(error.into())
    }

    fn write(&self, bytes: &[u8]) -> Result<usize, Errno> {
        let written = match &self.way {
            Way::Reopened(file) => rustix::io::write(file, bytes),
            Way::Socket => {
                let flags = SendFlags::DONTWAIT;
                // Where the system has no such flag, it is enough that programs in Rust ignore the signal.
                #[cfg(not(target_vendor = "apple"))]
                let flags = flags | SendFlags::NOSIGNAL;
                rustix::net::send(standard(self.stream), bytes, flags)
            }
            Way::Plain => rustix::io::write(standard(self.stream), bytes),
            Way::Closed => Ok(bytes.len()),
        };
        if written == Err(Errno::INTR) { Ok(0) } else { written }
    }
}

impl AsFd for Passage {
    fn as_fd(&self) -> BorrowedFd<'_> {
        match &self.way {
            Way::Reopened(file) => file.as_fd(),
            _ => standard(self.stream),
        }
    }
}

fn standard(stream: Stream) -> BorrowedFd<'static> {
    match stream {
        Stream::Stdout => rustix::stdio::stdout(),
        Stream::Stderr => rustix::stdio::stderr(),
    }
}

/// Opens a stream of this process once more: the mode of the one we were given belongs to others too.
fn reopen(stream: Stream) -> Way {
    let path = match stream {
        Stream::Stdout => "/dev/fd/1",
        Stream::Stderr => "/dev/fd/2",
    };
    let flags = OFlags::NONBLOCK | OFlags::NOCTTY;
    let mut options = OpenOptions::new();
    options.write(true).custom_flags(flags.bits().cast_signed());
    #[expect(clippy::disallowed_methods, reason = "a pipe or a terminal, and no file that could be torn")]
    let opened = options.open(path);
    opened.map_or(Way::Plain, Way::Reopened)
}
