//! The two threads of the committer: one appends to the journal, the other renames files into place.

use std::fs::File;
use std::io::{self, Write};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use super::commit_queue::{CommitQueue, FileRole, QueuedFile, reject};
use super::committer::join;
use super::journal::{self, JOURNAL_FILE, MAX_FILE_BYTES};
use super::restore;
use crate::write::{self, Durability, WriteError};

/// A message from the journal thread to the rename thread.
pub(super) enum Step {
    /// Files that are in the journal.
    Rename(Vec<QueuedFile>),
    /// A request for a reply once all earlier files have their names.
    Flush(SyncSender<()>),
}

/// The journal while it is written, with the time spent waiting for the disk.
struct OpenJournal<'a> {
    queue: &'a CommitQueue,
    file: File,
    length: u64,
    waited: Duration,
}

/// The journal thread: appends groups until the queue is closed, then syncs all files and removes the journal. Returns how
/// long the disk was waited for.
pub(super) fn append_groups(
    queue: &CommitQueue,
    file: File,
    max_journal_bytes: u64,
    steps: SyncSender<Step>,
    rename_thread: JoinHandle<()>,
) -> Result<Duration, WriteError> {
    let mut journal = OpenJournal { queue, file, length: 0, waited: Duration::ZERO };
    while let Some(group) = queue.take_group() {
        if let Err(error) = queue.check().and_then(|()| journal.append(&group)) {
            // The loop goes on after a failure, so that every queued file gets its error and no caller waits forever.
            queue.fail(&error);
            reject(group, &error);
            continue;
        }
        // Sends cannot fail: the rename thread receives until `steps` is dropped.
        let _ = steps.send(Step::Rename(group));
        if journal.length > max_journal_bytes {
            // Files without a name cannot be synced, and their only durable copy is the journal: wait for the renames.
            let (reply, flushed) = sync_channel(1);
            let _ = steps.send(Step::Flush(reply));
            let _ = flushed.recv();
            if let Err(error) = journal.empty() {
                queue.fail(&error);
            }
        }
    }
    // Ends the rename thread, which receives until the last sender is gone.
    drop(steps);
    join(rename_thread);
    journal.remove()
}

impl OpenJournal<'_> {
    /// Appends a group and syncs it.
    fn append(&mut self, group: &[QueuedFile]) -> Result<(), WriteError> {
        let start = Instant::now();
        let appended = append(&mut self.file, group).map_err(|source| self.failed(source));
        self.waited += start.elapsed();
        self.length += appended?;
        Ok(())
    }

    /// Syncs the files of the journal, all of which have their names, and empties the journal.
    fn empty(&mut self) -> Result<(), WriteError> {
        let start = Instant::now();
        // The truncation is synced before the next append; otherwise a power loss could leave an old record after a new one.
        let emptied = restore::sync_files(&self.queue.folder).and_then(|()| {
            self.file.set_len(0).and_then(|()| self.file.sync_all()).map_err(|source| self.failed(source))
        });
        self.waited += start.elapsed();
        emptied?;
        self.length = 0;
        Ok(())
    }

    /// Syncs the files of the journal and removes it.
    fn remove(self) -> Result<Duration, WriteError> {
        let start = Instant::now();
        let folder = &self.queue.folder;
        // Files before the journal: until they are durable, the journal is their only durable copy.
        restore::sync_files(folder)?;
        // Windows does not remove an open file.
        drop(self.file);
        write::remove(&folder.join(JOURNAL_FILE))?;
        write::sync(folder)?;
        Ok(self.waited + start.elapsed())
    }

    fn failed(&self, source: io::Error) -> WriteError {
        WriteError { path: self.queue.folder.join(JOURNAL_FILE), source }
    }
}

/// The rename thread: gives the files of each group their names, and reports them as committed.
pub(super) fn rename_groups(queue: &CommitQueue, steps: &Receiver<Step>) {
    for step in steps {
        match step {
            Step::Rename(group) => group.into_iter().for_each(|file| commit(queue, file)),
            Step::Flush(reply) => {
                let _ = reply.send(());
            }
        }
    }
}

fn commit(queue: &CommitQueue, QueuedFile { name, bytes, role, on_committed }: QueuedFile) {
    let path = queue.folder.join(name);
    // A journaled file is durable already, so its own sync can wait for the end of the journal.
    let durability = if is_journaled(&bytes) { Durability::Cached } else { Durability::Synced };
    let written = queue.check().and_then(|()| write::write(&path, &bytes, durability));
    if let (Err(error), FileRole::Asset) = (&written, role) {
        queue.fail(error);
    }
    on_committed(written);
}

/// True for files that go through the journal. Larger ones are synced on their own.
const fn is_journaled(bytes: &[u8]) -> bool {
    bytes.len() <= MAX_FILE_BYTES
}

/// Appends a group to the journal and syncs it. Returns the number of bytes.
fn append(journal: &mut File, group: &[QueuedFile]) -> io::Result<u64> {
    // One write and one sync for the whole group.
    let mut records = Vec::new();
    for file in group.iter().filter(|file| is_journaled(&file.bytes)) {
        journal::append(&mut records, &file.name, &file.bytes)?;
    }
    if !records.is_empty() {
        journal.write_all(&records)?;
        journal.sync_data()?;
    }
    Ok(records.len() as u64)
}
