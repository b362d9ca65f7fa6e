//! The folder with the evidence of one execution.

use camino::{Utf8Path, Utf8PathBuf};
use counterproof_store::write::{self, Durability, WriteError};
use serde_json::Value;

use super::ExecutionError;
use crate::contract::Contract;
use crate::process::EvidenceFiles;

/// The largest number of executions of one version.
const MAX_EXECUTIONS: u32 = 100_000;

/// The folder with the evidence of one execution: `<case id>/v<version>/<number>` in the files of the store.
#[derive(Debug)]
pub(super) struct Evidence {
    /// The files of the store.
    root: Utf8PathBuf,
    /// The folder, relative to `root`.
    relative: Utf8PathBuf,
    /// The names of the files so far, relative to `root`.
    names: Vec<String>,
}

impl Evidence {
    /// Creates the next folder.
    pub(super) fn create(root: &Utf8Path, contract: &Contract) -> Result<Self, ExecutionError> {
        let version = Utf8PathBuf::from(format!("{}/v{}", contract.id.file_stem(), contract.version));
        write::create_folder(&root.join(&version))?;
        for number in 1..=MAX_EXECUTIONS {
            let relative = version.join(number.to_string());
            match write::create_new_folder(&root.join(&relative)) {
                Ok(()) => return Ok(Self { root: root.to_owned(), relative, names: Vec::new() }),
                Err(error) if error.source.kind() == std::io::ErrorKind::AlreadyExists => {}
                Err(error) => return Err(error.into()),
            }
        }
        let source = std::io::Error::other(format!("{MAX_EXECUTIONS} executions have evidence there"));
        Err(ExecutionError::Write(WriteError { path: root.join(version), source }))
    }

    pub(super) fn folder(&self) -> Utf8PathBuf {
        self.root.join(&self.relative)
    }

    /// Stores a document as JSON.
    pub(super) fn store_json(&mut self, name: &str, document: &Value) -> Result<(), ExecutionError> {
        write::write_json(&self.folder().join(name), document, Durability::Synced)?;
        self.add(name);
        Ok(())
    }

    /// Adds the files of a record to the names.
    pub(super) fn add_record(&mut self, files: &EvidenceFiles) {
        self.add(&files.log);
        self.add(&files.events);
    }

    fn add(&mut self, name: &str) {
        self.names.push(self.relative.join(name).into_string());
    }

    /// Returns the names of all files, relative to the files of the store.
    pub(super) fn names(&self) -> &[String] {
        &self.names
    }
}
