//! What a rollback returns to, recorded when an execution begins.

use camino::Utf8Path;

use super::{ExecutionError, OutputSource, RollbackMode, RunSettings};
use crate::contract::{Contract, RollbackStrategy};
use crate::git::{GitStart, Protected, Refusal};
use crate::resources::ResourceRequest;
use crate::rollback::snapshot::SnapshotLimits;
use crate::rollback::{Began, declared_paths};

/// Why work whose start was not recorded is not rolled back.
const DONE_BEFORE: &str = "the work was done before the run began; record its start with \
                           `contract transition ID --to executing --workdir DIR`";

/// Where an execution begins, and what its rollback may rely on.
#[derive(Debug, Clone, Copy)]
pub(super) struct StartRequest<'a> {
    /// The working directory.
    pub(super) folder: &'a Utf8Path,
    /// Paths that a rollback leaves as they are.
    pub(super) protected: &'a Protected,
    /// Whether the work begins now. If it was done before, its changes are there already.
    pub(super) is_work_ahead: bool,
    /// Whether the execution must not begin without a rollback.
    pub(super) mode: RollbackMode,
}

impl<'a> StartRequest<'a> {
    pub(super) fn new(settings: &'a RunSettings) -> Self {
        Self {
            folder: settings.folder(),
            protected: &settings.protected,
            is_work_ahead: matches!(settings.source, OutputSource::Command(_)),
            mode: settings.rollback,
        }
    }

    /// Records what a rollback returns to. `snapshot` is the folder for a snapshot, and does not exist.
    pub(super) fn record(self, contract: &Contract, snapshot: &Utf8Path) -> Result<Began, ExecutionError> {
        if !self.is_work_ahead && contract.rollback.strategy != RollbackStrategy::Custom {
            // What the work changed cannot be told from what was there before. A rollback is refused, and a person decides.
            return Ok(Began::Unavailable { reason: DONE_BEFORE.to_owned() });
        }
        let recorded = match contract.rollback.strategy {
            RollbackStrategy::Custom => Ok(Began::Custom),
            RollbackStrategy::GitReset => self.git_start()?.map(Began::GitReset),
            RollbackStrategy::RestoreSnapshot => snapshot_paths(contract)?.and_then(|paths| {
                let taken = Began::snapshot(self.folder, &paths, snapshot, SnapshotLimits::default());
                taken.map_err(|error| error.to_string())
            }),
        };
        recorded.or_else(|reason| match self.mode {
            RollbackMode::Automatic => Err(ExecutionError::RollbackImpossible { id: contract.id.clone(), reason }),
            RollbackMode::Never => Ok(Began::Unavailable { reason }),
        })
    }

    /// Returns why the execution could not be rolled back. Changes nothing, and takes no snapshot.
    pub(super) fn problem(self, contract: &Contract) -> Result<Option<String>, ExecutionError> {
        Ok(match (self.mode, contract.rollback.strategy) {
            (RollbackMode::Never, _) | (_, RollbackStrategy::Custom) => None,
            _ if !self.is_work_ahead => None,
            (_, RollbackStrategy::GitReset) => self.git_start()?.err(),
            (_, RollbackStrategy::RestoreSnapshot) => snapshot_paths(contract)?.err(),
        })
    }

    fn git_start(self) -> Result<Result<GitStart, String>, ExecutionError> {
        let start = match GitStart::record(self.folder)? {
            Ok(start) => start,
            Err(refusal) => return Ok(Err(refusal.to_string())),
        };
        let changed = start.changed_without(self.protected);
        if !changed.is_empty() {
            return Ok(Err(format!("{}; commit or stash them", Refusal::ChangedBefore(changed))));
        }
        Ok(Ok(start))
    }
}

/// Returns the paths that a snapshot copies.
fn snapshot_paths(contract: &Contract) -> Result<Result<Vec<String>, String>, ExecutionError> {
    let resources = ResourceRequest::parse_all(contract.resources())
        .map_err(|errors| ExecutionError::Resources { id: contract.id.clone(), errors })?;
    let paths = declared_paths(contract, &resources);
    if paths.is_empty() {
        return Ok(Err("a snapshot would be empty: the contract has neither artifacts nor file locks".to_owned()));
    }
    // It would contain the repository, the store and its evidence.
    if paths.iter().any(|path| path == ".") {
        return Ok(Err("a snapshot would be of the whole working directory: begin each path with a folder".to_owned()));
    }
    Ok(Ok(paths))
}
