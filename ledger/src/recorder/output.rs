//! Where the events of a recorder go first: the spool file and the file of events.

use camino::Utf8PathBuf;
use counterproof_store::line_log::LineWriter;
use jiff::Timestamp;

use super::event_text::{EventText, body_text, drop_previews};
use super::events_file::EventsFile;
use super::{BacklogLimits, RecordError};
use crate::event::EventBody;
use crate::spool::SpoolError;

/// The files of a recorder. Only writes to these files happen under its lock.
#[derive(Debug)]
pub(super) struct Output {
    pub(super) text: EventText,
    pub(super) spool: Option<LineWriter>,
    pub(super) spool_path: Option<Utf8PathBuf>,
    pub(super) events: Option<EventsFile>,
    pub(super) limits: BacklogLimits,
    /// Bytes of the spool that the store has.
    pub(super) drained: u64,
    pub(super) seq: u64,
    pub(super) has_ended: bool,
    /// True after the recorder has finished.
    pub(super) is_closed: bool,
    pub(super) drops_previews: bool,
    pub(super) dropped_previews: u64,
    pub(super) events_file_error: Option<RecordError>,
}

/// How a recorder has ended.
#[derive(Debug)]
pub struct Finished {
    /// Number of events that were recorded.
    pub events: u64,
    /// Number of events whose preview was dropped, because the store was too slow.
    pub dropped_previews: u64,
    /// Bytes of events that are not in the store yet. They are in the spool file, from which another process moves them.
    pub left_bytes: u64,
    /// The spool file, if it has events.
    pub left_in: Option<Utf8PathBuf>,
    /// Why events are left, as one line.
    pub store_error: Option<String>,
    /// The first error of the file of events, which does not stop the recording if there is a ledger.
    pub events_file_error: Option<RecordError>,
}

impl Output {
    /// Writes an event.
    pub(super) fn record(&mut self, mut body: EventBody) -> Result<(), RecordError> {
        if self.has_ended || self.is_closed {
            return Err(RecordError::Ended);
        }
        self.update_drops_previews();
        let dropped = self.drops_previews && drop_previews(&mut body);
        let line = self.text.line(self.seq + 1, Timestamp::now(), &body_text(&body)?);
        if let Some(spool) = &mut self.spool {
            spool.append_unsynced(line.as_bytes()).map_err(SpoolError::from)?;
        }
        if let Some(events) = &mut self.events {
            match events.append(&line) {
                // The event is in the spool.
                Err(error) if self.spool.is_some() => drop(self.events_file_error.get_or_insert(error)),
                written => written?,
            }
        }
        // Only now: an event that was not written has no number.
        self.seq += 1;
        self.dropped_previews += u64::from(dropped);
        self.has_ended = matches!(body, EventBody::RunEnd { .. });
        Ok(())
    }

    /// Returns the number of bytes that the store does not have yet.
    pub(super) fn backlog(&self) -> u64 {
        self.spool.as_ref().map_or(0, |spool| spool.length() - self.drained)
    }

    fn update_drops_previews(&mut self) {
        let backlog = self.backlog();
        if backlog >= self.limits.drop_previews_at {
            self.drops_previews = true;
        } else if backlog < self.limits.record_previews_below {
            self.drops_previews = false;
        }
    }
}
