//! What the ledger has about the run.

use counterproof_guard::agent_run::LEDGER;
use counterproof_guard::identity::process_variable;
use counterproof_ledger::location::LedgerLocation;
use counterproof_ledger::query::{RunFilter, RunRecord, SourceKind, runs, source_kinds};
use counterproof_ledger::spool::replay;
use counterproof_ledger::store::{EventStore, StoreError};

use crate::command_error::CommandError;
use crate::commands::ledger::Place;
use crate::streams::Streams;

/// The ledger of a run.
pub(super) struct RunLedger {
    place: Place,
    /// True if an option or a variable names it.
    is_named: bool,
}

/// A run, and whether a server of it was recorded.
struct RecordedRun {
    run: RunRecord,
    has_server: bool,
}

impl RunLedger {
    /// Finds the ledger: the given one, that of the variable, or the default.
    pub(super) fn new(given: Option<LedgerLocation>) -> Result<Self, CommandError> {
        let of_variable = || process_variable(LEDGER).map(|text| text.parse::<LedgerLocation>()).transpose();
        let named = match given {
            Some(given) => Some(given),
            None => of_variable().map_err(CommandError::usage)?,
        };
        Ok(Self { place: Place::new(named.as_ref())?, is_named: named.is_some() })
    }

    pub(super) fn location(&self) -> &LedgerLocation {
        &self.place.location
    }

    /// Returns a run, if the ledger has it.
    pub(super) fn find(&self, run_id: &str) -> Result<Option<RunRecord>, StoreError> {
        let Some(mut store) = self.open()? else { return Ok(None) };
        find(store.as_mut(), run_id)
    }

    /// Opens the ledger with the events of killed processes. Returns `None` if there is no ledger.
    fn open(&self) -> Result<Option<Box<dyn EventStore>>, StoreError> {
        let mut store = match self.place.open_store() {
            Ok(store) => store,
            Err(StoreError::Missing { .. }) => return Ok(None),
            Err(error) => return Err(error),
        };
        // Events that cannot be added stay where they are.
        let _ = replay(&self.place.spool, store.as_mut());
        Ok(Some(store))
    }

    /// Prints what the ledger has about the run. A ledger that cannot be read does not change how the run ended.
    pub(super) fn summarize(&self, run_id: &str, streams: &mut Streams) {
        let Ok(recorded) = self.recorded(run_id) else { return };
        let Some(RecordedRun { run, .. }) = recorded.filter(|recorded| recorded.has_server) else {
            streams.log("the ledger has no calls of this run: no server of the agent recorded in it");
            streams.log(
                "hint: put the guard in front of the servers with `counterproof guard import`, or check the `--ledger` \
                 of their shims",
            );
            return;
        };
        let option = if self.is_named {
            format!(" --ledger {}", crate::shell::quoted(&self.location().to_string()))
        } else {
            String::new()
        };
        let (calls, refused, id) = (run.calls, run.refused, crate::shell::quoted(run_id));
        streams.log(format_args!(
            "calls: {calls}, refused: {refused}; list them with `counterproof ledger query --run {id}{option}`"
        ));
    }

    fn recorded(&self, run_id: &str) -> Result<Option<RecordedRun>, StoreError> {
        let Some(mut store) = self.open()? else { return Ok(None) };
        let Some(run) = find(store.as_mut(), run_id)? else { return Ok(None) };
        let has_server = source_kinds(store.as_mut(), run_id)?.contains(&SourceKind::Server);
        Ok(Some(RecordedRun { run, has_server }))
    }
}

fn find(store: &mut dyn EventStore, run_id: &str) -> Result<Option<RunRecord>, StoreError> {
    let filter = RunFilter { run_id: Some(run_id.to_owned()), since: None, limit: 1 };
    Ok(runs(store, &filter)?.pop())
}
