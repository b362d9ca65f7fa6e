//! What a rollback returns to, recorded when an execution begins.

use camino::Utf8Path;

use super::{ExecutionError, OutputSource, RollbackMode, RunSettings};
use crate::contract::{Contract, RollbackStrategy};
use crate::git::GitStart;
use crate::resources::ResourceRequest;
use crate::rollback::snapshot::SnapshotLimits;
use crate::rollback::{Began, declared_paths};

/// Records what a rollback returns to. `folder` is for a snapshot, and does not exist.
pub(super) fn record(contract: &Contract, settings: &RunSettings, folder: &Utf8Path) -> Result<Began, ExecutionError> {
    let impossible = |reason: String| match settings.rollback {
        RollbackMode::Automatic => Err(ExecutionError::RollbackImpossible { id: contract.id.clone(), reason }),
        RollbackMode::Never => Ok(Began::Unavailable { reason }),
    };
    match contract.rollback.strategy {
        RollbackStrategy::Custom => Ok(Began::Custom),
        RollbackStrategy::RestoreSnapshot => {
            let resources = ResourceRequest::parse_all(contract.resources())
                .map_err(|errors| ExecutionError::Resources { id: contract.id.clone(), errors })?;
            let paths = declared_paths(contract, &resources);
            if paths.is_empty() {
                return impossible(
                    "a snapshot would be empty: the contract has neither artifacts nor file locks".to_owned(),
                );
            }
            // It would contain the repository, the store and its evidence.
            if paths.iter().any(|path| path == ".") {
                let reason = "a snapshot would be of the whole working directory: begin each path with a folder";
                return impossible(reason.to_owned());
            }
            match Began::snapshot(settings.folder(), &paths, folder, SnapshotLimits::default()) {
                Ok(began) => Ok(began),
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
            Ok(Began::GitReset(start))
        }
    }
}
