//! How an execution began: what a rollback and a later execution must know.

use camino::{Utf8Path, Utf8PathBuf};
use counterproof_store::read_file;
use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::steps::EXECUTION;
use crate::git::GitStart;
use crate::lifecycle::{Details, State, Transition};
use crate::record::NoteKind;
use crate::rollback::Began;
use crate::store::VersionHistory;

/// The field of the evidence of a transition that an interruption or a dead process caused.
pub(super) const INTERRUPTED: &str = "interrupted";

/// The field of the evidence of an interruption that describes the repository at that time.
pub(super) const LEFT: &str = "left";

/// The field of the evidence of a claim that names the process which made it.
pub(super) const PROCESS: &str = "process";

/// Longest name of a machine, in bytes.
const MAX_HOST_BYTES: u64 = 4096;

/// How an execution began, as the transition to [`State::Executing`] has it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ExecutionStart {
    /// The working directory.
    pub workdir: Utf8PathBuf,
    /// The process that executes the contract. `None` if an agent does so on its own.
    #[serde(flatten)]
    pub process: Option<ProcessName>,
    /// The time of the start.
    pub started_at: Timestamp,
    /// What a rollback returns to.
    pub rollback: Began,
}

/// A process on a machine.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProcessName {
    /// The number of the process.
    pub pid: u32,
    /// The name of the machine.
    pub host: String,
}

impl ProcessName {
    pub(super) fn of_this() -> Self {
        Self { pid: std::process::id(), host: host_name() }
    }

    /// Returns the evidence of a claim.
    pub(super) fn into_details(self) -> Result<Details, serde_json::Error> {
        Ok(Map::from_iter([(PROCESS.to_owned(), serde_json::to_value(self)?)]))
    }
}

/// Returns the name of this machine; empty if the system does not say.
pub fn host_name() -> String {
    read_file::read_text(Utf8Path::new("/proc/sys/kernel/hostname"), MAX_HOST_BYTES)
        .unwrap_or_default()
        .trim()
        .to_owned()
}

/// Returns the evidence of an interruption.
pub(super) fn interruption() -> Details {
    Map::from_iter([(INTERRUPTED.to_owned(), true.into())])
}

/// Returns the evidence of an interruption: the repository as it is now.
pub(super) fn left_repository(start: Option<&ExecutionStart>) -> Option<(String, Value)> {
    let start = start?;
    let Began::GitReset(_) = &start.rollback else { return None };
    let now = GitStart::record(&start.workdir).ok()?.ok()?;
    Some((LEFT.to_owned(), serde_json::to_value(now).ok()?))
}

/// True if the last execution of a version was interrupted or killed, and nothing has undone its work.
pub fn was_interrupted(version: &VersionHistory) -> bool {
    let mut since = version.transitions().rev().take_while(|it| it.to != State::Executing);
    let is_refused = version.open_notes().any(|note| note.kind == NoteKind::NotRolledBack);
    !is_refused && since.any(|it| it.details.get(INTERRUPTED).is_some_and(|value| value == true))
}

impl ExecutionStart {
    /// Returns the evidence of the transition.
    pub(super) fn into_details(self) -> Result<Details, serde_json::Error> {
        Ok(Map::from_iter([(EXECUTION.to_owned(), serde_json::to_value(self)?)]))
    }

    fn of(transition: &Transition) -> Option<Self> {
        serde_json::from_value(transition.details.get(EXECUTION)?.clone()).ok()
    }

    /// Returns the repository as the last interruption of a version left it. `None` if the execution was killed.
    pub(super) fn left(version: &VersionHistory) -> Option<GitStart> {
        let mut since = version.transitions().rev().take_while(|it| it.to != State::Executing);
        since.find_map(|it| serde_json::from_value(it.details.get(LEFT)?.clone()).ok())
    }

    /// Returns the start of the last execution of a version, if it recorded one.
    pub fn last(version: &VersionHistory) -> Option<Self> {
        version.transitions().rev().find(|it| it.to == State::Executing).and_then(Self::of)
    }
}
