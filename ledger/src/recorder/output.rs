//! Where the events of a recorder go first: the spool file and the file of events.

use camino::Utf8PathBuf;
use counterproof_artifact::with_causes;
use jiff::Timestamp;

use super::event_text::{EventText, body_text, drop_previews};
use super::events_file::EventsFile;
use super::own_spool::OwnSpool;
use super::{BacklogLimits, RecordError};
use crate::event::{EventBody, ShimHealth};
use crate::spool::SpoolError;

/// The files of a recorder. Only writes to these files happen under its lock.
#[derive(Debug)]
pub(super) struct Output {
    pub(super) text: EventText,
    pub(super) spool: Option<OwnSpool>,
    pub(super) spool_path: Option<Utf8PathBuf>,
    pub(super) events: Option<EventsFile>,
    pub(super) limits: BacklogLimits,
    /// The number of the last event. An event that cannot be written has a number, so that its absence is noticed.
    pub(super) seq: u64,
    pub(super) recorded: u64,
    pub(super) losses: Losses,
    pub(super) has_ended: bool,
    /// True after the recorder has finished.
    pub(super) is_closed: bool,
    pub(super) drops_previews: bool,
    pub(super) dropped_previews: u64,
    pub(super) events_file_error: Option<RecordError>,
}

/// What was lost since the last event that was recorded.
#[derive(Debug, Default)]
pub(super) struct Losses {
    /// Events that could not be written.
    events: u64,
    /// Why the first of them could not be written.
    reason: String,
    /// Bytes of events that another program has cut off.
    bytes: u64,
}

/// How a recorder has ended.
#[derive(Debug)]
pub struct Finished {
    /// Number of events that were recorded.
    pub events: u64,
    /// Number of events whose preview was dropped, because the store was too slow.
    pub dropped_previews: u64,
    /// Bytes of events that another program has cut off the spool file, and that no event states.
    pub cut_off_bytes: u64,
    /// Bytes of events that are not in the store yet. They are in the spool file, from which another process moves them.
    pub left_bytes: u64,
    /// The spool file with these events. `None` if there are none, or if it was removed and cannot be created again.
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
        let written = self.restore_spool().map_err(RecordError::from).and_then(|()| self.write(&body));
        if let Err(error) = written {
            self.seq += 1;
            self.losses.add_event(&error);
            return Err(error);
        }
        self.losses = Losses::default();
        self.dropped_previews += u64::from(dropped);
        self.has_ended = matches!(body, EventBody::RunEnd { .. });
        Ok(())
    }

    /// Writes an event, and before it one that states what was lost.
    fn write(&mut self, body: &EventBody) -> Result<(), RecordError> {
        let now = Timestamp::now();
        let mut lines = String::new();
        let mut count = 0;
        if let Some(health) = self.losses.health() {
            count += 1;
            lines += &self.text.line(self.seq + count, now, &body_text(&EventBody::ShimHealth { health })?);
        }
        count += 1;
        lines += &self.text.line(self.seq + count, now, &body_text(body)?);
        if let Some(spool) = &mut self.spool {
            spool.append(&lines)?;
        }
        if let Some(events) = &mut self.events {
            match events.append(&lines) {
                // The event is in the spool.
                Err(error) if self.spool.is_some() => drop(self.events_file_error.get_or_insert(error)),
                written => written?,
            }
        }
        self.seq += count;
        self.recorded += count;
        Ok(())
    }

    /// Creates the spool file again if it was removed.
    pub(super) fn restore_spool(&mut self) -> Result<(), SpoolError> {
        if let Some(spool) = &mut self.spool {
            self.losses.bytes += spool.restore()?;
        }
        Ok(())
    }

    /// Returns the number of bytes that the store does not have yet.
    pub(super) fn backlog(&self) -> u64 {
        self.spool.as_ref().map_or(0, |spool| spool.backlog().bytes())
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

impl Losses {
    fn add_event(&mut self, error: &RecordError) {
        if self.events == 0 {
            self.reason = with_causes(error);
        }
        self.events += 1;
    }

    /// Returns the number of bytes that another program has cut off.
    pub(super) fn cut_off_bytes(&self) -> u64 {
        self.bytes
    }

    /// Returns what to record about the losses.
    fn health(&self) -> Option<ShimHealth> {
        let events =
            (self.events > 0).then(|| format!("events that were not recorded: {} ({})", self.events, self.reason));
        let bytes = (self.bytes > 0).then(|| {
            format!("bytes of events that were cut off the spool file before the ledger had them: {}", self.bytes)
        });
        let message: Vec<String> = events.into_iter().chain(bytes).collect();
        (!message.is_empty()).then(|| ShimHealth { code: "events_lost".to_owned(), message: message.join("; ") })
    }
}
