//! The folder of the spool files of a ledger.

use std::io;
use std::time::Duration;

use camino::{Utf8Path, Utf8PathBuf};
use counterproof_artifact::Sha256Digest;
use counterproof_store::line_log::{LineLog, LineWriter, LockOptions, LogError};
use counterproof_store::write;

use super::SpoolError;
use crate::store::SourceId;

/// The end of the names of spool files.
const EXTENSION: &str = "jsonl";

/// The folder of the spool files of a ledger.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SpoolFolder(Utf8PathBuf);

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WaitingFile {
    pub path: Utf8PathBuf,
    /// Its size.
    pub bytes: u64,
    /// Whether its process is running.
    pub state: SpoolState,
}

/// Whether the process of a spool file is running.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SpoolState {
    /// A process has locked it.
    Living,
    /// Its process has ended.
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

    /// Returns the spool file of a source. Its name follows from the source, so that others can find out whether the process of a
    /// source is alive.
    pub(crate) fn file(&self, source: &SourceId) -> LineLog {
        let text = format!("{}\n{}", source.run_id, source.shim_id);
        let name = Sha256Digest::from_bytes(text.as_bytes()).to_string();
        LineLog::new(self.0.join(format!("{}.{EXTENSION}", &name[..32])))
    }

    /// Locks the spool file of a source, and creates it if necessary. Waits for another process that looks at it.
    pub(crate) fn lock(&self, source: &SourceId, wait: Duration) -> Result<LineWriter, SpoolError> {
        self.create()?;
        let log = self.file(source);
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

    /// Returns true if there are no spool files.
    pub fn is_empty(&self) -> Result<bool, SpoolError> {
        Ok(self.files()?.is_empty())
    }

    /// Returns the spool files with their sizes.
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
        files.sort();
        Ok(files)
    }
}

/// Returns true if a last line without a newline is complete.
pub(super) fn is_whole(line: &[u8]) -> bool {
    line.first() == Some(&b'{') && serde_json::from_slice::<serde::de::IgnoredAny>(line).is_ok()
}
