//! The bounded queue of files that wait for the journal, and the first failure of the run.

use std::collections::VecDeque;
use std::fmt;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};

use camino::Utf8PathBuf;

use crate::write::{RepeatableError, WriteError};

/// Bytes that may wait for the journal. A caller with more blocks until there is room.
const MAX_QUEUED_BYTES: usize = 2 * 1024 * 1024;

/// Called once a file is durable and has its name, or with the error that prevented it.
pub type OnCommitted = Box<dyn FnOnce(Result<(), WriteError>) + Send>;

/// A file that waits to be committed.
pub(super) struct QueuedFile {
    /// Its path within the run folder.
    pub(super) name: String,
    pub(super) bytes: Vec<u8>,
    pub(super) role: FileRole,
    pub(super) on_committed: OnCommitted,
}

/// Whether later files depend on a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum FileRole {
    /// No other file links to it.
    Artifact,
    /// The next artifact may link to it: where it fails, all later files fail too.
    Asset,
}

/// The queue between the callers and the two threads of the committer.
pub(super) struct CommitQueue {
    pub(super) folder: Utf8PathBuf,
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Default)]
struct State {
    files: VecDeque<QueuedFile>,
    bytes: usize,
    is_closed: bool,
    /// The first failure that leaves a gap: no later file counts as committed.
    failed: Option<Failure>,
}

#[derive(Debug, Clone)]
struct Failure {
    path: Utf8PathBuf,
    error: RepeatableError,
}

impl Failure {
    fn to_error(&self) -> WriteError {
        WriteError { path: self.path.clone(), source: (&self.error).into() }
    }
}

impl From<&WriteError> for Failure {
    fn from(error: &WriteError) -> Self {
        Self { path: error.path.clone(), error: (&error.source).into() }
    }
}

impl fmt::Debug for CommitQueue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "CommitQueue({})", self.folder)
    }
}

impl CommitQueue {
    pub(super) fn new(folder: Utf8PathBuf) -> Self {
        Self { folder, state: Mutex::default(), changed: Condvar::default() }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn wait<'a>(&self, state: MutexGuard<'a, State>) -> MutexGuard<'a, State> {
        self.changed.wait(state).unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds a file, and blocks while the queue is full.
    pub(super) fn push(&self, file: QueuedFile) -> Result<(), WriteError> {
        let mut state = self.lock();
        // An empty queue takes a file of any size; otherwise a large one would wait forever.
        while state.failed.is_none() && state.bytes > 0 && state.bytes + file.bytes.len() > MAX_QUEUED_BYTES {
            state = self.wait(state);
        }
        if let Some(failure) = &state.failed {
            return Err(failure.to_error());
        }
        state.bytes += file.bytes.len();
        state.files.push_back(file);
        drop(state);
        self.changed.notify_all();
        Ok(())
    }

    /// Takes all waiting files, and blocks until there is one. Returns `None` once the queue is closed and empty.
    pub(super) fn take_group(&self) -> Option<Vec<QueuedFile>> {
        let mut state = self.lock();
        while state.files.is_empty() && !state.is_closed {
            state = self.wait(state);
        }
        // All waiting files become one group: one sync of the disk then pays for all of them.
        state.bytes = 0;
        let group = Vec::from(std::mem::take(&mut state.files));
        drop(state);
        self.changed.notify_all();
        (!group.is_empty()).then_some(group)
    }

    /// Ends the queue: no file is added afterwards.
    pub(super) fn close(&self) {
        self.lock().is_closed = true;
        self.changed.notify_all();
    }

    /// Stores a failure, unless there was one before.
    pub(super) fn fail(&self, error: &WriteError) {
        self.lock().failed.get_or_insert_with(|| error.into());
        // Wakes the callers that wait for room: with a failure, they return it and wait no longer.
        self.changed.notify_all();
    }

    /// Returns the first failure as an error.
    pub(super) fn check(&self) -> Result<(), WriteError> {
        self.lock().failed.as_ref().map_or(Ok(()), |failure| Err(failure.to_error()))
    }
}

/// Reports the same error for every file of a group.
pub(super) fn reject(group: Vec<QueuedFile>, error: &WriteError) {
    let failure = Failure::from(error);
    for file in group {
        (file.on_committed)(Err(failure.to_error()));
    }
}
