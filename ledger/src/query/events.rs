//! The events of a ledger, as they were written, one page at a time.

use crate::store::{Cell, EventStore, Query, Row, StoreError};

/// Which events are returned: those that meet all conditions.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct EventFilter {
    pub run_id: Option<String>,
    /// The earliest time, as [`sortable_time`](crate::line::sortable_time) writes it.
    pub since: Option<String>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoredEvent {
    /// Its number in the ledger, which grows in the order of arrival.
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
    Ok(store.select(&filter.query_after(id, limit))?.into_iter().map(event).collect())
}

/// Returns the numbers of the first and the last event of a run. Returns `None` if there is no event.
pub fn events_of_run(store: &mut dyn EventStore, run_id: &str) -> Result<Option<(i64, i64)>, StoreError> {
    let rows = store.select(&events_of_run_query(run_id))?;
    let range = |row| {
        let mut fields = Fields::new(row);
        Some((fields.integer()?, fields.integer()?))
    };
    Ok(rows.into_iter().find_map(range))
}

pub(crate) fn events_of_run_query(run_id: &str) -> Query {
    Query::new("SELECT min(id), max(id) FROM events WHERE run_id = ?1").with(run_id)
}

/// Returns the events that arrived last, in the order of their arrival.
pub fn last_events(store: &mut dyn EventStore, limit: u32) -> Result<Vec<StoredEvent>, StoreError> {
    let query = last_events_query(limit);
    Ok(store.select(&query)?.into_iter().rev().map(event).collect())
}

pub(crate) fn last_events_query(limit: u32) -> Query {
    Query::new(format!("SELECT {COLUMNS} FROM events ORDER BY id DESC LIMIT ?1")).with(u64::from(limit))
}

fn event(row: Row<'static>) -> StoredEvent {
    let mut fields = Fields::new(row);
    StoredEvent {
        id: fields.integer().unwrap_or_default(),
        ts: fields.required(),
        run_id: fields.required(),
        kind: fields.required(),
        line: fields.required(),
    }
}

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

/// The values of a row that were not read yet.
pub struct Fields(std::vec::IntoIter<Cell<'static>>);

impl Fields {
    pub fn new(row: Row<'static>) -> Self {
        Self(row.into_cells().into_iter())
    }

    /// Returns the next value, if it is a text.
    pub fn text(&mut self) -> Option<String> {
        match self.0.next() {
            Some(Cell::Text(text)) => Some(text.into_owned()),
            _ => None,
        }
    }

    /// Returns the next value, which is a text in every row.
    pub fn required(&mut self) -> String {
        self.text().unwrap_or_default()
    }

    /// Returns the next value, if it is a number.
    pub fn integer(&mut self) -> Option<i64> {
        self.0.next().and_then(|cell| cell.as_integer())
    }

    /// Returns the next value, which is a count.
    pub fn count(&mut self) -> u64 {
        self.integer().and_then(|count| u64::try_from(count).ok()).unwrap_or_default()
    }
}
