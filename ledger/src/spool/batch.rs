//! A batch of lines, which is one transaction of the store.

use std::thread;

use camino::{Utf8Path, Utf8PathBuf};
use counterproof_store::line_log::{Line, LineReader, LogError};
use counterproof_store::write;

use super::SpoolError;
use crate::line::EventLine;
use crate::store::{Appended, EventStore};

/// Largest number of events of a batch. A batch costs one sync of the disk, which thousands of events hide.
const MAX_EVENTS: usize = 1000;

/// Size of a batch in bytes after which no line is added. Bounds the memory, since events with previews are large.
const MAX_BYTES: usize = 4 << 20;

/// Lines that were read from a spool.
#[derive(Debug)]
pub(crate) struct SpoolBatch {
    lines: Vec<Line>,
    start: u64,
    /// The offset after the last line.
    pub(crate) end: u64,
}

impl SpoolBatch {
    /// Reads the next lines that end before the offset `until`. Bytes after it may be a part of a line that is cut off again.
    pub(crate) fn read(reader: &mut LineReader, until: u64) -> Result<Self, LogError> {
        let start = reader.offset();
        let mut lines = Vec::new();
        let mut bytes = 0;
        reader.set_end(until);
        while reader.offset() < until && lines.len() < MAX_EVENTS && bytes < MAX_BYTES {
            let Some(line) = reader.next_line()? else { break };
            bytes += line.bytes.len();
            lines.push(line);
        }
        Ok(Self { lines, start, end: reader.offset() })
    }

    /// Returns true if nothing was read.
    pub(crate) fn is_empty(&self) -> bool {
        self.end == self.start
    }

    /// Adds the events to a store. Invalid lines are set aside in a file next to the spool file. Returns their number,
    /// too.
    pub(crate) fn move_to(&self, store: &mut dyn EventStore, spool: &Utf8Path) -> Result<(Appended, u64), SpoolError> {
        let mut events = Vec::with_capacity(self.lines.len());
        let (mut rejected, mut count) = (Vec::new(), 0);
        for line in self.lines.iter().filter(|line| !line.bytes.is_empty()) {
            // The thread that forwards messages goes first on a busy machine.
            thread::yield_now();
            if let Ok(event) = EventLine::parse(&line.bytes) {
                events.push(event);
                continue;
            }
            rejected.extend_from_slice(&line.bytes);
            rejected.push(b'\n');
            count += 1;
        }
        let appended = store.append(&events)?;
        if count > 0 {
            write::append(&Utf8PathBuf::from(format!("{spool}.rejected")), &rejected)?;
        }
        Ok((appended, count))
    }
}
