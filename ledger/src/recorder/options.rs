//! Options of a recorder.

use camino::Utf8PathBuf;

use crate::event::{AgentClient, EventSource, WorkingEnvironment, Workload};
use crate::location::{LedgerLocation, StateFolder};

#[derive(Debug, Clone)]
pub struct RecorderOptions {
    /// The ledger. Without one, events are written to the file of events only.
    pub ledger: Option<LedgerLocation>,
    /// The folder in which events for a PostgreSQL database wait.
    pub state: StateFolder,
    /// A file to which the same lines are appended.
    pub events_file: Option<Utf8PathBuf>,
    /// What all events have in common.
    pub origin: EventOrigin,
    /// When previews are dropped.
    pub limits: BacklogLimits,
}

/// What all events of a source have in common.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EventOrigin {
    pub run_id: String,
    pub agent_id: String,
    /// The kind of program that the agent runs in.
    pub client: AgentClient,
    /// The environment that the agent works in.
    pub env: WorkingEnvironment,
    /// The person or service on whose behalf the agent works.
    pub principal: Option<String>,
    /// The job that the agent runs in.
    pub workload: Option<Workload>,
    /// The process that emits the events.
    pub source: EventSource,
}

/// The size of the events that the store does not have yet, at which previews are dropped and recorded again.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BacklogLimits {
    /// Previews are dropped from this number of bytes on.
    pub drop_previews_at: u64,
    /// Previews are recorded again below this number of bytes.
    pub record_previews_below: u64,
}

impl Default for BacklogLimits {
    /// 64 MiB, which 2,000 calls with the largest previews fill, and 100,000 events without previews. A ledger that accepts events
    /// again needs a few seconds for them.
    fn default() -> Self {
        Self { drop_previews_at: 64 << 20, record_previews_below: 32 << 20 }
    }
}
