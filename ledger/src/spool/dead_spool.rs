//! A spool file that a process has left behind.

use counterproof_store::line_log::{LineLog, LineReader, LineWriter};

use super::folder::is_whole;
use super::{SpoolBatch, SpoolError, SpoolFolder};
use crate::query::open_sources;
use crate::store::{Appended, EventStore};

/// A spool file whose process has ended. This process holds its lock.
#[derive(Debug)]
pub(crate) struct DeadSpool {
    folder: SpoolFolder,
    log: LineLog,
    writer: LineWriter,
    reader: LineReader,
    rejected: u64,
}

/// The outcome of a step.
#[derive(Debug)]
pub(crate) enum Step {
    /// Events were moved; others may follow.
    Moved(Appended),
    /// All events are in the store, and the file is removed.
    Done {
        /// Number of invalid lines. They are in a file of their own.
        rejected: u64,
    },
}

impl DeadSpool {
    /// Locks a spool file. Returns `None` if its process is running, or if another process has moved its events.
    pub(crate) fn take(folder: &SpoolFolder, log: &LineLog) -> Result<Option<Self>, SpoolError> {
        let Some(writer) = log.take_over(is_whole)? else { return Ok(None) };
        let Some(reader) = log.read_from(0)? else { return Ok(None) };
        Ok(Some(Self { folder: folder.clone(), log: log.clone(), writer, reader, rejected: 0 }))
    }

    /// Moves a batch of events to the store.
    pub(crate) fn step(mut self, store: &mut dyn EventStore) -> Result<(Option<Self>, Step), SpoolError> {
        let batch = SpoolBatch::read(&mut self.reader, self.writer.length())?;
        if batch.is_empty() {
            return self.finish(store).map(|step| (None, step));
        }
        let (appended, rejected) = batch.move_to(store, self.log.path())?;
        self.rejected += rejected;
        Ok((Some(self), Step::Moved(appended)))
    }

    fn finish(self, store: &mut dyn EventStore) -> Result<Step, SpoolError> {
        // The process had one source, and has not stated its end. After its last batch, the file may have no event that names it.
        for source in open_sources(store)? {
            if self.folder.file(&source).path() == self.log.path() {
                store.mark_lost(&source)?;
            }
        }
        self.writer.remove()?;
        Ok(Step::Done { rejected: self.rejected })
    }
}
