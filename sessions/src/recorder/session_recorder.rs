//! The recorder of one session: its start, its records and its end.

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::{self, Receiver, SyncSender};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Duration;

use camino::Utf8PathBuf;
use counterproof_ledger::location::LedgerLocation;
use counterproof_redaction::{RedactError, Redactor};
use counterproof_store::FileLock;
use serde_json::Value;

use super::spool::{SessionSpool, SpoolError};
use super::writer::{Job, Writer};
use crate::event::SessionEvent;
use crate::session::{Origin, SessionHead};
use crate::store::{Batch, Encoder, HeadRow, SessionStore, StoredEvents, redactor};

/// How long records wait for the store before they are written to a file. The agent waits meanwhile.
const STORE_WAIT: Duration = Duration::from_secs(1);

/// Batches that wait for the store. Further ones go to files.
const MAX_WAITING: usize = 64;

/// How long a new recorder waits for a process that only looks whether the session runs.
const LOCK_WAIT: Duration = Duration::from_secs(2);

pub struct RecorderOptions {
    pub ledger: LedgerLocation,
    pub spool: SessionSpool,
    pub head: SessionHead,
    /// Go on with a session that the store has, after its last record. The head is the stored one, with the status `running`
    /// and without an end.
    pub continues: bool,
    /// The session, if it is held already.
    pub held: Option<HeldSession>,
    /// Fail if the store does not take the start of the session.
    pub requires_store: bool,
    /// Values that are masked in what is stored, next to the keys of known formats.
    pub secrets: Vec<String>,
    /// Called once when records cannot be stored, and wait in a file.
    pub warn: Box<dyn Fn(&str) + Send + Sync>,
}

/// Records one session. All methods can be called from several threads.
pub struct SessionRecorder {
    session_id: String,
    spool: SessionSpool,
    state: Mutex<State>,
    files: AtomicU64,
    /// The store did not answer in time. The thread resets it when it does.
    is_behind: Arc<AtomicBool>,
    warn: Box<dyn Fn(&str) + Send + Sync>,
    thread: Mutex<Option<thread::JoinHandle<()>>>,
    ended: Mutex<Receiver<()>>,
    /// Other processes see by the lock that the session runs.
    _held: HeldSession,
}

