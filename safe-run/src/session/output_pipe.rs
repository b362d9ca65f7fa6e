//! Forwards output to the streams of this process. A slow reader slows the command down, as without safe-run, but does not block
//! this program: writes are non-blocking where the system allows it.

use std::fs::{File, OpenOptions};
use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::fs::OpenOptionsExt as _;

use rustix::fs::{FileType, OFlags};
use rustix::io::Errno;
use rustix::net::SendFlags;

use crate::capture::Stream;

/// A stream of this process, with the bytes that it has not accepted yet.
#[derive(Debug)]
pub(super) struct OutputPipe {
    stream: Stream,
    sink: Sink,
    pending: Vec<u8>,
    /// Number of pending bytes that are written.
    written: usize,
}

#[derive(Debug)]
enum Sink {
    /// A pipe or a terminal that was opened again, so that only our descriptor is non-blocking.
    Reopened(File),
    /// A socket; every call carries the non-blocking flag.
    Socket,
    /// A file, which is always ready, or a stream that cannot be made non-blocking.
    Blocking,
    /// Discards all bytes: the reader is gone, or output is not forwarded.
    Closed,
}

impl OutputPipe {
    /// Opens a stream of this process.
    pub(super) fn open(stream: Stream) -> Self {
        let kind = rustix::fs::fstat(standard(stream)).map(|stat| FileType::from_raw_mode(stat.st_mode));
        let sink = match kind {
            Ok(FileType::Socket) => Sink::Socket,
            Ok(FileType::Fifo) => reopen(stream),
            Ok(FileType::CharacterDevice) if rustix::termios::isatty(standard(stream)) => reopen(stream),
            _ => Sink::Blocking,
        };
        Self { stream, sink, pending: Vec::new(), written: 0 }
    }

    /// Creates a pipe that discards all bytes.
    pub(super) fn closed(stream: Stream) -> Self {
        Self { stream, sink: Sink::Closed, pending: Vec::new(), written: 0 }
    }

    /// Writes bytes, and buffers those for which there is no room. Fails if the reader is gone or a write fails.
    pub(super) fn push(&mut self, bytes: &[u8]) -> io::Result<()> {
        // Nothing is pending here, because `poll` does not wait for a stream with pending output. The order of the bytes depends on
        // this.
        let mut done = 0;
        while done < bytes.len() {
            match self.write(&bytes[done..]) {
                Ok(written) => done += written,
                Err(Errno::AGAIN) => {
                    self.pending.extend_from_slice(&bytes[done..]);
                    return Ok(());
                }
                Err(error) => return self.close(error),
            }
        }
        Ok(())
    }

    /// Writes pending bytes until there is no more room.
    pub(super) fn write_pending(&mut self) -> io::Result<()> {
        while self.is_pending() {
            match self.write(&self.pending[self.written..]) {
                Ok(written) => self.written += written,
                Err(Errno::AGAIN) => return Ok(()),
                Err(error) => return self.close(error),
            }
        }
        self.pending.clear();
        self.written = 0;
        Ok(())
    }

    /// Returns true if bytes are waiting for room.
    pub(super) fn is_pending(&self) -> bool {
        self.written < self.pending.len()
    }

    /// Discards the pending bytes and all further ones.
    pub(super) fn discard(&mut self) {
        self.pending.clear();
        self.written = 0;
        self.sink = Sink::Closed;
    }

    fn close(&mut self, error: Errno) -> io::Result<()> {
        self.discard();
        Err(error.into())
    }

    fn write(&self, bytes: &[u8]) -> Result<usize, Errno> {
        let written = match &self.sink {
            Sink::Reopened(file) => rustix::io::write(file, bytes),
            Sink::Socket => {
                let flags = SendFlags::DONTWAIT;
                // Apple systems lack this flag. Rust programs ignore SIGPIPE, so it is not needed there.
                #[cfg(not(target_vendor = "apple"))]
                let flags = flags | SendFlags::NOSIGNAL;
                rustix::net::send(standard(self.stream), bytes, flags)
            }
            Sink::Blocking => rustix::io::write(standard(self.stream), bytes),
            Sink::Closed => Ok(bytes.len()),
        };
        // An interrupted write wrote nothing; both callers then try again.
        if written == Err(Errno::INTR) { Ok(0) } else { written }
    }
}

impl AsFd for OutputPipe {
    fn as_fd(&self) -> BorrowedFd<'_> {
        match &self.sink {
            Sink::Reopened(file) => file.as_fd(),
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

/// Opens a stream of this process again. Setting the inherited descriptor to non-blocking would affect every process that
/// shares it.
fn reopen(stream: Stream) -> Sink {
    let path = match stream {
        Stream::Stdout => "/dev/fd/1",
        Stream::Stderr => "/dev/fd/2",
    };
    let flags = OFlags::NONBLOCK | OFlags::NOCTTY;
    let mut options = OpenOptions::new();
    options.write(true).custom_flags(flags.bits().cast_signed());
    #[expect(clippy::disallowed_methods, reason = "a pipe or a terminal, which a crash cannot leave half-written")]
    let opened = options.open(path);
    opened.map_or(Sink::Blocking, Sink::Reopened)
}
