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

/// How long a recorder waits for a spool file that another process looks at.
const LOCK_WAIT: Duration = Duration::from_secs(5);

/// The folder of the spool files of a ledger.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SpoolFolder(Utf8PathBuf);

impl SpoolFolder {
    /// Names a folder. It is created with the first spool file.
    pub fn new(path: impl Into<Utf8PathBuf>) -> Self {
        Self(path.into())
    }

    /// Returns the path.
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

    /// Locks the spool file of a source, and creates it if necessary.
    pub(crate) fn lock(&self, source: &SourceId) -> Result<LineWriter, SpoolError> {
        self.create()?;
        let log = self.file(source);
        let writer = log.lock(&LockOptions { wait: LOCK_WAIT }, is_whole)?;
        // The folder is private. A file that a person moves elsewhere stays private.
        #[cfg(unix)]
        writer
            .file()
            .set_permissions(std::os::unix::fs::PermissionsExt::from_mode(0o600))
            .map_err(|source| LogError::Write { path: log.path().to_owned(), source })?;
        Ok(writer)
    }

    /// Returns the spool files, in the order of their names.
    pub(crate) fn files(&self) -> Result<Vec<LineLog>, SpoolError> {
        let failed = |source: io::Error| SpoolError::Folder { path: self.0.clone(), source };
        let entries = match self.0.read_dir_utf8() {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
            entries => entries.map_err(failed)?,
        };
        let mut files = Vec::new();
        for entry in entries {
            let path = entry.map_err(failed)?.into_path();
            if path.extension() == Some(EXTENSION) {
                files.push(path);
            }
        }
        files.sort();
        Ok(files.into_iter().map(LineLog::new).collect())
    }
}

/// Returns true if a last line without a newline is complete.
pub(super) fn is_whole(line: &[u8]) -> bool {
    line.first() == Some(&b'{') && serde_json::from_slice::<serde::de::IgnoredAny>(line).is_ok()
}
