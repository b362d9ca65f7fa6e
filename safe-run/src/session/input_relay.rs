//! Relays the command's input to the terminal of the command.

use std::os::fd::OwnedFd;

use rustix::event::{PollFd, PollFlags};
use rustix::io::Errno;

use super::io::Input;
use super::ready::Ready;

/// The character that ends the input of a terminal (Ctrl-D).
const END_OF_INPUT: u8 = 4;

/// Input on its way to the terminal of the command.
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
