//! Files that become durable in groups: one sync of the journal for all files that wait, then a rename for each.
//!
//! Two threads do the work (`commit_threads`). The first appends all waiting files to the journal and syncs it; meanwhile
//! more files arrive, so groups grow with the latency of the disk. The second renames the files of a group into place
//! and then reports each as committed. The files themselves are synced together, when the journal has grown long and at
//! the end; then the journal is emptied or removed. Order is preserved: an artifact never precedes the assets it links to.

use std::sync::mpsc::sync_channel;
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use camino::Utf8Path;

use super::commit_queue::{CommitQueue, FileRole, OnCommitted, QueuedFile};
use super::commit_threads::{append_groups, rename_groups};
use super::journal::JOURNAL_FILE;
use crate::write::{self, WriteError};

/// Length of the journal, in bytes, above which the files are synced and the journal is emptied.
pub(super) const MAX_JOURNAL_BYTES: u64 = 64 * 1024 * 1024;

/// Commits the small files of a run folder through its journal.
#[derive(Debug)]
pub(super) struct Committer {
    queue: Arc<CommitQueue>,
    /// Returns how long the disk was waited for. `None` after [`Committer::finish`].
    journal_thread: Mutex<Option<JoinHandle<Result<Duration, WriteError>>>>,
}

impl Committer {
    /// Starts a journal in a folder that has none.
    pub(super) fn start(folder: &Utf8Path, max_journal_bytes: u64) -> Result<Self, WriteError> {
        let path = folder.join(JOURNAL_FILE);
        let failed = |source| WriteError { path: path.clone(), source };
        let journal = write::create_log(&path)?;
        write::sync(folder)?;
        let queue = Arc::new(CommitQueue::new(folder.to_owned()));
        // At most one group waits for its renames while the next one is appended.
        let (steps, received) = sync_channel(1);
        let renames = queue.clone();
        let rename_thread = thread::Builder::new()
            .name("counterproof-files".to_owned())
            .spawn(move || rename_groups(&renames, &received))
            .map_err(failed)?;
        let appends = queue.clone();
        let journal_thread = thread::Builder::new()
            .name("counterproof-journal".to_owned())
            .spawn(move || append_groups(&appends, journal, max_journal_bytes, steps, rename_thread))
            .map_err(failed)?;
        Ok(Self { queue, journal_thread: Mutex::new(Some(journal_thread)) })
    }

    /// Queues a file, and blocks while the queue is full. Another thread calls `on_committed`, unless this returns an error.
    pub(super) fn push(
        &self,
        name: String,
        bytes: Vec<u8>,
        role: FileRole,
        on_committed: OnCommitted,
    ) -> Result<(), WriteError> {
        self.queue.push(QueuedFile { name, bytes, role, on_committed })
    }

    /// Waits until every file is renamed and synced, and removes the journal. Returns how long the disk was waited for.
    pub(super) fn finish(&self) -> Result<Duration, WriteError> {
        self.queue.close();
        let thread = self.journal_thread.lock().unwrap_or_else(PoisonError::into_inner).take();
        thread.map_or(Ok(Duration::ZERO), join)
    }
}

impl Drop for Committer {
    fn drop(&mut self) {
        // Callers that need the result have called `finish`.
        let _ = self.finish();
    }
}

/// Waits for a thread; a panic in it continues in the caller.
pub(super) fn join<T>(thread: JoinHandle<T>) -> T {
    thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc::channel;

    use super::*;

    #[test]
    fn a_long_journal_is_emptied_without_losing_files() {
        let folder = tempfile::tempdir().unwrap();
        let folder = Utf8Path::from_path(folder.path()).unwrap();
        let committer = Committer::start(folder, 400).unwrap();
        let (reports, finished) = channel();
        let mut longest = 0;
        for number in 0..100 {
            let reports = reports.clone();
            let on_committed = move |written: Result<(), WriteError>| reports.send((number, written)).unwrap();
            committer
                .push(format!("c{number}.json"), vec![b'x'; number], FileRole::Artifact, Box::new(on_committed))
                .unwrap();
            if number % 7 == 0 {
                // Reports come in order: after this one, the journal of its group was emptied or will be soon.
                while finished.recv().unwrap().0 != number {}
                longest = longest.max(folder.join(JOURNAL_FILE).metadata().unwrap().len());
            }
        }
        committer.finish().unwrap();
        // A group of seven exceeds the limit by at most 7 × (100 bytes and a head).
        assert!((1..400 + 7 * 300).contains(&longest), "{longest}");
        let is_complete =
            |number: &usize| std::fs::read(folder.join(format!("c{number}.json"))).unwrap() == vec![b'x'; *number];
        assert!((0..100).all(|number| is_complete(&number)));
        assert!(!folder.join(JOURNAL_FILE).exists());
    }
}
