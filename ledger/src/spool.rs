//! Spool files: where events are until the store has them.
//!
//! Each recorder has one file, which it locks, in a folder next to the ledger. A file without a lock belongs to a process that has
//! ended: another process moves its events to the store.

use std::time::Duration;
use std::{io, thread};

use camino::{Utf8Path, Utf8PathBuf};
use counterproof_artifact::Sha256Digest;
use counterproof_store::line_log::{Line, LineLog, LineReader, LineWriter, LockOptions, LogError};
use counterproof_store::write::{self, WriteError};

use crate::line::EventLine;
use crate::query::open_sources;
use crate::store::{AppendResult, EventStore, SourceId, StoreError};

const EXTENSION: &str = "jsonl";

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SpoolFolder(Utf8PathBuf);

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WaitingFile {
    pub path: Utf8PathBuf,
    pub bytes: u64,
    pub state: SpoolState,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SpoolState {
    Living,
    Dead,
}

impl SpoolFolder {
    /// Names a folder. It is created with the first spool file.
    pub fn new(path: impl Into<Utf8PathBuf>) -> Self {
        Self(path.into())
    }

    pub fn path(&self) -> &Utf8Path {
        &self.0
    }

    /// Creates the folder, which only its owner may enter.
    fn create(&self) -> Result<(), SpoolError> {
        Ok(write::create_private_folder(&self.0)?)
    }

    pub(crate) fn file(&self, source: &SourceId) -> LineLog {
        // The name of the file follows from the source, so that others can find out whether the process of a source is
        // alive.
        let text = format!("{}\n{}", source.run_id, source.shim_id);
        let name = Sha256Digest::from_bytes(text.as_bytes()).to_string();
        LineLog::new(self.0.join(format!("{}.{EXTENSION}", &name[..32])))
    }

    /// Locks the spool file of a source, and creates it if necessary. Waits for another process that looks at it.
    pub(crate) fn lock(&self, source: &SourceId, wait: Duration) -> Result<LineWriter, SpoolError> {
        self.create()?;
        let log = self.file(source);
        // The lock is how others know that this process lives. The system releases it whatever kills the process.
        let writer = log.lock(&LockOptions { wait }, is_whole)?;
        // The folder is private. A file that a person moves elsewhere stays private.
        #[cfg(unix)]
        writer
            .file()
            .set_permissions(std::os::unix::fs::PermissionsExt::from_mode(0o600))
            .map_err(|source| LogError::Write { path: log.path().to_owned(), source })?;
        Ok(writer)
    }

    /// Returns true if the process of a source is running on this machine.
    pub fn is_alive(&self, source: &SourceId) -> bool {
        self.file(source).is_locked()
    }

    pub fn is_empty(&self) -> Result<bool, SpoolError> {
        Ok(self.files()?.is_empty())
    }

    pub fn waiting(&self) -> Result<Vec<WaitingFile>, SpoolError> {
        let file = |log: LineLog| WaitingFile {
            state: if log.is_locked() { SpoolState::Living } else { SpoolState::Dead },
            bytes: log.path().metadata().map_or(0, |metadata| metadata.len()),
            path: log.path().to_owned(),
        };
        Ok(self.files()?.into_iter().map(file).collect())
    }

    /// Returns the files with lines that were moved out of spool files because they are invalid.
    pub fn set_aside(&self) -> Result<Vec<Utf8PathBuf>, SpoolError> {
        // Files that `SpoolBatch` and the lock of the file write next to a spool file.
        let is_set_aside = |path: &Utf8PathBuf| {
            let name = path.file_name().unwrap_or_default();
            name.contains(".jsonl.") && (name.ends_with(".rejected") || name.contains(".torn-"))
        };
        Ok(self.entries()?.into_iter().filter(is_set_aside).collect())
    }

    /// Returns the spool files, in the order of their names.
    pub(crate) fn files(&self) -> Result<Vec<LineLog>, SpoolError> {
        let entries = self.entries()?.into_iter();
        Ok(entries.filter(|path| path.extension() == Some(EXTENSION)).map(LineLog::new).collect())
    }

    fn entries(&self) -> Result<Vec<Utf8PathBuf>, SpoolError> {
        let failed = |source: io::Error| SpoolError::Folder { path: self.0.clone(), source };
        let entries = match self.0.read_dir_utf8() {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
            entries => entries.map_err(failed)?,
        };
        let mut files = Vec::new();
        for entry in entries {
            files.push(entry.map_err(failed)?.into_path());
        }
        // The order of a folder is random, and an error should name the same file each time.
        files.sort();
        Ok(files)
    }
}

/// Returns true if a last line without a newline is complete.
fn is_whole(line: &[u8]) -> bool {
    // Other JSON values may be whole and still be the start of something else, such as the digits of a number.
    line.first() == Some(&b'{') && serde_json::from_slice::<serde::de::IgnoredAny>(line).is_ok()
}

/// Largest number of events of a batch. A batch costs one sync of the disk, which thousands of events hide.
const MAX_EVENTS: usize = 1000;

/// Size of a batch in bytes after which no line is added. Bounds the memory, since events with previews are large.
const MAX_BYTES: usize = 4 << 20;

#[derive(Debug)]
pub(crate) struct SpoolBatch {
    lines: Vec<Line>,
    start: u64,
    pub(crate) end: u64,
}

impl SpoolBatch {
    /// Reads the next lines that end before the offset `until`. Bytes after it may be a part of a line that is cut off again.
    pub(crate) fn read(reader: &mut LineReader, until: u64) -> Result<Self, LogError> {
        let start = reader.offset();
        let mut lines = Vec::new();
        let mut bytes = 0;
        // The recorder appends while this process reads.
        reader.set_end(until);
        while reader.offset() < until && lines.len() < MAX_EVENTS && bytes < MAX_BYTES {
            let Some(line) = reader.next_line()? else { break };
            bytes += line.bytes.len();
            lines.push(line);
        }
        Ok(Self { lines, start, end: reader.offset() })
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.end == self.start
    }

    /// Adds the events to a store. Invalid lines are set aside in a file next to the spool file. Returns their number,
    /// too.
    pub(crate) fn move_to(
        &self,
        store: &mut dyn EventStore,
        spool: &Utf8Path,
    ) -> Result<(AppendResult, u64), SpoolError> {
        let mut events = Vec::with_capacity(self.lines.len());
        let (mut rejected, mut count) = (Vec::new(), 0);
        for line in self.lines.iter().filter(|line| !line.bytes.is_empty()) {
            // The thread that forwards messages goes first on a busy machine.
            thread::yield_now();
            if let Ok(event) = EventLine::parse(&line.bytes) {
                events.push(event);
                continue;
            }
            rejected.extend_from_slice(&line.bytes);
            rejected.push(b'\n');
            count += 1;
        }
        // Before the invalid lines are set aside: a failure repeats the batch, and they would be set aside twice.
        let appended = store.append(&events)?;
        if count > 0 {
            write::append(&Utf8PathBuf::from(format!("{spool}.rejected")), &rejected)?;
        }
        Ok((appended, count))
    }
}

/// A spool file whose process has ended. This process holds its lock.
#[derive(Debug)]
pub(crate) struct DeadSpool {
    folder: SpoolFolder,
    log: LineLog,
    writer: LineWriter,
    reader: LineReader,
    rejected: u64,
}

#[derive(Debug)]
pub(crate) enum SpoolProgress {
    /// Events were moved; others may follow.
    Moved(AppendResult),
    /// All events are in the store, and the file is removed.
    Done {
        /// Number of invalid lines. They are in a separate file.
        rejected: u64,
    },
}

impl DeadSpool {
    /// Locks a spool file. Returns `None` if its process is running, or if another process has moved its events.
    pub(crate) fn take(folder: &SpoolFolder, log: &LineLog) -> Result<Option<Self>, SpoolError> {
        // Without a wait: a locked file belongs to a process that lives and moves its own events.
        let Some(writer) = log.take_over(is_whole)? else { return Ok(None) };
        let Some(reader) = log.read_from(0)? else { return Ok(None) };
        Ok(Some(Self { folder: folder.clone(), log: log.clone(), writer, reader, rejected: 0 }))
    }

    pub(crate) fn step(mut self, store: &mut dyn EventStore) -> Result<(Option<Self>, SpoolProgress), SpoolError> {
        let batch = SpoolBatch::read(&mut self.reader, self.writer.length())?;
        if batch.is_empty() {
            return self.finish(store).map(|step| (None, step));
        }
        let (appended, rejected) = batch.move_to(store, self.log.path())?;
        self.rejected += rejected;
        Ok((Some(self), SpoolProgress::Moved(appended)))
    }

    fn finish(self, store: &mut dyn EventStore) -> Result<SpoolProgress, SpoolError> {
        // The process had one source, and has not stated its end. After its last batch, the file may have no event that names it.
        for source in open_sources(store)? {
            if self.folder.file(&source).path() == self.log.path() {
                store.mark_lost(&source)?;
            }
        }
        // Last: a kill before it repeats the batch, and the store skips the events that it has.
        self.writer.remove()?;
        Ok(SpoolProgress::Done { rejected: self.rejected })
    }
}

#[derive(Debug, Default)]
pub struct SpoolReplay {
    pub files: u64,
    pub added: u64,
    /// Number of invalid lines. They are in separate files next to the spool files.
    pub rejected: u64,
    /// Files that cannot be read or locked. They stay.
    pub failures: Vec<SpoolError>,
}

/// Moves the events of all spool files whose processes have ended to the store, and removes the files. Repeating it has no effect.
pub fn replay(folder: &SpoolFolder, store: &mut dyn EventStore) -> Result<SpoolReplay, SpoolError> {
    let mut replayed = SpoolReplay::default();
    for log in folder.files()? {
        match replay_file(folder, &log, store, &mut replayed) {
            // A database that fails would fail for every file. A bad file must not keep the others from being moved.
            Err(SpoolError::Store(error)) => return Err(SpoolError::Store(error)),
            Err(failure) => replayed.failures.push(failure),
            Ok(()) => {}
        }
    }
    Ok(replayed)
}

fn replay_file(
    folder: &SpoolFolder,
    log: &LineLog,
    store: &mut dyn EventStore,
    replayed: &mut SpoolReplay,
) -> Result<(), SpoolError> {
    let mut spool = DeadSpool::take(folder, log)?;
    while let Some(dead) = spool {
        let (rest, step) = dead.step(store)?;
        spool = rest;
        match step {
            SpoolProgress::Moved(appended) => replayed.added += appended.added,
            SpoolProgress::Done { rejected } => {
                replayed.files += 1;
                replayed.rejected += rejected;
            }
        }
    }
    Ok(())
}

/// A spool that cannot be read, written or moved to the store.
#[derive(Debug, thiserror::Error)]
pub enum SpoolError {
    #[error("failed to read the folder `{path}`")]
    Folder { path: Utf8PathBuf, source: std::io::Error },
    #[error(transparent)]
    Write(#[from] WriteError),
    #[error(transparent)]
    Log(#[from] LogError),
    /// A file does not have the lines that were written to it. A later attempt finds what is left of them.
    #[error("the spool file `{path}` was changed by another program")]
    Changed { path: Utf8PathBuf },
    #[error(transparent)]
    Store(#[from] StoreError),
}
