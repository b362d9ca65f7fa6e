//! Files that become durable in groups: into the journal, one sync for all that wait, and then under their names.
//!
//! Two threads. The first takes whatever waits, appends it to the journal and syncs that; meanwhile more comes in, so the
//! groups grow as large as the disk is slow. The second gives the files of a group their names, and only then tells those
//! who wait for them. The files themselves are synced together, when the journal has grown long and at the end; then the
//! journal starts anew, or goes. Order is kept: an artifact never comes before the assets that it links to.

use std::collections::VecDeque;
use std::fs::File;
use std::io::{self, Write};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use camino::{Utf8Path, Utf8PathBuf};

use super::restore;
use crate::run_folder::journal::{self, JOURNAL_FILE, LARGEST};
use crate::write::{self, Durability, WriteError};

/// Bytes that may wait for the journal; whoever has more waits until there is room.
const MAX_WAITING: usize = 2 * 1024 * 1024;

/// Length of the journal, in bytes, at which the files are synced and it starts anew.
pub(super) const MAX_JOURNAL: u64 = 64 * 1024 * 1024;

/// What is called once a file is durable and has its name, or cannot be.
pub type Done = Box<dyn FnOnce(Result<(), WriteError>) + Send>;

/// A file on its way.
struct Waiting {
    /// Its place within the run folder.
    file: String,
    bytes: Vec<u8>,
    rank: Rank,
    done: Done,
}

/// What a file is to those that come after it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Rank {
    /// Nothing rests on it.
    Artifact,
    /// The next artifact may link to it: without it, nothing that comes later counts as done.
    Asset,
}

/// What goes from the first thread to the second.
enum Step {
    /// Files that are in the journal.
    Name(Vec<Waiting>),
    /// Tells that everything before it has its name.
    Tell(SyncSender<()>),
}

/// The way of a run's files to the disk.
#[derive(Debug)]
pub(super) struct Committer {
    shared: Arc<Shared>,
    thread: Mutex<Option<JoinHandle<Result<Duration, WriteError>>>>,
}

struct Shared {
    folder: Utf8PathBuf,
    max_journal: u64,
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Default)]
struct State {
    waiting: VecDeque<Waiting>,
    bytes: usize,
    closed: bool,
    /// The first failure that leaves a gap: nothing that comes later counts as done.
    failed: Option<Failure>,
}

#[derive(Debug, Clone)]
struct Failure {
    path: Utf8PathBuf,
    kind: io::ErrorKind,
    os_code: Option<i32>,
    /// What was said, for errors that carry the system's own within.
    said: String,
}

impl std::fmt::Debug for Shared {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Shared({})", self.folder)
    }
}

impl Failure {
    fn of(error: &WriteError) -> Self {
        let source = &error.source;
        Self { path: error.path.clone(), kind: source.kind(), os_code: source.raw_os_error(), said: source.to_string() }
    }

    fn to_error(&self) -> WriteError {
        let source = match self.os_code {
            Some(code) => io::Error::from_raw_os_error(code),
            None => io::Error::new(self.kind, self.said.clone()),
        };
        WriteError { path: self.path.clone(), source }
    }
}

impl Committer {
    /// Starts a journal in a folder that has none. It starts anew when it is longer than `max_journal` bytes.
    pub(super) fn start(folder: &Utf8Path, max_journal: u64) -> Result<Self, WriteError> {
        let path = folder.join(JOURNAL_FILE);
        let failed = |source| WriteError { path: path.clone(), source };
        let journal = write::create_log(&path)?;
        write::sync(folder)?;
        let shared = Arc::new(Shared {
            folder: folder.to_owned(),
            max_journal,
            state: Mutex::default(),
            changed: Condvar::default(),
        });
        let named = shared.clone();
        let (steps, received) = sync_channel(1);
        let second = thread::Builder::new().name("counterproof-files".to_owned());
        let second = second.spawn(move || named.name_all(&received)).map_err(failed)?;
        let logged = shared.clone();
        let first = thread::Builder::new().name("counterproof-journal".to_owned());
        let first = first.spawn(move || logged.log_all(journal, steps, second)).map_err(failed)?;
        Ok(Self { shared, thread: Mutex::new(Some(first)) })
    }

    /// Hands a file over. `done` is called from another thread, or never where this fails.
    pub(super) fn push(&self, file: String, bytes: Vec<u8>, rank: Rank, done: Done) -> Result<(), WriteError> {
        let mut state = self.shared.lock();
        while state.failed.is_none() && state.bytes > 0 && state.bytes + bytes.len() > MAX_WAITING {
            state = self.shared.wait(state);
        }
        if let Some(failure) = &state.failed {
            return Err(failure.to_error());
        }
        state.bytes += bytes.len();
        state.waiting.push_back(Waiting { file, bytes, rank, done });
        drop(state);
        self.shared.changed.notify_all();
        Ok(())
    }

    /// Waits until everything has its name and is synced, and removes the journal. Says how long the disk was waited for.
    pub(super) fn finish(&self) -> Result<Duration, WriteError> {
        self.shared.lock().closed = true;
        self.shared.changed.notify_all();
        let thread = self.thread.lock().unwrap_or_else(PoisonError::into_inner).take();
        thread.map_or(Ok(Duration::ZERO), join)
    }
}

impl Drop for Committer {
    fn drop(&mut self) {
        // Whoever wanted to know how it ended has called `finish`.
        let _ = self.finish();
    }
}

