//! A configuration on disk, its backups, and the record of an import.

use std::fs::Permissions;
use std::io::{self, Write as _};

use camino::{Utf8Path, Utf8PathBuf};
use counterproof_artifact::Sha256Digest;
use counterproof_store::read_file;
use counterproof_store::write::{AtomicFile, Durability, WriteError, write_json};
use counterproof_validation::{Position, locate};
use serde::{Deserialize, Serialize};

use super::client::language;
use super::config_tree::{Language, SyntaxError};
use super::wrap::AddedVariables;

const BYTE_ORDER_MARK: &str = "\u{feff}";

#[derive(Debug)]
pub(super) struct ConfigFile {
    pub(super) path: Utf8PathBuf,
    /// The file itself, if `path` is a symbolic link.
    target: Utf8PathBuf,
    pub(super) bytes: Vec<u8>,
    permissions: Permissions,
}

impl ConfigFile {
    pub(super) fn read(path: &Utf8Path) -> Result<Self, ImportError> {
        let read_error = |source: io::Error| match source.kind() {
            io::ErrorKind::NotFound => ImportError::Missing { path: path.to_owned() },
            _ => ImportError::Read { path: path.to_owned(), source },
        };
        // A link stays a link: the file that it names is replaced.
        let target = path.canonicalize_utf8().map_err(read_error)?;
        let (file, length) = read_file::open(&target).map_err(read_error)?;
        let metadata = file.metadata().map_err(read_error)?;
        {
            let owner = std::os::unix::fs::MetadataExt::uid(&metadata);
            // The file is replaced by a new one, which belongs to the user of this process.
            if owner != rustix::process::geteuid().as_raw() {
                return Err(ImportError::OtherOwner { path: path.to_owned(), owner });
            }
        }
        let bytes = read_file::read_to_limit(file, length, read_file::MAX_DOCUMENT_BYTES).map_err(read_error)?;
        Ok(Self { path: path.to_owned(), target, bytes, permissions: metadata.permissions() })
    }

    pub(super) fn language(&self) -> Language {
        language(&self.path)
    }

    /// Returns the byte order mark, or nothing, and the text after it.
    pub(super) fn text(&self) -> Result<(&str, &str), ImportError> {
        let text = std::str::from_utf8(&self.bytes).map_err(|error| {
            let span = error.valid_up_to()..error.valid_up_to();
            self.invalid(0, SyntaxError { message: "not valid UTF-8".to_owned(), span })
        })?;
        let start = if text.starts_with(BYTE_ORDER_MARK) { BYTE_ORDER_MARK.len() } else { 0 };
        Ok(text.split_at(start))
    }

    /// Locates an error. `skipped` bytes come before the text that was parsed.
    pub(super) fn invalid(&self, skipped: usize, error: SyntaxError) -> ImportError {
        let position = locate::positions(&self.bytes, &[error.span.start + skipped])[0];
        ImportError::Invalid { path: self.path.clone(), position, message: error.message }
    }

    /// Replaces the content, unless another program did so since it was read.
    pub(super) fn replace(&self, bytes: &[u8]) -> Result<(), ImportError> {
        let mut file = self.start(&self.target)?;
        let write_error = |source| WriteError { path: self.target.clone(), source };
        file.write_all(bytes).map_err(write_error)?;
        let current = read_file::read(&self.target, read_file::MAX_DOCUMENT_BYTES);
        // Clients write their configuration while they run. The check is as late as possible.
        if current.map_err(|source| ImportError::Read { path: self.path.clone(), source })? != self.bytes {
            return Err(ImportError::Changed { path: self.path.clone() });
        }
        Ok(file.commit(Durability::Synced)?)
    }

    /// Copies the content to the first of these files that does not exist, with the mode of the configuration. A file that has the
    /// same content is used as well.
    pub(super) fn copy_to(&self, paths: impl Iterator<Item = Utf8PathBuf>) -> Result<Utf8PathBuf, ImportError> {
        for path in paths {
            // A repeated import must not fill the folder with equal copies.
            if read_file::read(&path, read_file::MAX_DOCUMENT_BYTES).is_ok_and(|bytes| bytes == self.bytes) {
                return Ok(path);
            }
            let mut file = self.start(&path)?;
            file.write_all(&self.bytes).map_err(|source| WriteError { path: path.clone(), source })?;
            if let Some(path) = file.commit_new([path], Durability::Synced)? {
                return Ok(path);
            }
        }
        Err(ImportError::NoBackup { path: self.path.clone() })
    }

    /// Starts a file with the mode of the configuration, which may be private.
    fn start(&self, path: &Utf8Path) -> Result<AtomicFile, WriteError> {
        let mut file = AtomicFile::create(path)?;
        file.set_permissions(self.permissions.clone())?;
        Ok(file)
    }
}

