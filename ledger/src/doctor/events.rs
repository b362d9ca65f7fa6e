//! Checks of the events: whether some are missing.

use counterproof_artifact::with_causes;

use super::check::Check;
use crate::query::{incomplete_sources, lost_runs};
use crate::store::EventStore;

/// Sources that are listed by name.
const LISTED: usize = 5;

/// Checks that the ledger has all events of each source that numbers them.
pub(super) fn complete(store: &mut dyn EventStore) -> Check {
    let incomplete = match incomplete_sources(store) {
        Ok(incomplete) => incomplete,
        Err(error) => return Check::problem("events", with_causes(&error), "see the other checks"),
    };
    if incomplete.is_empty() {
        return Check::well("events", "no gap in the numbers of any source");
    }
    let names = incomplete
        .iter()
        .take(LISTED)
        .map(|it| format!("{} of {} in run {} from {}", it.stored, it.last, it.source.run_id, it.source.shim_id));
    let more = if incomplete.len() > LISTED { ", …" } else { "" };
    let found = format!("events are missing: {}{more}", names.collect::<Vec<_>>().join(", "));
    Check::problem("events", found, "add the lines of their `--events` file with `ledger ingest`, if there is one")
}

/// Counts the runs of which a process was killed. This is not a problem of the ledger.
pub(super) fn lost(store: &mut dyn EventStore) -> Check {
    match lost_runs(store) {
        Ok(count) => Check::well("runs_without_end", format!("{count}, of which a process was killed")),
        Err(error) => Check::problem("runs_without_end", with_causes(&error), "see the other checks"),
    }
}
