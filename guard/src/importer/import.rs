//! Wraps the servers of a configuration, and writes the backup first.

use camino::{Utf8Path, Utf8PathBuf};
use counterproof_artifact::Sha256Digest;
use serde::Serialize;

use super::Client;
use super::config_file::{ConfigFile, ImportError, ImportRecord, backup_paths};
use super::diff::Versions;
use super::wrap::{ConfigChange, ServerChange, ShimCommand, wrap};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mode {
    Write,
    /// Nothing is written, and the report has the difference.
    DryRun,
}

#[derive(Debug, Clone)]
pub struct ImportOptions<'a> {
    pub client: Client,
    pub config: &'a Utf8Path,
    pub shim: ShimCommand,
    pub mode: Mode,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ImportReport {
    pub config: Utf8PathBuf,
    pub is_changed: bool,
    pub servers: Vec<ServerChange>,
    /// The client that reads the servers of the configuration, if this client finds none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub other_client: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub backup: Option<Utf8PathBuf>,
    /// The unified difference of a dry run, without secrets.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub diff: Option<String>,
}

pub fn import(options: &ImportOptions<'_>) -> Result<ImportReport, ImportError> {
    let file = ConfigFile::read(options.config)?;
    let (mark, text) = file.text()?;
    let changed = wrap(options.client, text, file.language(), &options.shim);
    let changed = changed.map_err(|error| file.invalid(mark.len(), error))?;
    let record = ImportRecord::read(&file.path).filter(|_| changed.had_wrapped);
    let mut report = ImportReport {
        config: file.path.clone(),
        is_changed: changed.text.is_some(),
        servers: changed.servers.clone(),
        other_client: changed.other_client.map(Client::name),
        backup: record.as_ref().map(|record| record.backup_path(&file.path)),
        diff: None,
    };
    match (&changed.text, options.mode) {
        (None, _) => {}
        (Some(new), Mode::DryRun) => {
            let name = file.path.as_str();
            let texts = Versions { client: options.client, language: file.language(), old: text, new };
            report.diff = Some(texts.difference(name).unwrap_or_default());
        }
        (Some(new), Mode::Write) => {
            let bytes = format!("{mark}{new}").into_bytes();
            let new = NewConfig { bytes: &bytes, changed: &changed, program: &options.shim.program };
            report.backup = Some(write(&file, record, &new)?);
        }
    }
    Ok(report)
}

struct NewConfig<'a> {
    bytes: &'a [u8],
    changed: &'a ConfigChange,
    program: &'a str,
}

/// Writes the backup, the record and the configuration, in this order: a crash leaves the original, or everything.
fn write(file: &ConfigFile, record: Option<ImportRecord>, new: &NewConfig<'_>) -> Result<Utf8PathBuf, ImportError> {
    let NewConfig { bytes: new, changed, program } = *new;
    let digest = |bytes: &[u8]| Sha256Digest::from_bytes(bytes);
    let record = if let Some(mut record) = record {
        // The older backup is the original. It lacks what was edited since then.
        let is_unedited = record.imported_sha256 == Some(digest(&file.bytes));
        record.imported_sha256 = is_unedited.then(|| digest(new));
        record.added_variables.retain(|old| !changed.added.iter().any(|added| added.server == old.server));
        record.added_variables.extend(changed.added.iter().cloned());
        record
    } else {
        let backup = file.copy_to(backup_paths(&file.path))?;
        ImportRecord {
            backup: backup.file_name().unwrap_or_default().to_owned(),
            original_sha256: digest(&file.bytes),
            // A copy with wrapped servers is not the original.
            imported_sha256: (!changed.had_wrapped).then(|| digest(new)),
            program: program.to_owned(),
            added_variables: changed.added.clone(),
        }
    };
    record.write(&file.path)?;
    file.replace(new)?;
    Ok(record.backup_path(&file.path))
}
