//! Queries of a ledger: calls, runs, events, and what to delete.

mod call_messages;
mod calls;
mod event_pages;
mod events;
mod fields;
mod retention;
mod runs;
mod servers;
mod sources;

pub use calls::{CallFilter, CallRecord, calls, failed_calls};
pub use event_pages::EventPages;
pub use events::{EventFilter, StoredEvent, events_after, events_of_run, last_events};
pub use retention::{Prunable, prunable_runs, prune_runs};
pub use runs::{RunFilter, RunRecord, RunState, find_run, runs};
pub use servers::{ServerProcess, servers};
pub use sources::{
    IncompleteSource, SourceKind, incomplete_sources, lost_runs, open_sources, source_kinds, sources_without_calls,
};

#[cfg(test)]
mod plans;
