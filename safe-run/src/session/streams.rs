//! Reads the output of the command, captures it, and forwards it to the streams of this process. A slow reader slows the command
//! down, as without safe-run, but does not block this program: writes are non-blocking where the system allows it.

use std::fs::{File, OpenOptions};
use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::fs::OpenOptionsExt as _;

use rustix::fs::{FileType, OFlags};
use rustix::io::Errno;
use rustix::net::SendFlags;

use super::event_loop::{Ready, Session};
use crate::capture::Stream;
use crate::options::OutputMode;

pub(super) const READ_BYTES: usize = 256 * 1024;

/// A read of at least this many bytes makes the pipe of the stream larger.
#[cfg(target_os = "linux")]
const LARGE_READ_BYTES: usize = 48 * 1024;

/// The size of an enlarged pipe, in bytes: the most that Linux allows to every user. Other systems have smaller pipes.
pub(super) const PIPE_BYTES: usize = 1024 * 1024;

impl Session<'_> {
    pub(super) fn read(&mut self, stream: Stream) {
        let index = stream as usize;
        let Some(source) = &self.sources[index] else { return };
        let read = match rustix::io::read(source, &mut self.buffer) {
            Ok(read) => read,
            Err(Errno::AGAIN | Errno::INTR) => return,
            // A terminal that no process holds any more reports an error instead of the end of the stream.
            Err(_) => 0,
        };
        if read == 0 {
            self.sources[index] = None;
            return;
        }
        #[cfg(target_os = "linux")]
        if read >= LARGE_READ_BYTES {
            // If the system refuses, reading is only slower.
            let _ = rustix::pipe::fcntl_setpipe_size(source, PIPE_BYTES);
        }
        let (bytes, at) = (&self.buffer[..read], self.started.elapsed());
        (self.observer)(stream, at, bytes);
        if self.options.output != OutputMode::ObserveOnly && self.capture_error.is_none() {
            self.capture_error = self.capture.push(stream, at, bytes).err();
        }
        if let Err(error) = self.outputs[index].push(bytes) {
            self.on_output_closed(stream, error);
        }
        self.count_output(read as u64);
        if let Some(remaining) = &mut self.remaining[index] {
            *remaining = remaining.saturating_sub(read as u64);
            if *remaining == 0 {
                self.sources[index] = None;
            }
        }
    }

    pub(super) fn write_pending(&mut self, stream: Stream) {
        if let Err(error) = self.outputs[stream as usize].write_pending() {
            self.on_output_closed(stream, error);
        }
    }

    fn on_output_closed(&mut self, stream: Stream, error: io::Error) {
        // The command gets SIGPIPE at its next write, as it would without safe-run.
        self.sources[stream as usize] = None;
        // A reader that closed its end knows about it. Every other error must be reported here.
        if !matches!(error.kind(), io::ErrorKind::BrokenPipe | io::ErrorKind::ConnectionReset) {
            self.output_errors.push((stream, error));
        }
    }

    pub(super) fn relay_input(&mut self, ready: Ready) {
        if let Some(relay) = &mut self.relay {
            if ready == Ready::Input {
                relay.read();
            }
            relay.write();
        }
    }
}

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

    pub(super) fn is_pending(&self) -> bool {
        self.written < self.pending.len()
    }

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

fn reopen(stream: Stream) -> Sink {
    let path = match stream {
        Stream::Stdout => "/dev/fd/1",
        Stream::Stderr => "/dev/fd/2",
    };
    // A new descriptor: setting the inherited one to non-blocking would affect every process that shares it.
    let flags = OFlags::NONBLOCK | OFlags::NOCTTY;
    let mut options = OpenOptions::new();
    options.write(true).custom_flags(flags.bits().cast_signed());
    #[expect(clippy::disallowed_methods, reason = "a pipe or a terminal, which a crash cannot leave half-written")]
    let opened = options.open(path);
    opened.map_or(Sink::Blocking, Sink::Reopened)
}
