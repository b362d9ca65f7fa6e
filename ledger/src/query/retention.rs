//! Deletes old runs.

use super::fields::Fields;
use crate::store::{EventStore, Query, StoreError};

/// Runs that are deleted in one transaction. Recorders of other processes wait meanwhile.
const AT_ONCE: usize = 20;

/// The tables with rows of runs. The row of the run goes last, so that an interrupted deletion is continued.
const TABLES: [&str; 6] = ["hints", "previews", "tool_calls", "events", "run_sources", "runs"];

/// A run that can be deleted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Prunable {
    pub run_id: String,
    /// The time of its last event.
    pub last_event_at: String,
    /// True if a process of the run has not ended, and is not known to have died.
    pub is_open: bool,
}

pub(crate) fn prunable_query(before: &str) -> Query {
    let text = "SELECT run_id, last_event_at, status FROM runs WHERE last_event_at < ?1 ORDER BY last_event_at";
    Query::new(text).with(before)
}

/// Returns the runs whose last event is before a time, as [`sortable_time`](crate::line::sortable_time) writes it.
pub fn prunable_runs(store: &mut dyn EventStore, before: &str) -> Result<Vec<Prunable>, StoreError> {
    let prunable = |row| {
        let mut fields = Fields::new(row);
        // A run that has ended, or that was lost, has a status, which may be empty.
        Prunable { run_id: fields.required(), last_event_at: fields.required(), is_open: fields.text().is_none() }
    };
    Ok(store.select(&prunable_query(before))?.into_iter().map(prunable).collect())
}

/// Deletes runs with everything about them, and policies that no other run used since `before`.
pub fn prune_runs(store: &mut dyn EventStore, runs: &[Prunable], before: &str) -> Result<(), StoreError> {
    for runs in runs.chunks(AT_ONCE) {
        let statements = runs.iter().flat_map(|run| deletions(&run.run_id));
        store.change(&statements.collect::<Vec<_>>())?;
    }
    store.change(&[delete_policies(before)]).map(drop)
}

pub(crate) fn deletions(run_id: &str) -> impl Iterator<Item = Query> {
    TABLES.into_iter().map(move |table| Query::new(format!("DELETE FROM {table} WHERE run_id = ?1")).with(run_id))
}

pub(crate) fn delete_policies(before: &str) -> Query {
    Query::new(
        "DELETE FROM policy_versions WHERE created_at < ?1 AND rules_hash NOT IN (SELECT policy_hash FROM run_sources \
         WHERE policy_hash IS NOT NULL)",
    )
    .with(before)
}
