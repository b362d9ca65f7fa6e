//! What a rollback returns to, recorded when an execution begins.

use camino::Utf8Path;
use jiff::Timestamp;

use super::began::{ExecutionStart, ProcessName, was_interrupted};
use super::evidence::Evidence;
use super::{ExecutionError, OutputSource, RollbackMode, RunSettings};
use crate::contract::{Contract, RollbackStrategy};
use crate::git::{GitStart, Protected, Refusal};
use crate::lifecycle::Details;
use crate::resources::ResourceRequest;
use crate::rollback::snapshot::SnapshotLimits;
use crate::rollback::{Began, declared_paths};
use crate::store::{Store, VersionHistory};

/// Why work whose start was not recorded is not rolled back.
const DONE_BEFORE: &str = "the work was done before the run began; record its start with \
                           `contract transition ID --to executing --workdir DIR`";

/// The name of the folder of a snapshot, in that of the evidence.
const SNAPSHOT: &str = "snapshot";

/// Where an execution begins, and what its rollback may rely on.
#[derive(Debug, Clone, Copy)]
struct StartRequest<'a> {
    /// The working directory.
    folder: &'a Utf8Path,
    /// Paths that a rollback leaves as they are.
    protected: &'a Protected,
    /// Whether the work begins now. If it was done before, its changes are there already.
    is_work_ahead: bool,
    /// Whether the execution must not begin without a rollback.
    mode: RollbackMode,
}

/// Records how an execution begins. After an interruption, it begins where the interrupted one did.
pub(super) fn begin(
    contract: &Contract,
    version: &VersionHistory,
    settings: &RunSettings,
    evidence: &Evidence,
) -> Result<ExecutionStart, ExecutionError> {
    let process = Some(ProcessName::of_this());
    let started_at = (settings.clock)();
    if let Some(before) = ExecutionStart::last(version).filter(|_| was_interrupted(version)) {
        check_untouched(contract, &before, version, settings)?;
        return Ok(ExecutionStart { process, started_at, ..before });
    }
    let rollback = StartRequest::new(settings).record(contract, &evidence.folder().join(SNAPSHOT))?;
    Ok(ExecutionStart { workdir: settings.workdir.clone(), process, started_at, rollback })
}

/// Returns the evidence of the start of an agent that works on its own, for its transition to [`State::Executing`](crate::State::Executing).
pub fn start_details(
    store: &Store,
    contract: &Contract,
    workdir: &Utf8Path,
    protected: &Protected,
    now: Timestamp,
) -> Result<Details, ExecutionError> {
    let evidence = Evidence::create(&store.files_folder(), contract)?;
    let request = StartRequest { folder: workdir, protected, is_work_ahead: true, mode: RollbackMode::Automatic };
    let rollback = request.record(contract, &evidence.folder().join(SNAPSHOT))?;
    let start = ExecutionStart { workdir: workdir.to_owned(), process: None, started_at: now, rollback };
    Ok(start.into_details()?)
}

/// Returns why an execution could not be rolled back. Changes nothing.
pub(crate) fn rollback_problem(contract: &Contract, settings: &RunSettings) -> Result<Option<String>, ExecutionError> {
    StartRequest::new(settings).problem(contract)
}

/// Checks that the repository has not changed since the interruption: a rollback would discard those changes too.
fn check_untouched(
    contract: &Contract,
    before: &ExecutionStart,
    version: &VersionHistory,
    settings: &RunSettings,
) -> Result<(), ExecutionError> {
    let Began::GitReset(start) = &before.rollback else { return Ok(()) };
    if settings.rollback == RollbackMode::Never {
        return Ok(());
    }
    let untouched = match (GitStart::record(&before.workdir)?, ExecutionStart::left(version)) {
        (Ok(now), Some(left)) => now.is_same_state(&left, &settings.protected),
        // A kill leaves no record. Commits may be of others; other changes are taken for those of the killed execution.
        (Ok(now), None) => now.commit == start.commit && now.branch == start.branch,
        (Err(_), _) => false,
    };
    if untouched {
        return Ok(());
    }
    let reason = format!(
        "the repository has changed since the interrupted execution, which began at {}; pass `--no-rollback`, or reset it",
        start.commit
    );
    Err(ExecutionError::RollbackImpossible { id: contract.id.clone(), reason })
}

impl<'a> StartRequest<'a> {
    fn new(settings: &'a RunSettings) -> Self {
        Self {
            folder: &settings.workdir,
            protected: &settings.protected,
            is_work_ahead: matches!(settings.source, OutputSource::Command(_)),
            mode: settings.rollback,
        }
    }

    /// Records what a rollback returns to. `snapshot` is the folder for a snapshot, and does not exist.
    fn record(self, contract: &Contract, snapshot: &Utf8Path) -> Result<Began, ExecutionError> {
        if !self.is_work_ahead && contract.rollback.strategy != RollbackStrategy::Custom {
            // The changes of the work cannot be distinguished from earlier ones. A rollback is refused, and a person decides.
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
    fn problem(self, contract: &Contract) -> Result<Option<String>, ExecutionError> {
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