fn join<T>(thread: JoinHandle<T>) -> T {
    thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn wait<'a>(&self, state: MutexGuard<'a, State>) -> MutexGuard<'a, State> {
        self.changed.wait(state).unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes all that waits; `None` once there will be no more.
    fn take(&self) -> Option<Vec<Waiting>> {
        let mut state = self.lock();
        while state.waiting.is_empty() && !state.closed {
            state = self.wait(state);
        }
        state.bytes = 0;
        let group = Vec::from(std::mem::take(&mut state.waiting));
        drop(state);
        self.changed.notify_all();
        (!group.is_empty()).then_some(group)
    }

    fn fail(&self, error: &WriteError) {
        self.lock().failed.get_or_insert_with(|| Failure::of(error));
        self.changed.notify_all();
    }

    /// The first thread.
    fn log_all(
        &self,
        mut journal: File,
        steps: SyncSender<Step>,
        second: JoinHandle<()>,
    ) -> Result<Duration, WriteError> {
        let path = self.folder.join(JOURNAL_FILE);
        let failed = |source| WriteError { path: path.clone(), source };
        let (mut length, mut waited) = (0, Duration::ZERO);
        while let Some(group) = self.take() {
            let written = self.failure().map_or(Ok(()), Err).and_then(|()| {
                let start = Instant::now();
                let appended = log(&mut journal, &group).map_err(failed);
                waited += start.elapsed();
                length += appended?;
                Ok(())
            });
            if let Err(error) = written {
                self.fail(&error);
                give_up(group, &error);
                continue;
            }
            // It listens until this thread is done with it.
            let _ = steps.send(Step::Name(group));
            if length > self.max_journal {
                let (named, told) = sync_channel(1);
                let _ = steps.send(Step::Tell(named));
                let _ = told.recv();
                let start = Instant::now();
                // Synced before anything is appended, so that no record of before can stand behind one of after.
                let emptied = restore::sync_files(&self.folder)
                    .and_then(|()| journal.set_len(0).and_then(|()| journal.sync_all()).map_err(failed));
                waited += start.elapsed();
                match emptied {
                    Ok(()) => length = 0,
                    Err(error) => self.fail(&error),
                }
            }
        }
        drop(steps);
        join(second);
        let start = Instant::now();
        restore::sync_files(&self.folder)?;
        drop(journal);
        write::remove(&path)?;
        write::sync(&self.folder)?;
        Ok(waited + start.elapsed())
    }

    fn failure(&self) -> Option<WriteError> {
        self.lock().failed.as_ref().map(Failure::to_error)
    }

    /// The second thread.
    fn name_all(&self, steps: &Receiver<Step>) {
        for step in steps {
            match step {
                Step::Name(group) => group.into_iter().for_each(|waiting| self.name(waiting)),
                Step::Tell(named) => {
                    let _ = named.send(());
                }
            }
        }
    }

    fn name(&self, Waiting { file, bytes, rank, done }: Waiting) {
        let path = self.folder.join(file);
        let durability = if is_logged(&bytes) { Durability::Cached } else { Durability::Synced };
        let written = self.failure().map_or(Ok(()), Err).and_then(|()| write::write(&path, &bytes, durability));
        if let (Err(error), Rank::Asset) = (&written, rank) {
            self.fail(error);
        }
        done(written);
    }
}

/// What is larger is synced by itself.
const fn is_logged(bytes: &[u8]) -> bool {
    bytes.len() <= LARGEST
}

/// Appends a group to the journal, for good; says how many bytes that were.
fn log(journal: &mut File, group: &[Waiting]) -> io::Result<u64> {
    let mut records = Vec::new();
    for waiting in group.iter().filter(|waiting| is_logged(&waiting.bytes)) {
        journal::append(&mut records, &waiting.file, &waiting.bytes)?;
    }
    if !records.is_empty() {
        journal.write_all(&records)?;
        journal.sync_data()?;
    }
    Ok(records.len() as u64)
}

fn give_up(group: Vec<Waiting>, error: &WriteError) {
    let failure = Failure::of(error);
    for waiting in group {
        (waiting.done)(Err(failure.to_error()));
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc::channel;

    use super::*;

    #[test]
    fn a_long_journal_starts_anew_and_no_file_is_lost() {
        let folder = tempfile::tempdir().unwrap();
        let folder = Utf8Path::from_path(folder.path()).unwrap();
        let committer = Committer::start(folder, 400).unwrap();
        let (told, done) = channel();
        let mut longest = 0;
        for number in 0..100 {
            let told = told.clone();
            let tell = move |written: Result<(), WriteError>| told.send((number, written)).unwrap();
            committer.push(format!("c{number}.json"), vec![b'x'; number], Rank::Artifact, Box::new(tell)).unwrap();
            if number % 7 == 0 {
                // Whoever is told last has its name, and the journal of its group has been dealt with or soon will be.
                while done.recv().unwrap().0 != number {}
                longest = longest.max(folder.join(JOURNAL_FILE).metadata().unwrap().len());
            }
        }
        committer.finish().unwrap();
        // A group of seven is at most 7 × (100 bytes and a head) beyond the limit.
        assert!((1..400 + 7 * 300).contains(&longest), "{longest}");
        let whole =
            |number: &usize| std::fs::read(folder.join(format!("c{number}.json"))).unwrap() == vec![b'x'; *number];
        assert!((0..100).all(|number| whole(&number)));
        assert!(!folder.join(JOURNAL_FILE).exists());
    }
}
