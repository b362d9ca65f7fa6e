//! Checks of the events: whether some are missing.

use counterproof_artifact::with_causes;

use super::check::Check;
use crate::location::LedgerLocation;
use crate::query::{IncompleteSource, incomplete_sources, lost_runs, sources_without_calls};
use crate::store::{EventStore, SourceId};

/// Sources that are listed by name.
const LISTED: usize = 5;

/// Checks that the ledger has all events of each source that numbers them.
pub(super) fn complete(store: &mut dyn EventStore, location: &LedgerLocation) -> Check {
    match incomplete_sources(store) {
        Ok(sources) if sources.is_empty() => Check::well("events", "no gap in the numbers of any source"),
        Ok(sources) => Check::problem("events", format!("events are missing: {}", names(&sources)), add(location)),
        Err(error) => Check::problem("events", with_causes(&error), "see the other checks"),
    }
}

/// Checks that the ledger has the ends of as many calls as the end of each source states.
pub(super) fn calls(store: &mut dyn EventStore, location: &LedgerLocation) -> Check {
    match sources_without_calls(store) {
        Ok(sources) if sources.is_empty() => Check::well("calls", "as many as the end of each source states"),
        Ok(sources) => {
            Check::problem("calls", format!("ends of calls are missing: {}", names(&sources)), add(location))
        }
        Err(error) => Check::problem("calls", with_causes(&error), "see the other checks"),
    }
}

/// What to do about events that the ledger lacks.
fn add(location: &LedgerLocation) -> String {
    let location = location.to_string();
    let option = shell_words::quote(&location);
    format!("add their `--events` file, if there is one, with `counterproof ledger ingest --ledger {option} FILE`")
}

fn names(sources: &[IncompleteSource]) -> String {
    let name = |it: &IncompleteSource| {
        let IncompleteSource { source: SourceId { run_id, shim_id }, stored, expected } = it;
        format!("{stored} of {expected} in run {run_id} from {shim_id}")
    };
    let names: Vec<String> = sources.iter().take(LISTED).map(name).collect();
    let more = if sources.len() > LISTED { ", …" } else { "" };
    format!("{}{more}", names.join(", "))
}

/// Counts the runs of which a process was killed. This is not a problem of the ledger.
pub(super) fn lost(store: &mut dyn EventStore) -> Check {
    match lost_runs(store) {
        Ok(count) => Check::well("runs_without_end", format!("{count}, of which a process was killed")),
        Err(error) => Check::problem("runs_without_end", with_causes(&error), "see the other checks"),
    }
}
