//! The servers of a run, and how their processes ended.

use serde::Deserialize;
use serde_json::Value;

use super::fields::Fields;
use super::sources::SourceKind;
use crate::event::ProcessExit;
use crate::store::{EventStore, Query, StoreError};

/// A process that recorded a server.
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

/// Returns the processes that recorded the servers of a run.
pub fn servers(store: &mut dyn EventStore, run_id: &str) -> Result<Vec<ServerProcess>, StoreError> {
    let mut servers = Vec::new();
    for row in store.select(&servers_query(run_id))? {
        let mut fields = Fields::new(row);
        let shim_id = fields.required();
        let meta: Value = serde_json::from_str(&fields.required()).unwrap_or_default();
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
