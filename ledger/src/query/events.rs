//! The events of a ledger, as they were written.

use super::fields::Fields;
use crate::store::{EventStore, Query, Row, StoreError};

/// Which events are returned: those that meet all conditions.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct EventFilter {
    pub run_id: Option<String>,
    /// The earliest time, as [`sortable_time`](crate::line::sortable_time) writes it.
    pub since: Option<String>,
}

/// An event in the ledger.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoredEvent {
    /// Its number in the ledger, which grows in the order of arrival.
    pub id: i64,
    /// Its time, as [`sortable_time`](crate::line::sortable_time) writes it.
    pub ts: String,
    pub run_id: String,
    /// Its type.
    pub kind: String,
    /// The line, as it was written.
    pub line: String,
}

const COLUMNS: &str = "id, ts, run_id, type, line";

impl EventFilter {
    pub(crate) fn query_after(&self, id: i64, limit: u32) -> Query {
        let mut query = Query::new(format!("SELECT {COLUMNS} FROM events WHERE id > ?1")).with(id);
        // Not `run_id =`: with the index of runs, each page would sort all events of the run.
        for (condition, value) in [("run_id || '' =", &self.run_id), ("ts >=", &self.since)] {
            if let Some(value) = value {
                let place = query.bind(value.as_str());
                query.push(&format!(" AND {condition} {place}"));
            }
        }
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
