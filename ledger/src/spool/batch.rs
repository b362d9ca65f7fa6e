//! A batch of lines, which is one transaction of the store.

use counterproof_store::line_log::{Line, LineReader, LogError};

use crate::line::{EventLine, LineError};
use crate::store::{Appended, EventStore, StoreError};

/// Largest number of events of a batch. A batch costs one sync of the disk, which thousands of events hide.
const MAX_EVENTS: usize = 1000;

/// Size of a batch in bytes after which no line is added. Bounds the memory, since events with previews are large.
const MAX_BYTES: usize = 4 << 20;

/// Lines that were read from a spool.
#[derive(Debug)]
pub(crate) struct SpoolBatch {
    lines: Vec<Line>,
    /// The offset after the last line.
    pub(crate) end: u64,
}

impl SpoolBatch {
    /// Reads the next lines that end before the offset `until`.
    pub(crate) fn read(reader: &mut LineReader, until: u64) -> Result<Self, LogError> {
        let mut lines = Vec::new();
        let mut bytes = 0;
        while reader.offset() < until && lines.len() < MAX_EVENTS && bytes < MAX_BYTES {
            let Some(line) = reader.next_line()? else { break };
            bytes += line.bytes.len();
            lines.push(line);
        }
        Ok(Self { lines, end: reader.offset() })
    }

    /// Returns true if there are no lines.
    pub(crate) fn is_empty(&self) -> bool {
        self.lines.is_empty()
    }

    /// Adds the events to a store. Passes invalid lines to `rejected`.
    pub(crate) fn append_to(
        &self,
        store: &mut dyn EventStore,
        mut rejected: impl FnMut(&Line, LineError),
    ) -> Result<Appended, StoreError> {
        let mut events = Vec::with_capacity(self.lines.len());
        for line in &self.lines {
            match EventLine::parse(&line.bytes) {
                Ok(event) => events.push(event),
                Err(error) => rejected(line, error),
            }
        }
        store.append(&events)
    }
}
