//! A recorder: its options, its life, and the text of an event.

use std::sync::mpsc::{self, Receiver};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::{self, Thread};
use std::time::{Duration, Instant};

use camino::Utf8PathBuf;
use counterproof_artifact::with_causes;
use jiff::Timestamp;
use serde::Serialize;

use super::drain::Signal;
use super::drain::{Drain, DrainResult};
use super::output::EventsFile;
use super::output::OwnSpool;
use super::output::{Losses, Output, RecorderSummary};
use crate::event::{AgentClient, EVENT_VERSION, EventBody, EventSource, WorkingEnvironment, Workload};
use crate::line::is_id;
use crate::location::{LedgerLocation, StateFolder};
use crate::spool::{SpoolError, SpoolFolder};
use crate::store::SourceId;

/// How much longer than its thread a recorder waits at the end.
const GRACE: Duration = Duration::from_millis(100);

/// Records the events of one source. All methods can be called from several threads.
///
/// Dropping it without [`Recorder::finish`] leaves events in the spool file, from which another process moves them to the store.
#[derive(Debug)]
pub struct Recorder {
    shared: Arc<Shared>,
    thread: Option<(Thread, Mutex<Receiver<DrainResult>>)>,
}

#[derive(Debug)]
pub(super) struct Shared {
    output: Mutex<Output>,
    pub(super) signal: Signal,
}

