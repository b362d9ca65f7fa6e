//! What a rollback returns to, recorded when an execution begins.

use camino::Utf8Path;
use serde::{Deserialize, Serialize};

use super::{ExecutionError, OutputSource, RollbackMode, RunSettings};
use crate::contract::{Contract, ResourceType, RollbackStrategy};
use crate::git::GitStart;
use crate::rollback::snapshot::{SnapshotLimits, SnapshotStart, take};

/// Characters that make a name a pattern.
const SPECIAL: [char; 6] = ['*', '?', '[', ']', '{', '}'];

/// What a rollback returns to.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "strategy", rename_all = "snake_case")]
pub enum RollbackStart {
    /// A commit.
    GitReset(GitStart),
    /// A copy of the declared paths.
    RestoreSnapshot(SnapshotStart),
    /// Whatever the command of the contract returns to.
    Custom,
    /// Nothing: the execution is not rolled back.
    Unavailable {
        /// The reason.
        reason: String,
    },
}

/// Records what a rollback returns to. `folder` is for a snapshot, and does not exist.
pub(super) fn record(
    contract: &Contract,
    settings: &RunSettings,
    folder: &Utf8Path,
) -> Result<RollbackStart, ExecutionError> {
    let impossible = |reason: String| match settings.rollback {
        RollbackMode::Automatic => Err(ExecutionError::RollbackImpossible { id: contract.id.clone(), reason }),
        RollbackMode::Never => Ok(RollbackStart::Unavailable { reason }),
    };
    match contract.rollback.strategy {
        RollbackStrategy::Custom => Ok(RollbackStart::Custom),
        RollbackStrategy::RestoreSnapshot => {
            let paths = match declared_paths(contract) {
                Ok(paths) => paths,
                Err(reason) => return impossible(reason),
            };
            match take(settings.folder(), &paths, folder, SnapshotLimits::default()) {
                Ok(start) => Ok(RollbackStart::RestoreSnapshot(start)),
                Err(error) => impossible(error.to_string()),
            }
        }
        RollbackStrategy::GitReset => {
            let start = match GitStart::record(settings.folder())? {
                Ok(start) => start,
                Err(refusal) => return impossible(refusal.to_string()),
            };
            // The output of a file was made before: its changes are the agent's, and only the rollback is refused then.
            let is_made_now = matches!(settings.source, OutputSource::Command(_));
            let changed = start.changed_without(&settings.protected);
            if is_made_now && !changed.is_empty() {
                return impossible(crate::git::Refusal::ChangedBefore(changed).to_string());
            }
            Ok(RollbackStart::GitReset(start))
        }
    }
}

/// Returns the paths that a snapshot copies: the artifacts, and the paths of the file locks. A pattern means the folder before its
/// first special name.
pub(crate) fn declared_paths(contract: &Contract) -> Result<Vec<String>, String> {
    let mut paths = contract.artifacts().to_vec();
    let locks = contract.resources().iter().filter(|resource| resource.resource_type == ResourceType::FileLock);
    for pattern in locks.flat_map(|lock| lock.spec["paths"].as_array().into_iter().flatten()) {
        let Some(pattern) = pattern.as_str() else { continue };
        let names: Vec<&str> = pattern.split('/').take_while(|name| !name.contains(SPECIAL)).collect();
        if names.iter().all(|name| name.is_empty() || *name == ".") {
            return Err(format!(
                "a snapshot of `{pattern}` would be one of the whole working directory; begin the pattern with a folder"
            ));
        }
        paths.push(names.join("/"));
    }
    if paths.is_empty() {
        return Err("the contract declares neither artifacts nor file locks, so a snapshot would be empty".to_owned());
    }
    paths.sort();
    paths.dedup();
    Ok(paths)
}
