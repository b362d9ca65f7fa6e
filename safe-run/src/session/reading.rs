//! Moves bytes: reads the output of the command, captures and forwards it, and relays input to its terminal.

use std::io;

use rustix::io::Errno;

use super::ready::Ready;
use super::state::Session;
use crate::capture::Stream;
use crate::options::OutputMode;

/// The largest read, in bytes.
pub(super) const READ_BYTES: usize = 256 * 1024;

/// A read of at least this many bytes makes the pipe of the stream larger.
#[cfg(target_os = "linux")]
const LARGE_READ_BYTES: usize = 48 * 1024;

/// The size of an enlarged pipe, in bytes: the most that Linux allows to every user. Other systems have smaller pipes.
pub(super) const PIPE_BYTES: usize = 1024 * 1024;

impl Session<'_> {
    /// Reads once from a stream of the command, and captures and forwards the bytes.
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

    /// Forwards pending output.
    pub(super) fn write_pending(&mut self, stream: Stream) {
        if let Err(error) = self.outputs[stream as usize].write_pending() {
            self.on_output_closed(stream, error);
        }
    }

    /// Closes the command's stream after ours was closed, so that the command gets SIGPIPE at its next write.
    fn on_output_closed(&mut self, stream: Stream, error: io::Error) {
        self.sources[stream as usize] = None;
        // A reader that closed its end knows about it. Every other error must be reported here.
        if !matches!(error.kind(), io::ErrorKind::BrokenPipe | io::ErrorKind::ConnectionReset) {
            self.output_errors.push((stream, error));
        }
    }

    /// Moves input to the terminal of the command.
    pub(super) fn relay_input(&mut self, ready: Ready) {
        if let Some(relay) = &mut self.relay {
            if ready == Ready::Input {
                relay.read();
            }
            relay.write();
        }
    }
}
