//! Queries of a ledger: calls, runs, events, and what to delete.

mod calls;
mod events;
mod runs;
mod sources;
#[cfg(test)]
mod tests;

pub use calls::{CallFilter, CallRecord, calls, failed_calls};
pub use events::{EventFilter, EventPages, Fields, StoredEvent, events_after, events_of_run, last_events};
pub use runs::{Prunable, RunFilter, RunRecord, RunState, find_run, prunable_runs, prune_runs, runs};
pub use sources::{
    IncompleteSource, ServerProcess, SourceKind, incomplete_sources, lost_runs, open_sources, servers, source_kinds,
    sources_without_calls,
};
