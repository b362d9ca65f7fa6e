//! Returns a configuration to its state before the import.

use camino::{Utf8Path, Utf8PathBuf};
use counterproof_artifact::Sha256Digest;
use serde::Serialize;

use super::client::language;
use super::config_file::record_path;
use super::config_file::{ConfigFile, create_like};
use super::config_file::{ImportRecord, remove};
use super::diff::Versions;
use super::import::Mode;
use super::wrap::{ServerChange, unwrap};
use super::{Client, ImportError};

#[derive(Debug, Clone)]
pub struct RestoreOptions<'a> {
    pub client: Client,
    pub config: &'a Utf8Path,
    /// Whether the original replaces a configuration that was edited after the import.
    pub discards_edits: bool,
    pub mode: Mode,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum RestoreOutcome {
    Original,
    /// It was edited after the import. Its servers start without the guard again, and the edits stay.
    Unwrapped,
    Nothing,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct RestoreReport {
    pub config: Utf8PathBuf,
    pub restored: RestoreOutcome,
    pub servers: Vec<ServerChange>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub backup: Option<Utf8PathBuf>,
    /// The unified difference of a dry run, without secrets.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub diff: Option<String>,
}

/// Restores a configuration: the bytes of the original if nothing was edited since the import, and otherwise the commands of its
/// servers.
pub fn restore(options: &RestoreOptions<'_>) -> Result<RestoreReport, ImportError> {
    let file = match ConfigFile::read(options.config) {
        Err(ImportError::Missing { .. }) if options.discards_edits => return restore_missing(options),
        file => file?,
    };
    let record = ImportRecord::read(&file.path);
    // Only then are the bytes of the original what the user expects back.
    let is_unedited = record.as_ref().and_then(|record| record.imported_sha256.as_ref())
        == Some(&Sha256Digest::from_bytes(&file.bytes));
    if options.discards_edits || is_unedited {
        let record = record.ok_or_else(|| ImportError::NoBackup { path: file.path.clone() })?;
        match record.original(&file.path) {
            Ok(original) => return restore_original(&file, &record, &original, options),
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
    options: &RestoreOptions<'_>,
) -> Result<RestoreReport, ImportError> {
    let mut report = original_report(&file.path);
    if options.mode == Mode::DryRun {
        report.diff = Some(difference(file, original, options.client));
        return Ok(report);
    }
    // Before the backup is removed: a crash in between leaves both.
    file.replace(original)?;
    remove_backup(record, &file.path)?;
    Ok(report)
}

fn restore_missing(options: &RestoreOptions<'_>) -> Result<RestoreReport, ImportError> {
    let path = options.config;
    let missing = || ImportError::Missing { path: path.to_owned() };
    let record = ImportRecord::read(path).ok_or_else(missing)?;
    let original = record.original(path)?;
    let mut report = original_report(path);
    if options.mode == Mode::DryRun {
        let new = String::from_utf8_lossy(&original);
        let texts = Versions { client: options.client, language: language(path), old: "", new: &new };
        report.diff = Some(texts.difference(path.as_str()).unwrap_or_default());
        return Ok(report);
    }
    create_like(path, &record.backup_path(path), &original)?;
    remove_backup(&record, path)?;
    Ok(report)
}

fn original_report(path: &Utf8Path) -> RestoreReport {
    RestoreReport {
        config: path.to_owned(),
        restored: RestoreOutcome::Original,
        servers: Vec::new(),
        backup: None,
        diff: None,
    }
}

fn remove_backup(record: &ImportRecord, config: &Utf8Path) -> Result<(), ImportError> {
    // The configuration has the same bytes again. The backup is of no further use, and it may contain secrets.
    remove(&record.backup_path(config))?;
    remove(&record_path(config))
}

fn restore_servers(
    file: &ConfigFile,
    record: Option<&ImportRecord>,
    options: &RestoreOptions<'_>,
) -> Result<RestoreReport, ImportError> {
    let (mark, text) = file.text()?;
    let added = record.map(|record| record.added_variables.as_slice()).unwrap_or_default();
    let changed = unwrap(options.client, text, file.language(), added);
    let changed = changed.map_err(|error| file.invalid(mark.len(), error))?;
    let backup = record.map(|record| record.backup_path(&file.path)).filter(|path| path.exists());
    let restored = if changed.text.is_some() { RestoreOutcome::Unwrapped } else { RestoreOutcome::Nothing };
    let mut report =
        RestoreReport { config: file.path.clone(), restored, servers: changed.servers, backup, diff: None };
    let new = changed.text.map(|new| format!("{mark}{new}").into_bytes());
    match (new, options.mode) {
        (None, _) => {}
        (Some(new), Mode::DryRun) => report.diff = Some(difference(file, &new, options.client)),
        (Some(new), Mode::Write) => {
            // The backup stays, because it has no edits. Only a restoration that discards them returns to it.
            if let Some(record) = record {
                let record = ImportRecord { imported_sha256: None, ..record.clone() };
                record.write(&file.path)?;
            }
            file.replace(&new)?;
        }
    }
    Ok(report)
}

fn difference(file: &ConfigFile, new: &[u8], client: Client) -> String {
    let (old, new) = (String::from_utf8_lossy(&file.bytes), String::from_utf8_lossy(new));
    let texts = Versions { client, language: file.language(), old: &old, new: &new };
    texts.difference(file.path.as_str()).unwrap_or_default()
}
