//! Events in pages, so that a ledger of any size can be read.

use super::events::{EventFilter, StoredEvent, events_after, events_of_run};
use crate::store::{EventStore, StoreError};

/// Events that are read at once.
const PAGE: u32 = 1000;

/// Reads the events that meet a filter, page by page, in the order of their arrival.
#[derive(Debug)]
pub struct EventPages {
    filter: EventFilter,
    last: i64,
    end: i64,
}

impl EventPages {
    /// Starts at the first event that meets the filter. Events of a run that arrive later are not read.
    pub fn new(store: &mut dyn EventStore, filter: EventFilter) -> Result<Self, StoreError> {
        let (last, end) = match &filter.run_id {
            None => (0, i64::MAX),
            Some(run) => events_of_run(store, run)?.map_or((0, 0), |(first, last)| (first - 1, last)),
        };
        Ok(Self { filter, last, end })
    }

    /// Returns the next events. There are none at the end.
    pub fn next_page(&mut self, store: &mut dyn EventStore) -> Result<Vec<StoredEvent>, StoreError> {
        if self.last >= self.end {
            return Ok(Vec::new());
        }
        let events = events_after(store, &self.filter, self.last, PAGE)?;
        self.last = events.last().map_or(self.end, |newest| newest.id);
        Ok(events)
    }
}
