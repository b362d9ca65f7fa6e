//! Returns a configuration to its state before the import.

use camino::{Utf8Path, Utf8PathBuf};
use counterproof_artifact::Sha256Digest;
use serde::Serialize;

use super::backup::record_path;
use super::config_file::ConfigFile;
use super::diff;
use super::import::Mode;
use super::import_record::{ImportRecord, remove};
use super::wrap::{ServerChange, unwrap};
use super::{Client, ImportError};

/// What is restored.
#[derive(Debug, Clone)]
pub struct RestoreOptions<'a> {
    /// The client.
    pub client: Client,
    /// The configuration.
    pub config: &'a Utf8Path,
    /// Whether the original replaces a configuration that was edited after the import.
    pub discards_edits: bool,
    /// Whether files are written.
    pub mode: Mode,
}

/// How a configuration was restored.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Restored {
    /// It has the bytes of the original.
    Original,
    /// It was edited after the import. Its servers start without the guard again, and the edits stay.
    Unwrapped,
    /// No server starts through the guard.
    Nothing,
}

/// The outcome of a restoration.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct RestoreReport {
    /// The configuration.
    pub config: Utf8PathBuf,
    /// How it was restored.
    pub restored: Restored,
    /// Every server, if the servers were unwrapped one by one.
    pub servers: Vec<ServerChange>,
    /// A copy of the original that remains.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub backup: Option<Utf8PathBuf>,
    /// The unified difference of a dry run, without secrets.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub diff: Option<String>,
}

/// Restores a configuration: the bytes of the original if nothing was edited since the import, and otherwise the commands of its
/// servers.
pub fn restore(options: &RestoreOptions<'_>) -> Result<RestoreReport, ImportError> {
    let file = ConfigFile::read(options.config)?;
    let record = ImportRecord::read(&file.path);
    let is_unedited = record.as_ref().and_then(|record| record.imported_sha256.as_ref())
        == Some(&Sha256Digest::from_bytes(&file.bytes));
    if options.discards_edits || is_unedited {
        let record = record.ok_or_else(|| ImportError::NoBackup { path: file.path.clone() })?;
        match record.original(&file.path) {
            Ok(original) => return restore_original(&file, &record, &original, options.mode),
            Err(error) if options.discards_edits => return Err(error),
            // Without the original, the servers are unwrapped.
            Err(_) => return restore_servers(&file, Some(&record), options),
        }
    }
    restore_servers(&file, record.as_ref(), options)
}

fn restore_original(
    file: &ConfigFile,
    record: &ImportRecord,
    original: &[u8],
    mode: Mode,
) -> Result<RestoreReport, ImportError> {
    let mut report = RestoreReport {
        config: file.path.clone(),
        restored: Restored::Original,
        servers: Vec::new(),
        backup: None,
        diff: None,
    };
    if mode == Mode::DryRun {
        report.diff = Some(difference(file, original));
        return Ok(report);
    }
    file.replace(original)?;
    // The configuration has the same bytes now, so the backup is not needed. It may contain secrets.
    remove(&record.backup_path(&file.path))?;
    remove(&record_path(&file.path))?;
    Ok(report)
}

fn restore_servers(
    file: &ConfigFile,
    record: Option<&ImportRecord>,
    options: &RestoreOptions<'_>,
) -> Result<RestoreReport, ImportError> {
    let (mark, text) = file.text()?;
    let changed = unwrap(options.client, text, file.language()).map_err(|error| file.invalid(mark.len(), error))?;
    let backup = record.map(|record| record.backup_path(&file.path)).filter(|path| path.exists());
    let restored = if changed.text.is_some() { Restored::Unwrapped } else { Restored::Nothing };
    let mut report =
        RestoreReport { config: file.path.clone(), restored, servers: changed.servers, backup, diff: None };
    let new = changed.text.map(|new| format!("{mark}{new}").into_bytes());
    match (new, options.mode) {
        (None, _) => {}
        (Some(new), Mode::DryRun) => report.diff = Some(difference(file, &new)),
        (Some(new), Mode::Write) => {
            file.replace(&new)?;
            // The backup stays, because it has no edits. The record would make the next restoration return to it.
            remove(&record_path(&file.path))?;
        }
    }
    Ok(report)
}

fn difference(file: &ConfigFile, new: &[u8]) -> String {
    let (old, new) = (String::from_utf8_lossy(&file.bytes), String::from_utf8_lossy(new));
    diff::unified(file.path.as_str(), file.language(), &old, &new).unwrap_or_default()
}
