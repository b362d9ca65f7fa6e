//! The record of an import, next to the configuration: which backup is the original, and what the import wrote.

use std::io;

use camino::{Utf8Path, Utf8PathBuf};
use counterproof_artifact::Sha256Digest;
use counterproof_store::read_file;
use counterproof_store::write::{Durability, write_json};
use serde::{Deserialize, Serialize};

use super::ImportError;
use super::backup::record_path;
use super::wrap::AddedVariables;

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct ImportRecord {
    /// The name of the backup, in the folder of the configuration.
    pub(super) backup: String,
    /// The digest of the backup.
    pub(super) original_sha256: Sha256Digest,
    /// The digest of the configuration after the import. `None` if the configuration was edited between two imports: the original
    /// lacks those edits.
    pub(super) imported_sha256: Option<Sha256Digest>,
    /// The program in the configuration.
    pub(super) program: String,
    /// The variables that the import added to entries.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(super) added_variables: Vec<AddedVariables>,
}

impl ImportRecord {
    /// Reads the record of a configuration. An unreadable record counts as missing. The servers are then unwrapped.
    pub(super) fn read(config: &Utf8Path) -> Option<Self> {
        let bytes = read_file::read(&record_path(config), read_file::MAX_SMALL_BYTES).ok()?;
        serde_json::from_slice(&bytes).ok()
    }

    pub(super) fn write(&self, config: &Utf8Path) -> Result<(), ImportError> {
        Ok(write_json(&record_path(config), self, Durability::Synced)?)
    }

    pub(super) fn backup_path(&self, config: &Utf8Path) -> Utf8PathBuf {
        // Only the name counts: a record must not point to another folder.
        config.with_file_name(Utf8Path::new(&self.backup).file_name().unwrap_or_default())
    }

    /// Reads the backup, and checks that it is the original.
    pub(super) fn original(&self, config: &Utf8Path) -> Result<Vec<u8>, ImportError> {
        let path = self.backup_path(config);
        let bytes = read_file::read(&path, read_file::MAX_DOCUMENT_BYTES).map_err(|source| match source.kind() {
            io::ErrorKind::NotFound => ImportError::NoBackup { path: config.to_owned() },
            _ => ImportError::Read { path: path.clone(), source },
        })?;
        if Sha256Digest::from_bytes(&bytes) == self.original_sha256 {
            Ok(bytes)
        } else {
            Err(ImportError::ChangedBackup { path })
        }
    }
}

/// Removes a file, if it exists.
pub(super) fn remove(path: &Utf8Path) -> Result<(), ImportError> {
    match std::fs::remove_file(path) {
        Err(source) if source.kind() != io::ErrorKind::NotFound => {
            Err(ImportError::Remove { path: path.to_owned(), source })
        }
        _ => Ok(()),
    }
}