/// Creates a configuration that was deleted, with the mode of its backup. Fails if it exists again.
pub(super) fn create_like(path: &Utf8Path, backup: &Utf8Path, bytes: &[u8]) -> Result<(), ImportError> {
    let metadata = backup.metadata().map_err(|source| ImportError::Read { path: backup.to_owned(), source })?;
    let mut file = AtomicFile::create(path)?;
    file.set_permissions(metadata.permissions())?;
    file.write_all(bytes).map_err(|source| WriteError { path: path.to_owned(), source })?;
    match file.commit_new([path.to_owned()], Durability::Synced)? {
        Some(_) => Ok(()),
        None => Err(ImportError::Changed { path: path.to_owned() }),
    }
}

const MAX_BACKUPS: u32 = 1000;

pub(super) fn record_path(config: &Utf8Path) -> Utf8PathBuf {
    with_suffix(config, ".counterproof-import.json")
}

/// The names of backups, in the order in which they are used.
pub(super) fn backup_paths(config: &Utf8Path) -> impl Iterator<Item = Utf8PathBuf> {
    // An older original is never overwritten.
    let first = with_suffix(config, ".counterproof-backup");
    let further = (2..=MAX_BACKUPS).map({
        let config = config.to_owned();
        move |number| with_suffix(&config, &format!(".counterproof-backup-{number}"))
    });
    std::iter::once(first).chain(further)
}

fn with_suffix(config: &Utf8Path, suffix: &str) -> Utf8PathBuf {
    Utf8PathBuf::from(format!("{config}{suffix}"))
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct ImportRecord {
    pub(super) backup: String,
    pub(super) original_sha256: Sha256Digest,
    /// The digest of the configuration after the import. `None` if the configuration was edited between two imports: the original
    /// lacks those edits.
    pub(super) imported_sha256: Option<Sha256Digest>,
    pub(super) program: String,
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

    pub(super) fn original(&self, config: &Utf8Path) -> Result<Vec<u8>, ImportError> {
        let path = self.backup_path(config);
        let bytes = read_file::read(&path, read_file::MAX_DOCUMENT_BYTES).map_err(|source| match source.kind() {
            io::ErrorKind::NotFound => ImportError::NoBackup { path: config.to_owned() },
            _ => ImportError::Read { path: path.clone(), source },
        })?;
        // A changed backup is not the original, and must not silently replace the configuration.
        if Sha256Digest::from_bytes(&bytes) == self.original_sha256 {
            Ok(bytes)
        } else {
            Err(ImportError::ChangedBackup { path })
        }
    }
}

pub(super) fn remove(path: &Utf8Path) -> Result<(), ImportError> {
    match std::fs::remove_file(path) {
        Err(source) if source.kind() != io::ErrorKind::NotFound => {
            Err(ImportError::Remove { path: path.to_owned(), source })
        }
        _ => Ok(()),
    }
}

#[derive(Debug, thiserror::Error)]
pub enum ImportError {
    #[error("the configuration `{path}` does not exist")]
    Missing { path: Utf8PathBuf },
    #[error("cannot read `{path}`")]
    Read { path: Utf8PathBuf, source: io::Error },
    /// The configuration is not valid. The message quotes no part of it, because it may contain secrets.
    #[error("the configuration `{path}` is invalid: line {}, column {}: {message}", .position.line, .position.column)]
    Invalid { path: Utf8PathBuf, position: Position, message: String },
    #[error("the configuration `{path}` belongs to the user with the id {owner}")]
    OtherOwner { path: Utf8PathBuf, owner: u32 },
    #[error("the configuration `{path}` was changed by another program in the meantime")]
    Changed { path: Utf8PathBuf },
    #[error("there is no backup of `{path}`")]
    NoBackup { path: Utf8PathBuf },
    #[error("the backup `{path}` was changed after the import")]
    ChangedBackup { path: Utf8PathBuf },
    #[error(transparent)]
    Write(#[from] WriteError),
    #[error("cannot remove `{path}`")]
    Remove { path: Utf8PathBuf, source: io::Error },
}

impl ImportError {
    pub fn is_io(&self) -> bool {
        matches!(
            self,
            Self::Missing { .. } | Self::Read { .. } | Self::Write(_) | Self::Remove { .. } | Self::Changed { .. }
        )
    }

    pub fn hint(&self) -> Option<&'static str> {
        match self {
            Self::Invalid { .. } => Some("correct the file; nothing was changed"),
            Self::NoBackup { .. } => Some("`--force` needs the backup that `counterproof guard import` writes"),
            Self::OtherOwner { .. } => Some("run the command as that user"),
            Self::Changed { .. } => Some("run the command again; nothing was changed"),
            Self::ChangedBackup { .. } => {
                Some("without `--force`, the command unwraps the servers and keeps everything else")
            }
            _ => None,
        }
    }
}
