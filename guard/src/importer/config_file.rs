//! A configuration on disk.

use std::fs::Permissions;
use std::io::{self, Write as _};

use camino::{Utf8Path, Utf8PathBuf};
use counterproof_store::read_file;
use counterproof_store::write::{AtomicFile, Durability, WriteError};
use counterproof_validation::locate;

use super::ImportError;
use super::client::language;
use super::config_tree::{Language, SyntaxError};

/// The mark at the start of some files of Windows.
const BYTE_ORDER_MARK: &str = "\u{feff}";

/// A configuration that was read.
#[derive(Debug)]
pub(super) struct ConfigFile {
    /// The path that the user knows.
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
        let target = path.canonicalize_utf8().map_err(read_error)?;
        let (file, length) = read_file::open(&target).map_err(read_error)?;
        let metadata = file.metadata().map_err(read_error)?;
        #[cfg(unix)]
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
        if current.map_err(|source| ImportError::Read { path: self.path.clone(), source })? != self.bytes {
            return Err(ImportError::Changed { path: self.path.clone() });
        }
        Ok(file.commit(Durability::Synced)?)
    }

    /// Copies the content to the first of these files that does not exist, with the mode of the configuration. A file that has the
    /// same content is used as well.
    pub(super) fn copy_to(&self, paths: impl Iterator<Item = Utf8PathBuf>) -> Result<Utf8PathBuf, ImportError> {
        for path in paths {
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
