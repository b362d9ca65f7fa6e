//! Files with records that the store could not take: one file for each batch, whole or absent.
//!
//! Records have ids, so a batch that is also in the store, or that two processes add, is added once.

use std::io;

use camino::{Utf8DirEntry, Utf8Path, Utf8PathBuf};
use counterproof_artifact::Sha256Digest;
use counterproof_ledger::store::StoreError;
use counterproof_store::FileLock;
use counterproof_store::line_log::LineLog;
use counterproof_store::read_file;
use counterproof_store::write::{self, Durability, WriteError};

use crate::store::{Batch, SessionStore};

/// The folder in which sessions of a ledger wait, and lock files of sessions that run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SessionSpool(Utf8PathBuf);

const BATCH: &str = "json";

const COMMANDS: &str = "commands";

/// Largest number of bytes of a process id.
const MAX_ID_BYTES: u64 = 20;

impl SessionSpool {
    /// Names the folder below the spool folder of a ledger. It is created with the first session.
    pub fn new(ledger_spool: &Utf8Path) -> Self {
        Self(ledger_spool.join("sessions"))
    }

    pub fn path(&self) -> &Utf8Path {
        &self.0
    }

    pub(super) fn create(&self) -> Result<(), WriteError> {
        if let Some(parent) = self.0.parent() {
            write::create_private_folder(parent)?;
        }
        write::create_private_folder(&self.0)
    }

    /// Returns the start of the names of the files of a session, whose id may have any characters.
    fn name(&self, session_id: &str) -> Utf8PathBuf {
        self.0.join(&Sha256Digest::from_bytes(session_id.as_bytes()).to_string()[..32])
    }

    pub(super) fn lock_path(&self, session_id: &str) -> Utf8PathBuf {
        self.name(session_id).with_extension("lock")
    }

    /// Returns the folder in which `safe-run` records the commands of a session.
    pub fn commands_folder(&self, session_id: &str) -> Utf8PathBuf {
        self.name(session_id).with_extension(COMMANDS)
    }

    /// Returns whether a process of this machine runs a session; `None` if no process of this machine ever did, or if it ended
    /// well.
    pub fn is_running(&self, session_id: &str) -> Option<bool> {
        let path = self.lock_path(session_id);
        path.exists().then(|| LineLog::new(path).is_locked())
    }

    /// Returns the process of this machine that runs a session, if it can be read.
    pub fn holder(&self, session_id: &str) -> Option<u32> {
        if self.is_running(session_id) != Some(true) {
            return None;
        }
        read_file::read_text(&self.lock_path(session_id), MAX_ID_BYTES).ok()?.parse().ok()
    }

    fn pause_path(&self, session_id: &str) -> Utf8PathBuf {
        self.name(session_id).with_extension("pause")
    }

    /// Requests that the process that runs a session pauses it.
    pub fn request_pause(&self, session_id: &str) -> Result<(), SpoolError> {
        self.create()?;
        Ok(write::write(&self.pause_path(session_id), b"", Durability::Synced)?)
    }

    /// Returns true if a pause was requested, once for each request.
    pub fn takes_pause(&self, session_id: &str) -> bool {
        std::fs::remove_file(self.pause_path(session_id)).is_ok()
    }

    /// Removes the lock file of a process that was killed.
    pub(super) fn remove_lock(&self, session_id: &str) {
        // Locked first, so that a process that starts the session meanwhile keeps its file.
        drop(FileLock::try_lock(&self.lock_path(session_id)));
    }

    pub(super) fn put(&self, batch: &Batch, number: u64) -> Result<Utf8PathBuf, SpoolError> {
        self.create()?;
        let name = self.name(&batch.session_id);
        let path = Utf8PathBuf::from(format!("{name}-{}-{number:08}.{BATCH}", std::process::id()));
        let text = serde_json::to_vec(batch)?;
        write::write(&path, &text, Durability::Synced)?;
        Ok(path)
    }

    /// Returns the files with records, in the order in which a process wrote them.
    pub fn files(&self) -> Result<Vec<Utf8PathBuf>, SpoolError> {
        let failed = |source| SpoolError::Read { path: self.0.clone(), source };
        let entries = match self.0.read_dir_utf8() {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
            entries => entries.map_err(failed)?,
        };
        let mut files = Vec::new();
        for entry in entries {
            files.push(entry.map_err(failed)?.into_path());
        }
        files.retain(|path| path.extension() == Some(BATCH));
        files.sort();
        Ok(files)
    }

    /// Returns true if records of a session wait.
    pub(super) fn has_files_of(&self, session_id: &str) -> bool {
        let name = self.name(session_id);
        self.files().is_ok_and(|files| files.iter().any(|path| path.as_str().starts_with(name.as_str())))
    }

    /// Moves all records that wait to the store. A file that cannot be moved hides no other; the first error is returned.
    pub fn drain(&self, store: &mut SessionStore) -> Result<(), SpoolError> {
        let mut result = Ok(());
        for path in self.files()? {
            result = result.and(move_file(&path, store));
        }
        result
    }

    /// Returns the folders with commands that wait.
    pub(super) fn commands_folders(&self) -> Vec<Utf8PathBuf> {
        let entries = self.0.read_dir_utf8().into_iter().flatten().filter_map(Result::ok);
        entries.map(Utf8DirEntry::into_path).filter(|path| path.extension() == Some(COMMANDS)).collect()
    }
}

fn move_file(path: &Utf8Path, store: &mut SessionStore) -> Result<(), SpoolError> {
    let failed = |source| SpoolError::Read { path: path.to_owned(), source };
    let bytes = match read_file::read(path, read_file::MAX_LARGE_BYTES) {
        // Another process has moved it.
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        read => read.map_err(failed)?,
    };
    let Ok(batch) = serde_json::from_slice::<Batch>(&bytes) else {
        // Not ours, or of a later version. It stays for a person, and hides no other file.
        let aside = Utf8PathBuf::from(format!("{path}.rejected"));
        return set_aside(path, &aside).map_err(failed);
    };
    store.append(&[&batch])?;
    match std::fs::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(failed(error)),
        _ => Ok(()),
    }
}

#[expect(clippy::disallowed_methods, reason = "if the new name is lost, the file is set aside once more")]
fn set_aside(path: &Utf8Path, aside: &Utf8Path) -> io::Result<()> {
    std::fs::rename(path, aside)
}

/// Records that can neither be stored nor kept in a file.
#[derive(Debug, thiserror::Error)]
pub enum SpoolError {
    #[error("failed to read `{path}`")]
    Read { path: Utf8PathBuf, source: io::Error },
    #[error(transparent)]
    Write(#[from] WriteError),
    #[error("failed to serialise a record")]
    Serialise(#[from] serde_json::Error),
    #[error(transparent)]
    Store(#[from] StoreError),
}
