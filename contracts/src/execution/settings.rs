//! Settings of executions.

use std::path::PathBuf;
use std::time::Duration;

use camino::{Utf8Path, Utf8PathBuf};
use counterproof_redaction::Redactor;
use jiff::Timestamp;

use crate::contract::ContractId;
use crate::git::Protected;
use crate::process::Cancellation;

/// Where the output of a contract comes from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum OutputSource {
    /// A JSON file.
    File(Utf8PathBuf),
    /// A folder with one JSON file for each contract: its case id with `.json`.
    Folder(Utf8PathBuf),
    /// A command line for `sh -c`, which reads the contract's input from standard input and prints the output.
    Command(String),
}

/// Whether failed work is undone.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RollbackMode {
    /// Right after the failure.
    Automatic,
    /// Not by this execution: the contract stays failed, and its work stays in place.
    Never,
}

/// Settings of executions. They are the same for all contracts of a run.
#[derive(Debug)]
pub struct RunSettings {
    /// The working directory.
    pub workdir: Utf8PathBuf,
    /// Where the outputs come from.
    pub source: OutputSource,
    /// The name of the agent that claims the contracts.
    pub owner: String,
    /// How long to wait for resources that others hold.
    pub wait: Duration,
    /// Whether failed work is undone.
    pub rollback: RollbackMode,
    /// Requires the approval of a person for every contract.
    pub requires_approval: bool,
    /// The time limit of the agent command.
    pub agent_timeout: Duration,
    /// The folder in which the executions of this machine register what they hold.
    pub locks: Utf8PathBuf,
    /// Paths that a rollback leaves as they are: the store, its evidence, and the run folders.
    pub protected: Protected,
    /// Masks secrets in everything that is stored.
    pub redactor: Redactor,
    /// Stops executions.
    pub cancellation: Cancellation,
    pub clock: fn() -> Timestamp,
    /// See [`ShellCommand::supervisor`](crate::process::ShellCommand::supervisor).
    pub supervisor: Option<PathBuf>,
}

impl OutputSource {
    /// Returns the file with the output of a contract, unless a command makes it.
    pub fn file(&self, id: &ContractId) -> Option<Utf8PathBuf> {
        match self {
            OutputSource::File(path) => Some(path.clone()),
            OutputSource::Folder(folder) => Some(output_in(folder, id)),
            OutputSource::Command(_) => None,
        }
    }
}

/// Returns the output file of a contract in a folder of outputs.
pub(super) fn output_in(folder: &Utf8Path, id: &ContractId) -> Utf8PathBuf {
    folder.join(format!("{}.json", id.file_stem()))
}
