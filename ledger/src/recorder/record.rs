//! A recorder: its options, its start and its end.

use std::sync::mpsc::{self, Receiver};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{self, Thread};
use std::time::{Duration, Instant};

use camino::Utf8PathBuf;
use counterproof_artifact::with_causes;

use super::drain::{Drain, DrainResult, Shared};
use super::output::{
    BacklogLimits, EventOrigin, EventText, EventsFile, Losses, Output, OwnSpool, RecordError, RecorderSummary,
};
use crate::event::EventBody;
use crate::line::is_id;
use crate::location::{LedgerLocation, StateFolder};
use crate::spool::SpoolFolder;
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

impl Recorder {
    /// Creates the files, and starts the thread that moves events to the store. Only that thread opens the database.
    pub fn start(options: RecorderOptions) -> Result<Self, RecordError> {
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
