//! Waiting for everything at once, and reading what is there.

use std::io;
use std::os::fd::OwnedFd;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec};
use rustix::io::Errno;

use super::Input;
use super::start::Session;
use crate::capture::Stream;
use crate::options::Output;

/// The most that one read takes, in bytes.
pub(super) const READ: usize = 256 * 1024;

/// From this many bytes in one read on, a stream is given a larger pipe.
#[cfg(target_os = "linux")]
const MANY: usize = 48 * 1024;

/// The size of a larger pipe, in bytes: what the system allows everyone. Others hold less.
pub(super) const PIPE: usize = 1024 * 1024;

/// What there is something to do for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Ready {
    Source(Stream),
    Passage(Stream),
    Control,
    Signals,
    Input,
    InputRoom,
}

/// What the command is to read, on its way to the command's terminal.
pub(super) struct Relay {
    pub(super) master: OwnedFd,
    source: Input,
    waiting: Vec<u8>,
    is_at_end: bool,
}

/// What a terminal takes for the end of its input.
const END_OF_INPUT: u8 = 4;

impl Relay {
    pub(super) fn new(master: OwnedFd, source: Input) -> Self {
        Self { master, source, waiting: Vec::new(), is_at_end: false }
    }

    fn read(&mut self) {
        let mut buffer = [0; 4096];
        match rustix::io::read(&self.source, &mut buffer) {
            Ok(0) | Err(_) => {
                self.is_at_end = true;
                self.waiting.push(END_OF_INPUT);
            }
            Ok(read) => self.waiting.extend_from_slice(&buffer[..read]),
        }
    }

    fn write(&mut self) {
        match rustix::io::write(&self.master, &self.waiting) {
            Ok(written) => drop(self.waiting.drain(..written)),
            Err(Errno::AGAIN | Errno::INTR) => {}
            Err(_) => {
                self.waiting.clear();
                self.is_at_end = true;
            }
        }
    }
}

impl Session<'_> {
    /// What can be done now; nothing when a deadline has come.
    pub(super) fn wait(&self) -> io::Result<Vec<Ready>> {
        let mut roles = Vec::with_capacity(8);
        let mut polled = Vec::with_capacity(8);
        for stream in Stream::ALL {
            let passage = &self.passages[stream as usize];
            if passage.is_waiting() {
                roles.push(Ready::Passage(stream));
                polled.push(PollFd::new(passage, PollFlags::OUT));
            } else if let Some(source) = &self.sources[stream as usize] {
                roles.push(Ready::Source(stream));
                polled.push(PollFd::new(source, PollFlags::IN));
            }
        }
        if let Some(control) = &self.control {
            roles.push(Ready::Control);
            polled.push(PollFd::new(control, PollFlags::IN));
        }
        roles.push(Ready::Signals);
        polled.push(PollFd::new(&self.signals, PollFlags::IN));
        if let Some(relay) = self.relay.as_ref().filter(|_| self.ending.is_none()) {
            if !relay.waiting.is_empty() {
                roles.push(Ready::InputRoom);
                polled.push(PollFd::new(&relay.master, PollFlags::OUT));
            } else if !relay.is_at_end {
                roles.push(Ready::Input);
                polled.push(PollFd::new(&relay.source, PollFlags::IN));
            }
        }
        let patience = self.deadline.map(|deadline| deadline.saturating_duration_since(Instant::now()));
        let patience = patience.and_then(|patience| Timespec::try_from(patience + Duration::from_millis(1)).ok());
        match rustix::event::poll(&mut polled, patience.as_ref()) {
            Err(Errno::INTR) | Ok(_) => {}
            Err(error) => return Err(error.into()),
        }
        let ready = roles.into_iter().zip(&polled).filter(|(_, polled)| !polled.revents().is_empty());
        Ok(ready.map(|(role, _)| role).collect())
    }

    /// Reads once from a stream of the command, keeps it and passes it on.
    pub(super) fn read(&mut self, stream: Stream) {
        let index = stream as usize;
        let Some(source) = &self.sources[index] else { return };
        let read = match rustix::io::read(source, &mut self.buffer) {
            Ok(read) => read,
            Err(Errno::AGAIN | Errno::INTR) => return,
            // A terminal that nobody holds any more is an error and no end.
            Err(_) => 0,
        };
        if read == 0 {
            self.sources[index] = None;
            return;
        }
        #[cfg(target_os = "linux")]
        if read >= MANY && self.buffer.len() == READ {
            // Where the system refuses, it is only slower.
            let _ = rustix::pipe::fcntl_setpipe_size(source, PIPE);
        }
        let (bytes, at) = (&self.buffer[..read], self.started.elapsed());
        (self.observer)(stream, at, bytes);
        if self.options.output != Output::Observed && self.lost.is_none() {
            self.lost = self.tape.push(stream, at, bytes).err();
        }
        if let Err(error) = self.passages[index].push(bytes) {
            self.passage_closed(stream, error);
        }
        if let Some(owed) = &mut self.owed[index] {
            *owed = owed.saturating_sub(read as u64);
            if *owed == 0 {
                self.sources[index] = None;
            }
        }
    }

    /// Goes on passing on what waits.
    pub(super) fn advance(&mut self, stream: Stream) {
        if let Err(error) = self.passages[stream as usize].advance() {
            self.passage_closed(stream, error);
        }
    }

    /// Nothing goes to ours any more, so nobody shall seem to read the command's.
    fn passage_closed(&mut self, stream: Stream, error: io::Error) {
        self.sources[stream as usize] = None;
        // A reader that has left knows that it has. Everything else is a loss that nobody else would tell.
        if !matches!(error.kind(), io::ErrorKind::BrokenPipe | io::ErrorKind::ConnectionReset) {
            self.unwritten.push((stream, error));
        }
    }

    /// Relays what the command is to read to its terminal.
    pub(super) fn relay(&mut self, ready: Ready) {
        if let Some(relay) = &mut self.relay {
            if ready == Ready::Input {
                relay.read();
            }
            relay.write();
        }
    }
}
