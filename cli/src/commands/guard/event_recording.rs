//! Where the events of a guard go: the options, and the recorder from its start to its end.

use std::sync::Arc;
use std::time::Duration;

use camino::Utf8PathBuf;
use counterproof_artifact::with_causes;
use counterproof_guard::agent_run::LEDGER;
use counterproof_guard::identity::{RunIdentity, event_source, process_variable};
use counterproof_guard::session::{EventSink, SinkError};
use counterproof_ledger::doctor::is_open_to_others;
use counterproof_ledger::event::EventBody;
use counterproof_ledger::location::{LedgerLocation, StateFolder};
use counterproof_ledger::recorder::{BacklogLimits, EventOrigin, Recorder, RecorderOptions};

use crate::command_error::CommandError;
use crate::streams::Streams;
use crate::value_parsers::LedgerParser;

/// How long to move the last events to the ledger. What is left stays in the spool file, from which the next process moves it.
const LAST_EVENTS: Duration = Duration::from_secs(5);

/// Where the events go.
#[derive(Debug, clap::Args)]
pub(super) struct EventsArgs {
    /// Append the events to this file as well, as JSON Lines
    #[arg(long, value_name = "FILE")]
    events: Option<Utf8PathBuf>,

    /// The ledger: a file, or the URL of a PostgreSQL database [default: `$XDG_STATE_HOME/counterproof/ledger.db`]
    #[arg(long, env = "COUNTERPROOF_LEDGER", hide_env_values = true, value_name = "FILE|URL", value_parser = LedgerParser)]
    ledger: Option<LedgerLocation>,
}

impl EventsArgs {
    /// Starts to record.
    pub(super) fn start(&self, identity: &RunIdentity, streams: &mut Streams) -> Result<EventRecording, CommandError> {
        let recording = EventRecording::start(self.ledger.clone(), self.events.clone(), identity)?;
        self.warn_about_other_ledger(streams);
        self.warn_about_readers(streams);
        Ok(recording)
    }

    /// Warns if the variable names another ledger than the option. An invalid variable does not count next to the option.
    fn warn_about_other_ledger(&self, streams: &mut Streams) {
        let other = process_variable(LEDGER).and_then(|text| text.parse::<LedgerLocation>().ok());
        let (Some(ledger), Some(other)) = (&self.ledger, other) else { return };
        let Ok(state) = StateFolder::from_environment(process_variable) else { return };
        if ledger.spool_folder(&state) != other.spool_folder(&state) {
            streams.warn(format_args!(
                "events go to the ledger `{ledger}` of the option `--ledger`, and not to `{other}` of the variable `{LEDGER}`"
            ));
        }
    }

    /// New files are private. The mode of a file that exists stays, since another program may collect the events.
    fn warn_about_readers(&self, streams: &mut Streams) {
        let Some(path) = self.events.as_deref().filter(|path| path.is_file() && is_open_to_others(path)) else {
            return;
        };
        let quoted = crate::shell::quoted(path.as_str());
        streams.warn(format_args!(
            "other users can read the events in {path}; run `chmod go-rwx -- {quoted}` if they should not"
        ));
    }
}

/// A running recorder.
pub(super) struct EventRecording(Arc<Recorder>);

impl EventRecording {
    /// Starts to record in a ledger, by default in that of the state folder, and in a file of events.
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

    /// Returns the sink for the events of a session.
    pub(super) fn sink(&self) -> Arc<dyn EventSink> {
        Arc::new(RecorderSink(self.0.clone()))
    }

    /// Moves the last events to the ledger, for a bounded time.
    pub(super) fn finish(&self, streams: &mut Streams) {
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

/// Records events in the ledger.
struct RecorderSink(Arc<Recorder>);

impl EventSink for RecorderSink {
    fn record(&self, body: EventBody) -> Result<(), SinkError> {
        self.0.record(body).map_err(|error| SinkError { message: with_causes(&error) })
    }
}
