//! Files with records that the store could not take: one file for each batch, whole or absent.
//!
//! Records have ids, so a batch that is also in the store, or that two processes add, is added once.

use std::io;

use camino::{Utf8Path, Utf8PathBuf};
use counterproof_artifact::Sha256Digest;
use counterproof_ledger::store::StoreError;
use counterproof_store::FileLock;
use counterproof_store::read_file;
use counterproof_store::write::{self, Durability, WriteError};

use crate::store::{Batch, SessionStore};

/// The folder in which sessions of a ledger wait, and lock files of sessions that run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SessionSpool(Utf8PathBuf);

const BATCH: &str = "json";

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
        self.name(session_id).with_extension("commands")
    }

    /// Returns whether a process of this machine runs a session; `None` if no process of this machine ever did, or if it ended
    /// well.
    pub fn is_running(&self, session_id: &str) -> Option<bool> {
        let path = self.lock_path(session_id);
        path.exists().then(|| !matches!(FileLock::try_lock(&path), Ok(Some(_))))
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

    /// Moves all records that wait to the store. Returns the number of files.
    pub fn drain(&self, store: &mut SessionStore) -> Result<u64, SpoolError> {
        let mut drained = 0;
        for path in self.files()? {
            drained += u64::from(move_file(&path, store)?);
        }
        Ok(drained)
    }
}

fn move_file(path: &Utf8Path, store: &mut SessionStore) -> Result<bool, SpoolError> {
    let failed = |source| SpoolError::Read { path: path.to_owned(), source };
    let bytes = match read_file::read(path, read_file::MAX_LARGE_BYTES) {
        // Another process has moved it.
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(false),
        read => read.map_err(failed)?,
    };
    let Ok(batch) = serde_json::from_slice::<Batch>(&bytes) else {
        // Not ours, or of a later version. It stays for a person, and hides no other file.
        let aside = Utf8PathBuf::from(format!("{path}.rejected"));
        return set_aside(path, &aside).map(|()| false).map_err(failed);
    };
    store.append(&[&batch])?;
    match std::fs::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(failed(error)),
        _ => Ok(true),
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