impl Shared {
    pub(super) fn output(&self) -> MutexGuard<'_, Output> {
        // The lock is held during writes to them only, and never while the database is used.
        self.output.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Recorder {
    /// Creates the files, and starts the thread that moves events to the store.
    pub fn start(options: RecorderOptions) -> Result<Self, RecordError> {
        // Does not open the database.
        let RecorderOptions { ledger, state, events_file, origin, limits } = options;
        let source = SourceId { run_id: origin.run_id.clone(), shim_id: origin.source.shim_id.clone() };
        // Checked once here: an event with an invalid id would be set aside as a line that no query finds.
        for (field, id) in [("run_id", &source.run_id), ("shim_id", &source.shim_id)] {
            if !is_id(id) {
                return Err(RecordError::Id { field });
            }
        }
        let events = events_file.as_deref().map(EventsFile::open).transpose()?;
        let mut output = Output {
            text: EventText::new(&origin)?,
            spool: None,
            spool_path: None,
            events,
            limits,
            seq: 0,
            recorded: 0,
            losses: Losses::default(),
            has_ended: false,
            is_closed: false,
            drops_previews: false,
            dropped_previews: 0,
            events_file_error: None,
        };
        // Only a file of events: there is nothing to move, so no thread either.
        let Some(ledger) = ledger else {
            return Ok(Self { shared: Arc::new(Shared::new(output)), thread: None });
        };
        let folder = SpoolFolder::new(ledger.spool_folder(&state));
        output.spool = Some(OwnSpool::create(folder.clone(), source.clone())?);
        output.spool_path = Some(folder.file(&source).path().to_owned());
        Self::with_thread(output, ledger, folder, source)
    }

    fn with_thread(
        output: Output,
        ledger: LedgerLocation,
        folder: SpoolFolder,
        source: SourceId,
    ) -> Result<Self, RecordError> {
        let shared = Arc::new(Shared::new(output));
        // A channel and not a join: the thread may wait for a database that does not answer, and `finish` must not.
        let (sender, receiver) = mpsc::sync_channel(1);
        let drain = Drain::new(Arc::clone(&shared), ledger, folder, source);
        let thread = thread::Builder::new()
            .name("ledger".to_owned())
            // The recorder may have stopped waiting.
            .spawn(move || drop(sender.send(drain.run())))
            .map_err(RecordError::Thread)?;
        Ok(Self { shared, thread: Some((thread.thread().clone(), Mutex::new(receiver))) })
    }

    /// Records an event. When this returns, the event is not lost if the process is killed.
    pub fn record(&self, body: EventBody) -> Result<(), RecordError> {
        // The lock is held for one write to a local file. The caller never waits for the database.
        self.shared.output().record(body)?;
        if let Some((thread, _)) = &self.thread {
            thread.unpark();
        }
        Ok(())
    }

    /// Moves all events to the store and removes the spool file. Gives up after the time limit; the events are then left in the
    /// spool.
    pub fn finish(&self, limit: Duration) -> Result<RecorderSummary, RecordError> {
        // First, so that no event is recorded after the thread has ended.
        self.shared.output().is_closed = true;
        let ended = self.end_thread(limit);
        let mut output = self.shared.output();
        // Before the bytes are counted: another program may have cut some off.
        let restored = output.restore_spool();
        // Under the lock, and after the thread was asked to end: nothing is added any more.
        let left_bytes = output.backlog();
        let mut left_in = output.spool_path.clone().filter(|_| left_bytes > 0);
        let mut store_error = match &ended {
            Some(drained) => drained.error.clone(),
            None => Some(format!("the database did not answer within {} ms", limit.as_millis())),
        };
        if store_error.is_none() {
            store_error = Some(format!("not all events were stored within {} ms", limit.as_millis()));
        }
        if let Err(error) = restored {
            (left_in, store_error) = (None, Some(with_causes(&error)));
        }
        if ended.is_some() {
            // Unlocks the file, from which other processes move the events then.
            output.spool = None;
        }
        Ok(RecorderSummary {
            events: output.recorded,
            dropped_previews: output.dropped_previews,
            cut_off_bytes: output.losses.cut_off_bytes(),
            left_bytes,
            left_in,
            store_error: store_error.filter(|_| left_bytes > 0),
            events_file_error: output.events_file_error.take(),
        })
    }

    fn end_thread(&self, limit: Duration) -> Option<DrainResult> {
        let (thread, receiver) = self.thread.as_ref()?;
        self.shared.signal.finish(Instant::now() + limit, thread);
        receiver.lock().unwrap_or_else(PoisonError::into_inner).recv_timeout(limit + GRACE).ok()
    }
}

impl Drop for Recorder {
    fn drop(&mut self) {
        if let Some((thread, _)) = &self.thread {
            self.shared.signal.finish(Instant::now(), thread);
        }
    }
}

impl Shared {
    fn new(output: Output) -> Self {
        Self { output: Mutex::new(output), signal: Signal::default() }
    }
}

#[derive(Debug, Clone)]
pub struct RecorderOptions {
    /// The ledger. Without one, events are written to the file of events only.
    pub ledger: Option<LedgerLocation>,
    /// The folder in which events for a PostgreSQL database wait.
    pub state: StateFolder,
    pub events_file: Option<Utf8PathBuf>,
    pub origin: EventOrigin,
    pub limits: BacklogLimits,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EventOrigin {
    pub run_id: String,
    pub agent_id: String,
    pub client: AgentClient,
    pub env: WorkingEnvironment,
    /// The person or service on whose behalf the agent works.
    pub principal: Option<String>,
    pub workload: Option<Workload>,
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
        // Two limits, so that previews are not switched on and off with each event.
        Self { drop_previews_at: 64 << 20, record_previews_below: 32 << 20 }
    }
}

/// A recorder that cannot start, or an event that cannot be recorded.
#[derive(Debug, thiserror::Error)]
pub enum RecordError {
    #[error("failed to record the event")]
    Spool(#[from] SpoolError),
    #[error("failed to write the event to `{path}`")]
    EventsFile { path: Utf8PathBuf, source: std::io::Error },
    #[error("`{field}` must have 1 to 256 bytes and no NUL character")]
    Id { field: &'static str },
    #[error("failed to serialise the event")]
    Serialise(#[from] serde_json::Error),
    #[error("the run has ended; no event is recorded after its end")]
    Ended,
    #[error("failed to start a thread")]
    Thread(#[source] std::io::Error),
}

#[derive(Debug)]
pub(super) struct EventText {
    run_id: String,
    /// The other fields of the envelope, without braces.
    rest: String,
}

#[derive(Serialize)]
struct Rest<'a> {
    agent_id: &'a str,
    client: AgentClient,
    env: WorkingEnvironment,
    source: &'a EventSource,
    #[serde(skip_serializing_if = "Option::is_none")]
    principal: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    workload: Option<&'a Workload>,
}

impl EventText {
    pub(super) fn new(origin: &EventOrigin) -> Result<Self, serde_json::Error> {
        let rest = serde_json::to_string(&Rest {
            agent_id: &origin.agent_id,
            client: origin.client,
            env: origin.env,
            source: &origin.source,
            principal: origin.principal.as_deref(),
            workload: origin.workload.as_ref(),
        })?;
        let run_id = serde_json::to_string(&origin.run_id)?;
        // Without the braces: the fields of the event follow in the same object.
        Ok(Self { run_id, rest: rest[1..rest.len() - 1].to_owned() })
    }

    /// Returns the line of an event, with its newline. The body is an object with the field `type`.
    pub(super) fn line(&self, seq: u64, ts: Timestamp, body: &str) -> String {
        let Self { run_id, rest } = self;
        let body = &body[1..];
        // Joined as text: the envelope is the same for all events of a source, and an agent waits for each of them.
        format!("{{\"v\":\"{EVENT_VERSION}\",\"ts\":\"{ts}\",\"run_id\":{run_id},\"seq\":{seq},{rest},{body}\n")
    }
}

pub(super) fn drop_previews(body: &mut EventBody) -> bool {
    match body {
        EventBody::ToolCallStart { call } if call.preview.args_preview.is_some() => {
            call.preview.args_preview = None;
            // Readers must see that the preview is missing, and not take the call for one without arguments.
            call.preview.truncated = true;
            true
        }
        EventBody::ToolCallEnd(end) if end.preview.result_preview.is_some() => {
            end.preview.result_preview = None;
            end.preview.truncated = true;
            true
        }
        _ => false,
    }
}