struct State {
    encoder: Encoder,
    origin: Origin,
    secrets: BTreeSet<String>,
    version: u64,
    has_warned: bool,
    recorded: u64,
    /// `None` after the end.
    jobs: Option<SyncSender<Job>>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RecorderSummary {
    pub events: u64,
    /// True if records wait in the spool folder.
    pub has_waiting: bool,
}

#[derive(Debug, thiserror::Error)]
pub enum RecordError {
    #[error(transparent)]
    Spool(#[from] SpoolError),
    #[error("failed to serialise a record")]
    Serialise(#[from] serde_json::Error),
    #[error(transparent)]
    Redact(#[from] RedactError),
    #[error("the session `{0}` is recorded by another process")]
    Running(String),
    #[error("the ledger has no session `{0}` to continue")]
    Missing(String),
    #[error("the store does not take the session: {0}")]
    Store(String),
    #[error("failed to lock `{path}`")]
    Lock { path: Utf8PathBuf, source: std::io::Error },
    #[error("failed to start a thread")]
    Thread(#[source] std::io::Error),
    #[error("the session has ended; no record is added after its end")]
    Ended,
}

/// A session that no other process of this machine can record, or go on with. Other processes see that it runs.
#[derive(Debug)]
pub struct HeldSession(#[expect(dead_code, reason = "held until it is dropped")] FileLock);

impl HeldSession {
    pub fn new(spool: &SessionSpool, session_id: &str) -> Result<Self, RecordError> {
        spool.create().map_err(SpoolError::from)?;
        let path = spool.lock_path(session_id);
        let lock_error = |source| RecordError::Lock { path: path.clone(), source };
        let lock = FileLock::lock_within(&path, LOCK_WAIT)
            .map_err(lock_error)?
            .ok_or_else(|| RecordError::Running(session_id.to_owned()))?;
        // A request for an earlier process, which ended before it saw it.
        spool.takes_pause(session_id);
        lock.set_content(&std::process::id().to_string()).map_err(lock_error)?;
        Ok(Self(lock))
    }
}

impl SessionRecorder {
    /// Starts a session, or goes on with one. From then on, only its thread opens the database.
    pub fn start(options: RecorderOptions) -> Result<Self, RecordError> {
        let RecorderOptions { ledger, spool, head, continues, held, requires_store, secrets, warn } = options;
        let held = held.map_or_else(|| HeldSession::new(&spool, &head.session_id), Ok)?;
        let version = if continues { stored_version(&ledger, &spool, &head.session_id)? } else { 0 };
        let secrets = BTreeSet::from_iter(secrets);
        let encoder = Encoder::new(redactor(head.origin, &secrets)?);
        let (jobs, received) = mpsc::sync_channel(MAX_WAITING);
        let (sender, ended) = mpsc::channel();
        let is_behind = Arc::new(AtomicBool::new(false));
        let writer = Writer::new(ledger, spool.clone(), head.session_id.clone(), received, is_behind.clone());
        let thread = thread::Builder::new().name("session".to_owned()).spawn(move || {
            writer.run();
            drop(sender);
        });
        let recorder = Self {
            session_id: head.session_id.clone(),
            spool,
            state: Mutex::new(State {
                encoder,
                origin: head.origin,
                secrets,
                version,
                has_warned: false,
                recorded: 0,
                jobs: Some(jobs),
            }),
            files: AtomicU64::new(0),
            is_behind,
            warn,
            thread: Mutex::new(Some(thread.map_err(RecordError::Thread)?)),
            ended: Mutex::new(ended),
            _held: held,
        };
        if let Placed::Waiting { path, reason } = recorder.put(Some(&head), Vec::new())?
            && requires_store
        {
            // The session does not start, so nothing of it may be stored later.
            let _ = std::fs::remove_file(path);
            return Err(RecordError::Store(reason));
        }
        Ok(recorder)
    }

    pub fn session_id(&self) -> &str {
        &self.session_id
    }

    /// Masks a value as it is masked in records.
    pub fn masked(&self, mut value: Value) -> Value {
        self.state().encoder.mask_json(&mut value);
        value
    }

    /// Returns the search for what is masked in records.
    pub fn redactor(&self) -> Redactor {
        self.state().encoder.redactor().clone()
    }

    /// Adds a value that is masked in all later records.
    pub fn mask(&self, secret: &str) -> Result<(), RecordError> {
        let mut state = self.state();
        if is_maskable(secret) && state.secrets.insert(secret.to_owned()) {
            let redactor = redactor(state.origin, &state.secrets)?;
            state.encoder.set_redactor(redactor);
        }
        Ok(())
    }

    /// Records events. When this returns, they are in the store, or in a file from which they are added later.
    pub fn record(&self, events: Vec<SessionEvent>) -> Result<(), RecordError> {
        self.put(None, events).map(drop)
    }

    /// Records the end, adds the calls that the guard has recorded for the session, and waits for the store within a time. What
    /// it does not have then waits in files.
    pub fn finish(&self, head: &SessionHead, limit: Duration) -> Result<RecorderSummary, RecordError> {
        let ended = self.put(Some(head), Vec::new());
        self.state().jobs = None;
        self.spool.takes_pause(&self.session_id);
        // A channel and not a join: the thread may wait for a database that does not answer.
        let receiver = self.ended.lock().unwrap_or_else(PoisonError::into_inner);
        if receiver.recv_timeout(limit) == Err(mpsc::RecvTimeoutError::Disconnected)
            && let Some(thread) = self.thread.lock().unwrap_or_else(PoisonError::into_inner).take()
        {
            let _ = thread.join();
        }
        ended?;
        let has_waiting = self.spool.has_files_of(&self.session_id);
        Ok(RecorderSummary { events: self.state().recorded, has_waiting })
    }

    fn put(&self, head: Option<&SessionHead>, events: Vec<SessionEvent>) -> Result<Placed, RecordError> {
        let (batch, answer) = {
            let mut state = self.state();
            let count = events.len() as u64;
            let stored = if events.is_empty() { StoredEvents::default() } else { state.encoder.encode(events)? };
            let head = head.map(|head| {
                state.version += 1;
                HeadRow::new(head, state.version, |text| state.encoder.mask(text))
            });
            state.recorded += count;
            let batch = Arc::new(Batch { session_id: self.session_id.clone(), head, stored });
            let (answer, answered) = mpsc::sync_channel(1);
            let jobs = state.jobs.as_ref().ok_or(RecordError::Ended)?;
            // In the order of the records. While the store is behind, the agent must not wait for it with each of them.
            let is_behind = self.is_behind.load(Ordering::Acquire);
            let is_sent = !is_behind && jobs.try_send(Job { batch: batch.clone(), answer }).is_ok();
            (batch, is_sent.then_some(answered))
        };
        let reason = match answer.map(|answer| answer.recv_timeout(STORE_WAIT)) {
            Some(Ok(Ok(()))) => return Ok(Placed::Stored),
            Some(Ok(Err(reason))) => reason,
            Some(Err(_)) => {
                self.is_behind.store(true, Ordering::Release);
                "the database does not answer".to_owned()
            }
            None => "the database does not answer".to_owned(),
        };
        self.warn_once(&reason);
        let number = self.files.fetch_add(1, Ordering::Relaxed);
        match self.spool.put(&batch, number) {
            Ok(path) => Ok(Placed::Waiting { path, reason }),
            Err(error) => {
                // The store has neither the records nor their texts.
                self.state().encoder.forget();
                Err(error.into())
            }
        }
    }

    fn warn_once(&self, reason: &str) {
        if !std::mem::replace(&mut self.state().has_warned, true) {
            let folder = self.spool.path();
            (self.warn)(&format!("the session cannot be stored now, and waits in `{folder}`: {reason}"));
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Returns the version of the row of a session that an earlier process recorded, after all that it left behind was added.
fn stored_version(ledger: &LedgerLocation, spool: &SessionSpool, session_id: &str) -> Result<u64, RecordError> {
    // All records may wait for a ledger that could not be created before.
    let has_waiting = spool.has_files_of(session_id);
    let open = if has_waiting { counterproof_ledger::open_or_create } else { counterproof_ledger::open };
    let mut store = open(ledger).and_then(SessionStore::new).map_err(SpoolError::from)?;
    let drained = spool.drain(&mut store);
    if spool.has_files_of(session_id) {
        // Records would be out of order, or lost under the name of a new file.
        drained?;
    }
    let version = store.version(session_id).map_err(SpoolError::from)?;
    version.ok_or_else(|| RecordError::Missing(session_id.to_owned()))
}

/// Where a batch is.
enum Placed {
    Stored,
    /// In a file, from which it is added later.
    Waiting {
        path: Utf8PathBuf,
        reason: String,
    },
}

/// Shortest value that is masked in any case, in bytes.
const MIN_SECRET: usize = 8;

/// Returns true unless a value is too short, or a short word. Such dummy keys, such as `test`, occur in unrelated text.
fn is_maskable(secret: &str) -> bool {
    let is_word = secret.bytes().all(|byte| byte.is_ascii_alphabetic());
    secret.len() >= MIN_SECRET || (secret.len() >= counterproof_redaction::SHORTEST && !is_word)
}
