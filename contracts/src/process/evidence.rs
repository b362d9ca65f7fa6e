//! The record of a command as files: the log and its events, redacted and durable.

use std::io;

use camino::{Utf8Path, Utf8PathBuf};
use counterproof_redaction::{Applied, Redactor};
use counterproof_safe_run::{LogView, Record};
use counterproof_store::write::{AtomicFile, Durability, WriteError, create_folder};
use serde::{Deserialize, Serialize};

use super::FinishedCommand;

/// The folder for the records of commands, and the secrets that must not be in them.
#[derive(Debug, Clone, Copy)]
pub struct EvidenceFolder<'a> {
    /// The folder. It is created if it does not exist.
    pub path: &'a Utf8Path,
    /// What is masked.
    pub redactor: &'a Redactor,
}

/// The names of the files of one record, in their folder.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct EvidenceFiles {
    /// The log: both streams, and the ledger.
    pub log: String,
    /// The events as JSON Lines.
    pub events: String,
}

/// A record that could not be stored.
#[derive(Debug, thiserror::Error)]
pub enum EvidenceError {
    /// A file could not be written.
    #[error(transparent)]
    Write(#[from] WriteError),
    /// The record could not be read or redacted.
    #[error("cannot store the record of a command in `{folder}`")]
    Record {
        folder: Utf8PathBuf,
        /// The error of the operating system.
        source: io::Error,
    },
    /// Evidence is never overwritten.
    #[error("`{0}` already exists; evidence is not overwritten")]
    Exists(Utf8PathBuf),
}

impl EvidenceError {
    /// The stable code.
    pub const fn code(&self) -> &'static str {
        "storage_error"
    }
}

impl EvidenceFolder<'_> {
    /// Stores the record of a command as `<name>.log` and `<name>.jsonl`. Both are on disk when this returns.
    pub fn store(&self, name: &str, command: FinishedCommand) -> Result<EvidenceFiles, EvidenceError> {
        create_folder(self.path)?;
        let record_error = |source| EvidenceError::Record { folder: self.path.to_owned(), source };
        let record = command.record.redacted(self.redactor).map_err(record_error)?;
        let log =
            self.write(&format!("{name}.log"), &record, |record, file| record.write_log(LogView::Ledger, file))?;
        let events = self.write(&format!("{name}.jsonl"), &record, Record::write_json_lines)?;
        Ok(EvidenceFiles { log, events })
    }

    /// Masks the secrets in a text.
    pub fn redact(&self, text: &str) -> String {
        self.redactor.text(text, &mut Applied::default())
    }

    fn write(
        &self,
        name: &str,
        record: &Record,
        write: impl FnOnce(&Record, &mut AtomicFile) -> io::Result<()>,
    ) -> Result<String, EvidenceError> {
        let path = self.path.join(name);
        let mut file = AtomicFile::create(&path)?;
        write(record, &mut file).map_err(|source| EvidenceError::Record { folder: self.path.to_owned(), source })?;
        let written = file.commit_new([path.clone()], Durability::Synced)?;
        written.map(|_| name.to_owned()).ok_or(EvidenceError::Exists(path))
    }
}
