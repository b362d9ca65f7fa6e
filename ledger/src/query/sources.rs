//! The processes that emitted events.

use super::fields::Fields;
use crate::store::{EventStore, Query, SourceId, StoreError};

/// A source of which the ledger does not have all events.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct IncompleteSource {
    /// The source.
    pub source: SourceId,
    /// Number of its events in the ledger.
    pub stored: u64,
    /// The number of its last event in the ledger.
    pub last: u64,
}

pub(crate) fn open_sources_query() -> Query {
    Query::new("SELECT run_id, shim_id FROM run_sources WHERE ended_at IS NULL AND is_lost = 0")
}

/// Returns the sources that have not ended and whose process is not known to have been killed.
pub fn open_sources(store: &mut dyn EventStore) -> Result<Vec<SourceId>, StoreError> {
    let source = |row| {
        let mut fields = Fields::new(row);
        SourceId { run_id: fields.required(), shim_id: fields.required() }
    };
    Ok(store.select(&open_sources_query())?.into_iter().map(source).collect())
}

/// Returns the number of runs of which a process was killed before it recorded its end.
pub fn lost_runs(store: &mut dyn EventStore) -> Result<u64, StoreError> {
    let rows = store.select(&lost_runs_query())?;
    Ok(rows.into_iter().next().map_or(0, |row| Fields::new(row).count()))
}

pub(crate) fn lost_runs_query() -> Query {
    Query::new("SELECT count(DISTINCT run_id) FROM run_sources WHERE ended_at IS NULL AND is_lost = 1")
}

pub(crate) fn incomplete_sources_query() -> Query {
    Query::new(
        "SELECT run_id, shim_id, stored, max_seq FROM (SELECT run_id, shim_id, max_seq, (SELECT count(*) FROM events \
         AS e WHERE e.run_id = s.run_id AND e.shim_id = s.shim_id AND e.seq IS NOT NULL) AS stored FROM run_sources AS \
         s WHERE max_seq IS NOT NULL) AS counted WHERE stored <> max_seq ORDER BY run_id, shim_id",
    )
}

/// Returns the sources that numbered their events, and of which the ledger lacks some.
pub fn incomplete_sources(store: &mut dyn EventStore) -> Result<Vec<IncompleteSource>, StoreError> {
    let incomplete = |row| {
        let mut fields = Fields::new(row);
        let source = SourceId { run_id: fields.required(), shim_id: fields.required() };
        IncompleteSource { source, stored: fields.count(), last: fields.count() }
    };
    Ok(store.select(&incomplete_sources_query())?.into_iter().map(incomplete).collect())
}
