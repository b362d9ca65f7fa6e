//! Where the events of a guard go: the options, the recorder from its start to its end, and the ledger of `guard run`.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use camino::Utf8PathBuf;
use counterproof_artifact::{one_line, with_causes};
use counterproof_guard::agent_run::LEDGER;
use counterproof_guard::identity::{RunIdentity, event_source, process_variable};
use counterproof_guard::session::{EventSink, SinkError};
use counterproof_ledger::doctor::is_open_to_others;
use counterproof_ledger::event::{EventBody, ProcessExit};
use counterproof_ledger::location::{LedgerLocation, StateFolder};
use counterproof_ledger::query::{RunRecord, ServerProcess, failed_calls, find_run, servers};
use counterproof_ledger::recorder::{BacklogLimits, EventOrigin, Recorder, RecorderOptions};
use counterproof_ledger::spool::replay;
use counterproof_ledger::store::{EventStore, StoreError};

use crate::command_error::CommandError;
use crate::commands::ledger::Place;
use crate::streams::Streams;
use crate::value_parsers::LedgerParser;

/// How long to move the last events to the ledger.
const LAST_EVENTS: Duration = Duration::from_secs(5);

/// Where the events go.
#[derive(Debug, clap::Args)]
pub(super) struct EventsArgs {
    /// Append the events to this file as well, as JSON Lines
    #[arg(long, value_name = "FILE")]
    events: Option<Utf8PathBuf>,

    /// Ledger: a SQLite file, or a `postgres://` URL [default: `$XDG_STATE_HOME/counterproof/ledger.db`]
    #[arg(long, env = "COUNTERPROOF_LEDGER", hide_env_values = true, value_name = "FILE|URL", value_parser = LedgerParser)]
    ledger: Option<LedgerLocation>,
}

impl EventsArgs {
    pub(super) fn start(&self, identity: &RunIdentity, streams: &mut Streams) -> Result<EventRecording, CommandError> {
        let recording = EventRecording::start(self.ledger.clone(), self.events.clone(), identity)?;
        // Only for a recording that has started: otherwise the error explains more.
        self.warn_about_other_ledger(streams);
        self.warn_about_readers(streams);
        Ok(recording)
    }

    /// Warns if the variable names another ledger than the option.
    fn warn_about_other_ledger(&self, streams: &mut Streams) {
        // An invalid variable does not count next to the option.
        let other = process_variable(LEDGER).and_then(|text| text.parse::<LedgerLocation>().ok());
        let (Some(ledger), Some(other)) = (&self.ledger, other) else { return };
        let Ok(state) = StateFolder::from_environment(process_variable) else { return };
        // By their spools, which are the same for all names of a ledger.
        if ledger.spool_folder(&state) != other.spool_folder(&state) {
            streams.warn(format_args!(
                "events go to the ledger `{ledger}` of the option `--ledger`, and not to `{other}` of the variable `{LEDGER}`"
            ));
        }
    }

    /// Warns if other users can read a file of events that existed before.
    fn warn_about_readers(&self, streams: &mut Streams) {
        // New files are private. The mode of a file that exists stays, since another program may collect the events.
        let Some(path) = self.events.as_deref().filter(|path| path.is_file() && is_open_to_others(path)) else {
            return;
        };
        let quoted = crate::resume_command::quoted(path.as_str());
        streams.warn(format_args!(
            "other users can read the events in {path}; run `chmod go-rwx -- {quoted}` if they should not"
        ));
    }
}

pub(super) struct EventRecording(Arc<Recorder>);

impl EventRecording {
    /// Starts to record in a ledger, by default in the one of the state folder, and in a file of events.
    pub(super) fn start(
        ledger: Option<LedgerLocation>,
        events_file: Option<Utf8PathBuf>,
        identity: &RunIdentity,
    ) -> Result<Self, CommandError> {
        let state = StateFolder::from_environment(process_variable);
        let state = state.map_err(|error| CommandError::usage(error).hint("set XDG_STATE_HOME or HOME"))?;
        let options = RecorderOptions {
            ledger: Some(ledger.unwrap_or_else(|| LedgerLocation::default_in(&state))),
            state,
            events_file,
            origin: EventOrigin {
                run_id: identity.run_id.clone(),
                agent_id: identity.agent_id.clone(),
                client: identity.client,
                env: identity.env,
                principal: identity.principal.clone(),
                workload: identity.workload.clone(),
                source: event_source(),
            },
            limits: BacklogLimits::default(),
        };
        Ok(Self(Arc::new(Recorder::start(options).map_err(CommandError::io)?)))
    }

    pub(super) fn sink(&self) -> Arc<dyn EventSink> {
        Arc::new(RecorderSink(self.0.clone()))
    }

    /// Moves the last events to the ledger, for a bounded time.
    pub(super) fn finish(&self, streams: &mut Streams) {
        // What is left after this time stays in the spool file, from which the next process moves it.
        match self.0.finish(LAST_EVENTS) {
            Ok(finished) => {
                if let Some(error) = finished.events_file_error {
                    streams.warn(with_causes(&error));
                }
                if finished.cut_off_bytes > 0 {
                    let bytes = finished.cut_off_bytes;
                    streams
                        .warn(format!("another program has cut off events of the spool file: {bytes} bytes are lost"));
                }
                match (finished.left_in, finished.store_error) {
                    (Some(path), Some(error)) => {
                        streams.warn(format!("events wait in {path} for the ledger: {error}"));
                    }
                    (None, Some(error)) => {
                        streams.warn(format!("events are lost ({} bytes): {error}", finished.left_bytes));
                    }
                    (_, None) => {}
                }
            }
            Err(error) => streams.warn(with_causes(&error)),
        }
    }
}

struct RecorderSink(Arc<Recorder>);

impl EventSink for RecorderSink {
    fn record(&self, body: EventBody) -> Result<(), SinkError> {
        self.0.record(body).map_err(|error| SinkError { message: with_causes(&error) })
    }
}

const LISTED: usize = 10;

/// Longest reason and longest name in a line, in characters.
const LONGEST: usize = 200;

const FAILED: &str = "FAILED";

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
    pub(super) fn new(given: Option<LedgerLocation>) -> Result<Self, CommandError> {
        // Read here and not by the argument parser: an invalid variable must not prevent `guard run`.
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

    /// Prints what the ledger has about the run.
    pub(super) fn summarize(&self, run_id: &str, streams: &mut Streams) {
        // A ledger that cannot be read does not change how the run ended.
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
        let (calls, refused, id) = (run.calls, run.refused, crate::resume_command::quoted(run_id));
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
            // Before the status: a process that was killed recorded neither a status nor an exit.
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
