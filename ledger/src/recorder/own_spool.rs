//! The spool file of a recorder, which is created again if another program removes it.

use std::time::Duration;

use counterproof_store::line_log::{LineReader, LineWriter, LogState};

use crate::spool::{SpoolError, SpoolFolder};
use crate::store::SourceId;

/// How long a new recorder waits for a spool file that another process has locked.
const START_WAIT: Duration = Duration::from_secs(5);

/// How long an event waits for such a file, when the file of the recorder was removed.
const RESTORE_WAIT: Duration = Duration::from_millis(100);

/// The locked spool file of a recorder.
#[derive(Debug)]
pub(super) struct OwnSpool {
    folder: SpoolFolder,
    source: SourceId,
    writer: LineWriter,
    drained: u64,
    generation: u64,
}

/// The lines that the store does not have yet.
#[derive(Debug, Clone, Copy)]
pub(super) struct Backlog {
    /// The offset of the first line.
    pub(super) start: u64,
    /// The offset after the last line.
    pub(super) end: u64,
    /// Offsets of different generations are of different contents.
    pub(super) generation: u64,
}

impl OwnSpool {
    /// Creates and locks the file.
    pub(super) fn create(folder: SpoolFolder, source: SourceId) -> Result<Self, SpoolError> {
        let writer = folder.lock(&source, START_WAIT)?;
        Ok(Self { folder, source, writer, drained: 0, generation: 0 })
    }

    /// Appends whole lines with one write. The file must be intact, see [`OwnSpool::restore`].
    pub(super) fn append(&mut self, lines: &str) -> Result<(), SpoolError> {
        Ok(self.writer.append_unsynced(lines.as_bytes())?)
    }

    /// Makes the file one that survives the end of this process. If it was removed, it is created again with the events that the
    /// store does not have. Returns how many bytes of such events another program has cut off.
    pub(super) fn restore(&mut self) -> Result<u64, SpoolError> {
        match self.writer.state() {
            LogState::Intact => return Ok(0),
            LogState::Removed => {
                let mut new = self.folder.lock(&self.source, RESTORE_WAIT)?;
                if let Err(error) = self.writer.copy_to(&mut new, self.drained) {
                    // An unlocked file would look like that of a process that has ended.
                    new.remove()?;
                    return Err(error.into());
                }
                self.writer = new;
                self.drained = 0;
                self.generation += 1;
                return Ok(0);
            }
            LogState::Resized => {}
        }
        let before = self.writer.length();
        let left = self.writer.accept_size()?;
        let cut = before - left.max(self.drained);
        self.drained = self.drained.min(left);
        self.generation += 1;
        Ok(cut)
    }

    /// Returns the lines that the store does not have yet.
    pub(super) fn backlog(&self) -> Backlog {
        Backlog { start: self.drained, end: self.writer.length(), generation: self.generation }
    }

    /// Opens the file for reading, also if it was removed.
    pub(super) fn read_from(&self, offset: u64) -> Result<LineReader, SpoolError> {
        Ok(self.writer.read_from(offset)?)
    }

    /// States that the store has the lines of a generation before an offset.
    pub(super) fn set_drained(&mut self, end: u64, generation: u64) {
        if self.generation == generation {
            self.drained = end;
        }
    }

    /// Empties the file if the store has all lines and they have at least this size.
    pub(super) fn clear_from(&mut self, size: u64) -> Result<(), SpoolError> {
        if self.drained >= size && self.backlog().bytes() == 0 {
            self.writer.clear()?;
            self.drained = 0;
            self.generation += 1;
        }
        Ok(())
    }

    /// Removes the file.
    pub(super) fn remove(self) -> Result<(), SpoolError> {
        Ok(self.writer.remove()?)
    }
}

impl Backlog {
    /// Returns the size of the lines.
    pub(super) fn bytes(self) -> u64 {
        self.end - self.start
    }
}
