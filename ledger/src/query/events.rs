//! The events of a ledger, as they were written, one page at a time.

use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::store::{Cell, EventStore, Query, Row, StoreError};

/// Which events are returned: those that meet all conditions.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct EventFilter {
    pub run_id: Option<String>,
    /// The earliest time, as [`sortable_time`](crate::line::sortable_time) writes it.
    pub since: Option<String>,
}

#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct StoredEvent {
    pub id: i64,
    /// Its time, as [`sortable_time`](crate::line::sortable_time) writes it.
    pub ts: String,
    pub run_id: String,
    pub kind: String,
    pub line: String,
}

const COLUMNS: &str = "id, ts, run_id, type, line";

impl EventFilter {
    pub(crate) fn query_after(&self, id: i64, limit: u32) -> Query {
        let mut query = Query::new(format!("SELECT {COLUMNS} FROM events WHERE id > ?1")).with(id);
        // Not `run_id =`: with the index of runs, each page would sort all events of the run.
        query.restrict(" AND", &[("run_id || '' =", &self.run_id), ("ts >=", &self.since)]);
        let limit = query.bind(u64::from(limit));
        query.push(&format!(" ORDER BY id LIMIT {limit}"));
        query
    }
}

/// Returns events that arrived after the event with this number, in the order of their arrival.
pub fn events_after(
    store: &mut dyn EventStore,
    filter: &EventFilter,
    id: i64,
    limit: u32,
) -> Result<Vec<StoredEvent>, StoreError> {
    records(store, &filter.query_after(id, limit))
}

/// Returns the numbers of the first and the last event of a run. Returns `None` if there is no event.
pub fn events_of_run(store: &mut dyn EventStore, run_id: &str) -> Result<Option<(i64, i64)>, StoreError> {
    // Both are `NULL` without an event.
    Ok(records(store, &events_of_run_query(run_id))?.pop())
}

pub(crate) fn events_of_run_query(run_id: &str) -> Query {
    Query::new("SELECT min(id), max(id) FROM events WHERE run_id = ?1").with(run_id)
}

/// Returns the events that arrived last, in the order of their arrival.
pub fn last_events(store: &mut dyn EventStore, limit: u32) -> Result<Vec<StoredEvent>, StoreError> {
    let mut events = records(store, &last_events_query(limit))?;
    events.reverse();
    Ok(events)
}

pub(crate) fn last_events_query(limit: u32) -> Query {
    Query::new(format!("SELECT {COLUMNS} FROM events ORDER BY id DESC LIMIT ?1")).with(u64::from(limit))
}

const PAGE: u32 = 1000;

/// Reads the events that meet a filter, page by page, in the order of their arrival.
#[derive(Debug)]
pub struct EventPages {
    filter: EventFilter,
    last: i64,
    end: i64,
}

impl EventPages {
    /// Starts at the first event that meets the filter.
    pub fn new(store: &mut dyn EventStore, filter: EventFilter) -> Result<Self, StoreError> {
        // Events of a run that arrive later are not read.
        let (last, end) = match &filter.run_id {
            None => (0, i64::MAX),
            Some(run) => events_of_run(store, run)?.map_or((0, 0), |(first, last)| (first - 1, last)),
        };
        Ok(Self { filter, last, end })
    }

    /// Returns the next events. There are none at the end.
    pub fn next_page(&mut self, store: &mut dyn EventStore) -> Result<Vec<StoredEvent>, StoreError> {
        // Fixed at the start: a run that still grows would never end.
        if self.last >= self.end {
            return Ok(Vec::new());
        }
        let events = events_after(store, &self.filter, self.last, PAGE)?;
        self.last = events.last().map_or(self.end, |newest| newest.id);
        Ok(events)
    }
}

/// Reads the values of a row as the fields of a record, in their order. Rows of another shape, which only other programs can
/// write, are skipped.
pub(super) fn records<T: DeserializeOwned>(store: &mut dyn EventStore, query: &Query) -> Result<Vec<T>, StoreError> {
    let value = |cell| match cell {
        Cell::Null => Value::Null,
        Cell::Integer(number) => number.into(),
        Cell::Text(text) => text.into_owned().into(),
    };
    let record = |row: Row<'static>| serde_json::from_value(row.into_cells().into_iter().map(value).collect()).ok();
    Ok(store.select(query)?.into_iter().filter_map(record).collect())
}
