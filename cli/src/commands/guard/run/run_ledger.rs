//! What the ledger has about the run.

use std::collections::BTreeMap;

use counterproof_artifact::one_line;
use counterproof_guard::agent_run::LEDGER;
use counterproof_guard::identity::process_variable;
use counterproof_ledger::event::ProcessExit;
use counterproof_ledger::location::LedgerLocation;
use counterproof_ledger::query::{RunRecord, ServerProcess, failed_calls, find_run, servers};
use counterproof_ledger::spool::replay;
use counterproof_ledger::store::{EventStore, StoreError};

use crate::command_error::CommandError;
use crate::commands::ledger::Place;
use crate::streams::Streams;

/// Failures of servers that are listed.
const LISTED: usize = 10;

/// Longest reason and longest name in a line, in characters.
const LONGEST: usize = 200;

/// The status of a process whose server failed.
const FAILED: &str = "FAILED";

/// The ledger of a run.
pub(super) struct RunLedger {
    place: Place,
}

/// A run, and the servers of it that were recorded.
struct RecordedRun {
    run: RunRecord,
    failed: u64,
    servers: Vec<ServerProcess>,
}

impl RunLedger {
    /// Finds the ledger: the given one, that of the variable, or the default.
    pub(super) fn new(given: Option<LedgerLocation>) -> Result<Self, CommandError> {
        let of_variable = || process_variable(LEDGER).map(|text| text.parse::<LedgerLocation>()).transpose();
        let named = match given {
            Some(given) => Some(given),
            None => of_variable().map_err(CommandError::usage)?,
        };
        Ok(Self { place: Place::new(named.as_ref())? })
    }

    pub(super) fn location(&self) -> &LedgerLocation {
        &self.place.location
    }

    /// Returns a run, if the ledger has it.
    pub(super) fn find(&self, run_id: &str) -> Result<Option<RunRecord>, StoreError> {
        let Some(mut store) = self.open()? else { return Ok(None) };
        find_run(store.as_mut(), run_id)
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
        let Some(RecordedRun { run, failed, servers }) = recorded.filter(|recorded| !recorded.servers.is_empty())
        else {
            streams.log("the ledger has no calls of this run: no server of the agent recorded in it");
            streams.log(
                "hint: put the guard in front of the servers with `counterproof guard import`, or check the `--ledger` \
                 of their shims",
            );
            return;
        };
        let option = self.place.option();
        let (calls, refused, id) = (run.calls, run.refused, crate::shell::quoted(run_id));
        streams.log(format_args!(
            "calls: {calls}, refused: {refused}, failed: {failed}; list them with `counterproof ledger query --run \
             {id}{option}`"
        ));
        let failures = failures(&servers);
        for (failure, count) in failures.iter().take(LISTED) {
            let times = if *count > 1 { format!(", {count} times") } else { String::new() };
            streams.log(format_args!("{failure}{times}"));
        }
        if failures.len() > LISTED {
            streams.log(format_args!("… and {} more servers that failed", failures.len() - LISTED));
        }
    }

    fn recorded(&self, run_id: &str) -> Result<Option<RecordedRun>, StoreError> {
        let Some(mut store) = self.open()? else { return Ok(None) };
        let Some(run) = find_run(store.as_mut(), run_id)? else { return Ok(None) };
        let failed = failed_calls(store.as_mut(), run_id)?;
        Ok(Some(RecordedRun { run, failed, servers: servers(store.as_mut(), run_id)? }))
    }
}

/// Returns a line for each failure of a server, and how often it occurred.
fn failures(servers: &[ServerProcess]) -> BTreeMap<String, usize> {
    let mut failures = BTreeMap::new();
    for server in servers {
        let detail = match &server.exit {
            _ if server.is_lost => " (no end)".to_owned(),
            _ if server.status.as_deref() != Some(FAILED) => continue,
            Some(ProcessExit::Code(0)) => " (calls had no response)".to_owned(),
            Some(ProcessExit::Code(code)) => format!(" (exit code {code})"),
            Some(ProcessExit::Signal(signal)) => format!(" (signal {signal})"),
            Some(ProcessExit::NotStarted(reason)) => format!(" ({})", one_line(reason, LONGEST)),
            None => String::new(),
        };
        let name = one_line(server.name.as_deref().unwrap_or("unknown"), LONGEST);
        *failures.entry(format!("server `{name}`: {FAILED}{detail}")).or_default() += 1;
    }
    failures
}
