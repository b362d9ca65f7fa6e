//! The processes that emitted events, and the servers of a run.

use serde::Deserialize;
use serde_json::Value;

use super::events::Fields;
use crate::event::{AGENT_SOURCE, ProcessExit, SOURCE_KIND};
use crate::store::{EventStore, Query, SourceId, StoreError};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SourceKind {
    /// An agent, whose start and end `guard run` records.
    Agent,
    Server,
}

impl SourceKind {
    /// Reads the facts of `run_start`.
    pub(super) fn from_meta(meta: &Value) -> Self {
        if meta[SOURCE_KIND] == AGENT_SOURCE { SourceKind::Agent } else { SourceKind::Server }
    }
}

pub(crate) fn source_kinds_query(run_id: &str) -> Query {
    Query::new("SELECT metadata_json FROM run_sources WHERE run_id = ?1").with(run_id)
}

pub fn source_kinds(store: &mut dyn EventStore, run_id: &str) -> Result<Vec<SourceKind>, StoreError> {
    let kind = |row| {
        let meta = Fields::new(row).text().unwrap_or_default();
        SourceKind::from_meta(&serde_json::from_str(&meta).unwrap_or_default())
    };
    Ok(store.select(&source_kinds_query(run_id))?.into_iter().map(kind).collect())
}

/// A source of which the ledger does not have all events, or all ends of calls.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct IncompleteSource {
    pub source: SourceId,
    pub stored: u64,
    pub expected: u64,
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
    // Nothing is added to a number, since the largest one has no successor.
    let is_from_zero = "CASE WHEN first = 0 THEN 1 ELSE 0 END";
    Query::new(format!(
        "SELECT run_id, shim_id, stored, first, max_seq FROM (SELECT run_id, shim_id, max_seq, (SELECT count(*) FROM \
         events AS e WHERE e.run_id = s.run_id AND e.shim_id = s.shim_id AND e.seq IS NOT NULL) AS stored, (SELECT \
         min(e.seq) FROM events AS e WHERE e.run_id = s.run_id AND e.shim_id = s.shim_id) AS first FROM run_sources AS \
         s WHERE max_seq IS NOT NULL) AS counted WHERE stored - {is_from_zero} <> max_seq ORDER BY run_id, shim_id"
    ))
}

/// Returns the sources that numbered their events, from 1 or from 0, and of which the ledger lacks some.
pub fn incomplete_sources(store: &mut dyn EventStore) -> Result<Vec<IncompleteSource>, StoreError> {
    let incomplete = |row| {
        let mut fields = Fields::new(row);
        let source = SourceId { run_id: fields.required(), shim_id: fields.required() };
        // The guard numbers from 1 on, other producers may start at 0.
        let (stored, first, last) = (fields.count(), fields.count(), fields.count());
        IncompleteSource { source, stored, expected: last.saturating_add(u64::from(first == 0)) }
    };
    Ok(store.select(&incomplete_sources_query())?.into_iter().map(incomplete).collect())
}

pub(crate) fn sources_without_calls_query() -> Query {
    // The end of an agent has the sums over all servers of its run, and the agent itself has no ends of calls.
    let ends = |and: &str| {
        format!("(SELECT count(*) FROM events AS e WHERE e.run_id = s.run_id AND e.type = 'tool_call_end'{and})")
    };
    let (of_run, of_source) = (ends(""), ends(" AND e.shim_id = s.shim_id"));
    let is_agent = format!("s.metadata_json LIKE '%\"{SOURCE_KIND}\":\"{AGENT_SOURCE}\"%'");
    Query::new(format!(
        "SELECT run_id, shim_id, ends, calls_total FROM (SELECT run_id, shim_id, calls_total, CASE WHEN {is_agent} THEN \
         {of_run} ELSE {of_source} END AS ends FROM run_sources AS s WHERE calls_total IS NOT NULL) AS counted WHERE \
         ends < calls_total ORDER BY run_id, shim_id",
    ))
}

/// Returns the sources whose end states more calls than the ledger has ends of calls.
pub fn sources_without_calls(store: &mut dyn EventStore) -> Result<Vec<IncompleteSource>, StoreError> {
    let incomplete = |row| {
        let mut fields = Fields::new(row);
        let source = SourceId { run_id: fields.required(), shim_id: fields.required() };
        IncompleteSource { source, stored: fields.count(), expected: fields.count() }
    };
    Ok(store.select(&sources_without_calls_query())?.into_iter().map(incomplete).collect())
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ServerProcess {
    pub name: Option<String>,
    /// How its run ended; `None` without an end.
    pub status: Option<String>,
    /// True if the process was killed before it recorded its end.
    pub is_lost: bool,
    /// How the server itself ended, if that was recorded.
    pub exit: Option<ProcessExit>,
}

#[derive(Deserialize)]
struct LastEvent {
    run: LastRun,
}

#[derive(Deserialize)]
struct LastRun {
    exit: Option<ProcessExit>,
}

pub(crate) fn servers_query(run_id: &str) -> Query {
    let columns = "shim_id, metadata_json, status, is_lost";
    Query::new(format!("SELECT {columns} FROM run_sources WHERE run_id = ?1")).with(run_id)
}

pub(crate) fn last_event_query(run_id: &str, shim_id: &str) -> Query {
    let text = "SELECT line FROM events WHERE run_id = ?1 AND shim_id = ?2 AND type = 'run_end'";
    Query::new(text).with(run_id).with(shim_id)
}

pub fn servers(store: &mut dyn EventStore, run_id: &str) -> Result<Vec<ServerProcess>, StoreError> {
    let mut servers = Vec::new();
    for row in store.select(&servers_query(run_id))? {
        let mut fields = Fields::new(row);
        let shim_id = fields.required();
        let meta: Value = serde_json::from_str(&fields.required()).unwrap_or_default();
        // `guard run` records the agent, which is not a server.
        if SourceKind::from_meta(&meta) == SourceKind::Agent {
            continue;
        }
        let last = store.select(&last_event_query(run_id, &shim_id))?.into_iter().next();
        let last = last.and_then(|row| serde_json::from_str::<LastEvent>(&Fields::new(row).required()).ok());
        servers.push(ServerProcess {
            name: meta["server_name"].as_str().map(str::to_owned),
            status: fields.text(),
            is_lost: fields.integer() == Some(1),
            exit: last.and_then(|last| last.run.exit),
        });
    }
    Ok(servers)
}
