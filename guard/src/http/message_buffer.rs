//! A message that arrives in pieces: whole up to the limit of the inspection, and scanned beyond it.

use crate::mcp::{ScannedMessage, Scanner};
use crate::session::MAX_INSPECT_BYTES;

/// Collects one message.
#[derive(Debug, Default)]
pub(super) struct MessageBuffer {
    bytes: Vec<u8>,
    scanner: Option<Box<Scanner>>,
    length: u64,
}

#[derive(Debug)]
pub(super) enum CollectedMessage {
    Whole(Vec<u8>),
    /// What was found in a larger message.
    Scanned {
        /// The fields that decide.
        found: Box<ScannedMessage>,
        /// Size in bytes.
        length: u64,
    },
}

impl MessageBuffer {
    /// Adds a piece.
    pub(super) fn push(&mut self, piece: &[u8]) {
        self.length += piece.len() as u64;
        if self.scanner.is_none() {
            if self.bytes.len() + piece.len() <= MAX_INSPECT_BYTES {
                self.bytes.extend_from_slice(piece);
                return;
            }
            let mut scanner = Box::<Scanner>::default();
            scanner.push(&std::mem::take(&mut self.bytes));
            self.scanner = Some(scanner);
        }
        if let Some(scanner) = &mut self.scanner {
            scanner.push(piece);
        }
    }

    /// True if nothing was added.
    pub(super) const fn is_empty(&self) -> bool {
        self.length == 0
    }

    /// Returns the message, and starts the next one.
    pub(super) fn take(&mut self) -> CollectedMessage {
        let Self { bytes, scanner, length } = std::mem::take(self);
        match scanner {
            None => CollectedMessage::Whole(bytes),
            Some(scanner) => CollectedMessage::Scanned { found: Box::new(scanner.finish()), length },
        }
    }
}
