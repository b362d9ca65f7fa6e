//! The runs of a ledger, and the deletion of old ones.

use serde::Serialize;

use super::events::Fields;
use crate::store::{EventStore, Query, StoreError};

/// Which runs are returned: those that meet all conditions.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct RunFilter {
    pub run_id: Option<String>,
    /// The earliest start, as [`sortable_time`](crate::line::sortable_time) writes it.
    pub since: Option<String>,
    /// Largest number of runs. The latest ones are returned.
    pub limit: u32,
}

/// A run: what its sources have in common.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct RunRecord {
    pub run_id: String,
    pub agent_id: Option<String>,
    pub client: Option<String>,
    pub env: Option<String>,
    /// The person or service on whose behalf the agent works.
    pub principal: Option<String>,
    #[serde(skip)]
    pub workload_json: Option<String>,
    pub started_at: Option<String>,
    pub last_event_at: Option<String>,
    /// When its last source ended; `None` if not all sources have ended.
    pub ended_at: Option<String>,
    /// The worst status of its sources; `None` while one of them is open.
    pub status: Option<String>,
    pub sources: u64,
    pub calls: u64,
    /// Number of calls that were not allowed.
    pub refused: u64,
    /// Number of calls that ended with another status than `OK`.
    pub errors: u64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum RunState {
    Ended,
    /// A process was killed before it recorded its end.
    Lost,
    /// A source has not ended. The caller must check whether its process is running.
    Open,
}

const COLUMNS: &str =
    "run_id, agent_id, client, env, principal, workload_json, started_at, last_event_at, ended_at, status";

impl RunRecord {
    pub fn state(&self) -> RunState {
        match (&self.ended_at, &self.status) {
            (Some(_), _) => RunState::Ended,
            // A status without an end: all sources are closed, and one of them was killed.
            (None, Some(_)) => RunState::Lost,
            (None, None) => RunState::Open,
        }
    }
}

impl RunFilter {
    pub(crate) fn query(&self) -> Query {
        // Subqueries, so that a limit of runs also limits what is counted.
        let count = |table: &str, condition: &str| {
            format!("(SELECT count(*) FROM {table} AS t WHERE t.run_id = runs.run_id{condition})")
        };
        let counts = [
            count("run_sources", ""),
            count("tool_calls", ""),
            count("tool_calls", " AND t.decision <> 'ALLOW'"),
            count("tool_calls", " AND t.status <> 'OK'"),
        ];
        let mut query = Query::new(format!("SELECT {COLUMNS}, {} FROM runs", counts.join(", ")));
        query.restrict(" WHERE", &[("run_id =", &self.run_id), ("started_at >=", &self.since)]);
        let limit = query.bind(u64::from(self.limit));
        query.push(&format!(" ORDER BY started_at DESC LIMIT {limit}"));
        query
    }
}

pub fn runs(store: &mut dyn EventStore, filter: &RunFilter) -> Result<Vec<RunRecord>, StoreError> {
    let rows = store.select(&filter.query())?;
    let record = |row| {
        let mut fields = Fields::new(row);
        RunRecord {
            run_id: fields.required(),
            agent_id: fields.text(),
            client: fields.text(),
            env: fields.text(),
            principal: fields.text(),
            workload_json: fields.text(),
            started_at: fields.text(),
            last_event_at: fields.text(),
            ended_at: fields.text(),
            status: fields.text(),
            sources: fields.count(),
            calls: fields.count(),
            refused: fields.count(),
            errors: fields.count(),
        }
    };
    Ok(rows.into_iter().map(record).collect())
}

pub fn find_run(store: &mut dyn EventStore, run_id: &str) -> Result<Option<RunRecord>, StoreError> {
    let filter = RunFilter { run_id: Some(run_id.to_owned()), since: None, limit: 1 };
    Ok(runs(store, &filter)?.pop())
}

/// Runs that are deleted in one transaction. Recorders of other processes wait meanwhile.
const AT_ONCE: usize = 20;

/// The tables with rows of runs. The row of the run goes last, so that an interrupted deletion is continued.
const TABLES: [&str; 6] = ["hints", "previews", "tool_calls", "events", "run_sources", "runs"];

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Prunable {
    pub run_id: String,
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
    // Whole runs in one transaction: no reader sees a run without its events.
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
