//! How an execution began: what a rollback and a later execution must know.

use camino::{Utf8Path, Utf8PathBuf};
use counterproof_store::read_file;
use jiff::Timestamp;
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::{Map, Value};

use super::transitions::{EXECUTION, Evidence, Steps};
use super::{ExecutionError, OutputSource, RollbackMode, RunSettings};
use crate::contract::{Contract, ContractKey, RollbackStrategy};
use crate::git::{GitOptions, GitStart, Protected, Refusal, RepositoryState};
use crate::lifecycle::{Details, State, Transition};
use crate::resources::ResourceRequest;
use crate::rollback::snapshot::SnapshotLimits;
use crate::rollback::{RollbackStart, declared_paths};
use crate::store::NoteKind;
use crate::store::{Store, VersionHistory};

/// The field of the evidence of a transition that an interruption or a dead process caused.
pub(super) const INTERRUPTED: &str = "interrupted";

/// The field of the evidence of an interruption that describes the repository at that time.
pub(super) const LEFT: &str = "left";

/// The field of the evidence of a claim that names the process which made it.
pub(super) const PROCESS: &str = "process";

/// Longest name of a machine, in bytes.
const MAX_HOST_BYTES: u64 = 4096;

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ExecutionStart {
    pub workdir: Utf8PathBuf,
    /// The process that executes the contract. `None` if an agent does so on its own.
    #[serde(flatten)]
    pub process: Option<ProcessName>,
    pub started_at: Timestamp,
    /// What a rollback returns to.
    #[serde(deserialize_with = "rollback")]
    pub rollback: RollbackStart,
}

/// Reads what a rollback returns to. That of an older version may lack what a rollback needs: it is refused, and a person decides.
fn rollback<'de, D: Deserializer<'de>>(deserializer: D) -> Result<RollbackStart, D::Error> {
    let recorded = Value::deserialize(deserializer)?;
    Ok(serde_json::from_value(recorded).unwrap_or_else(|_| RollbackStart::Unavailable { reason: OLDER.to_owned() }))
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProcessName {
    pub pid: u32,
    pub host: String,
}

impl ProcessName {
    pub(super) fn of_this() -> Self {
        Self { pid: std::process::id(), host: host_name() }
    }

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

pub(super) fn interruption() -> Details {
    Map::from_iter([(INTERRUPTED.to_owned(), true.into())])
}

pub(super) fn left_repository(start: Option<&ExecutionStart>, settings: &RunSettings) -> Option<(String, Value)> {
    // Only a reset can discard what others did meanwhile, so only it compares the repository later.
    let start = start?;
    let RollbackStart::GitReset(start) = &start.rollback else { return None };
    let now = start.state(&settings.protected, &settings.git()).ok()?;
    Some((LEFT.to_owned(), serde_json::to_value(now).ok()?))
}

/// True if the last execution of a version was interrupted or killed, and nothing has undone its work.
pub fn was_interrupted(version: &VersionHistory) -> bool {
    let mut since = version.transitions().rev().take_while(|it| it.to != State::Executing);
    // A person decides then, so the execution is not simply continued.
    let is_refused = version.open_notes().any(|note| note.kind == NoteKind::NotRolledBack);
    !is_refused && since.any(|it| it.details.get(INTERRUPTED).is_some_and(|value| value == true))
}

impl ExecutionStart {
    pub(super) fn into_details(self) -> Result<Details, serde_json::Error> {
        Ok(Map::from_iter([(EXECUTION.to_owned(), serde_json::to_value(self)?)]))
    }

    fn of(transition: &Transition) -> Option<Self> {
        serde_json::from_value(transition.details.get(EXECUTION)?.clone()).ok()
    }

    /// Returns the repository as the last interruption of a version left it. `None` if the execution was killed.
    pub(super) fn left(version: &VersionHistory) -> Option<RepositoryState> {
        let mut since = version.transitions().rev().take_while(|it| it.to != State::Executing);
        since.find_map(|it| serde_json::from_value(it.details.get(LEFT)?.clone()).ok())
    }

    pub fn last(version: &VersionHistory) -> Option<Self> {
        version.transitions().rev().find(|it| it.to == State::Executing).and_then(Self::of)
    }
}

const DONE_BEFORE: &str = "the work was done before the run began; record its start with \
                           `contract transition ID --to executing --workdir DIR`";

const OLDER: &str =
    "the execution was begun by an older version of the program, which did not record what a rollback needs";

const SNAPSHOT: &str = "snapshot";

#[derive(Debug, Clone, Copy)]
struct StartRequest<'a> {
    folder: &'a Utf8Path,
    protected: &'a Protected,
    /// Whether the work begins now. If it was done before, its changes are there already.
    is_work_ahead: bool,
    git: &'a GitOptions,
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
        // The old start is reused, so that a rollback also undoes what the interrupted execution did.
        check_untouched(contract, &before, version, settings)?;
        return Ok(ExecutionStart { process, started_at, ..before });
    }
    let rollback = StartRequest::new(settings, &settings.git()).record(contract, &evidence.folder().join(SNAPSHOT))?;
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
    let (git, mode) = (&GitOptions::default(), RollbackMode::Automatic);
    let request = StartRequest { folder: workdir, protected, is_work_ahead: true, git, mode };
    let rollback = request.record(contract, &evidence.folder().join(SNAPSHOT))?;
    let start = ExecutionStart { workdir: workdir.to_owned(), process: None, started_at: now, rollback };
    Ok(start.into_details()?)
}

pub(crate) fn rollback_problem(contract: &Contract, settings: &RunSettings) -> Result<Option<String>, ExecutionError> {
    StartRequest::new(settings, &settings.git()).problem(contract)
}

fn check_untouched(
    contract: &Contract,
    before: &ExecutionStart,
    version: &VersionHistory,
    settings: &RunSettings,
) -> Result<(), ExecutionError> {
    // A rollback would discard changes that were made since the interruption too.
    let RollbackStart::GitReset(start) = &before.rollback else { return Ok(()) };
    if settings.rollback == RollbackMode::Never {
        return Ok(());
    }
    // The state that the interruption recorded is exact; without it, the commit and the branch must do.
    let now = start.state(&settings.protected, &settings.git());
    let untouched = match (now, ExecutionStart::left(version)) {
        (Ok(now), Some(left)) => now == left,
        // A kill leaves no record. Commits may be of others; other changes are taken for those of the killed execution.
        (Ok(now), None) => now.commit.as_ref() == Some(&start.commit) && now.branch == start.branch,
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
    fn new(settings: &'a RunSettings, git: &'a GitOptions) -> Self {
        Self {
            folder: &settings.workdir,
            protected: &settings.protected,
            is_work_ahead: matches!(settings.source, OutputSource::Command(_)),
            git,
            mode: settings.rollback,
        }
    }

    /// Records what a rollback returns to. `snapshot` is the folder for a snapshot, and does not exist.
    fn record(self, contract: &Contract, snapshot: &Utf8Path) -> Result<RollbackStart, ExecutionError> {
        // A custom command undoes the work on its own, whenever that was done.
        if !self.is_work_ahead && contract.rollback.strategy != RollbackStrategy::Custom {
            // The changes of the work cannot be distinguished from earlier ones. A rollback is refused, and a person decides.
            return Ok(RollbackStart::Unavailable { reason: DONE_BEFORE.to_owned() });
        }
        let recorded = match contract.rollback.strategy {
            RollbackStrategy::Custom => Ok(RollbackStart::Custom),
            RollbackStrategy::GitReset => self.git_start()?.map(RollbackStart::GitReset),
            RollbackStrategy::RestoreSnapshot => snapshot_paths(contract)?.and_then(|paths| {
                let taken = RollbackStart::snapshot(self.folder, &paths, snapshot, SnapshotLimits::default());
                taken.map_err(|error| error.to_string())
            }),
        };
        // Before the work: an execution whose failure could not be undone does not begin.
        recorded.or_else(|reason| match self.mode {
            RollbackMode::Automatic => Err(ExecutionError::RollbackImpossible { id: contract.id.clone(), reason }),
            RollbackMode::Never => Ok(RollbackStart::Unavailable { reason }),
        })
    }

    /// Returns why the execution could not be rolled back. Changes nothing, and takes no snapshot.
    fn problem(self, contract: &Contract) -> Result<Option<String>, ExecutionError> {
        Ok(match (self.mode, contract.rollback.strategy) {
            (RollbackMode::Never, _) | (_, RollbackStrategy::Custom) => None,
            _ if !self.is_work_ahead => None,
            (_, RollbackStrategy::GitReset) => {
                GitStart::check(self.folder, self.protected, self.git)?.err().map(|refusal| begin_refusal(&refusal))
            }
            (_, RollbackStrategy::RestoreSnapshot) => snapshot_paths(contract)?.err(),
        })
    }

    fn git_start(self) -> Result<Result<GitStart, String>, ExecutionError> {
        // First, because it is fast and stores nothing.
        if let Err(refusal) = GitStart::check(self.folder, self.protected, self.git)? {
            return Ok(Err(begin_refusal(&refusal)));
        }
        Ok(GitStart::record(self.folder, self.git)?.map_err(|refusal| refusal.to_string()))
    }
}

fn begin_refusal(refusal: &Refusal) -> String {
    match refusal {
        Refusal::ChangedBefore(_) => format!("{refusal}; commit or stash them"),
        _ => refusal.to_string(),
    }
}

fn snapshot_paths(contract: &Contract) -> Result<Result<Vec<String>, String>, ExecutionError> {
    let resources = ResourceRequest::parse_all(contract.resources())
        .map_err(|errors| ExecutionError::Resources { id: contract.id.clone(), errors })?;
    let paths = declared_paths(contract, &resources);
    if paths.is_empty() {
        return Ok(Err("a snapshot would be empty: the contract has neither artifacts nor file locks".to_owned()));
    }
    // A snapshot of the whole folder would contain the repository, the store and its evidence.
    if paths.iter().any(|path| path == ".") {
        return Ok(Err("a snapshot would be of the whole working directory: begin each path with a folder".to_owned()));
    }
    Ok(Ok(paths))
}

const DIED: &str = "the process that executed the contract died";

#[derive(Debug)]
pub(super) enum Recovered {
    Executable(Box<VersionHistory>),
    /// Another execution has completed it in the meantime.
    Completed,
    /// A killed execution has begun a rollback, which must be completed first.
    RollingBack(Box<VersionHistory>),
}

/// Brings a contract into a state from which it can be executed.
///
/// The caller holds the contract. So a step that another process of this machine began and did not finish was killed.
pub(super) fn recover(
    store: &Store,
    steps: &Steps<'_>,
    key: &ContractKey,
    settings: &RunSettings,
) -> Result<Recovered, ExecutionError> {
    // One step at a time, each a durable line: a crash in between leaves a state that the next call recovers from.
    loop {
        let version = store.version(key)?;
        let state = version.state();
        check_claim(&version, key, settings)?;
        let by_program = is_by_program(&version);
        match state {
            State::Completed => return Ok(Recovered::Completed),
            State::RolledBack | State::Cancelled => {
                return Err(ExecutionError::Ended { id: key.id.clone(), state });
            }
            // A claim alone has changed nothing, so there is nothing to fail or to undo.
            State::Claimed if by_program => steps.by_system(State::Ready, DIED, interruption())?,
            State::Executing if by_program => steps.by_system(State::Failed, DIED, interruption())?,
            State::Verifying if by_program && !awaits_approval(&version) => {
                steps.by_system(State::Failed, DIED, interruption())?;
            }
            State::RollingBack => {
                return Ok(Recovered::RollingBack(Box::new(version)));
            }
            State::Failed if version.open_notes().any(|note| note.kind == NoteKind::NotRolledBack) => {
                return Err(ExecutionError::NeedsDecision { id: key.id.clone() });
            }
            State::Failed => steps.by_owner(State::Ready, "another attempt", Details::new())?,
            State::Pending | State::Ready | State::Claimed | State::Executing | State::Verifying => {
                return Ok(Recovered::Executable(Box::new(version)));
            }
        }
    }
}

fn check_claim(version: &VersionHistory, key: &ContractKey, settings: &RunSettings) -> Result<(), ExecutionError> {
    let (id, state) = (key.id.clone(), version.state());
    if matches!(state, State::Pending | State::Ready) || state.is_terminal() {
        return Ok(());
    }
    // Another owner comes first: the other checks are about this owner's own earlier execution.
    if let Some(owner) = version.owner().filter(|owner| *owner != settings.owner) {
        return Err(ExecutionError::Foreign { id, state, owner: owner.to_owned() });
    }
    let Some(start) = ExecutionStart::last(version).filter(|_| state != State::Claimed) else { return Ok(()) };
    // A failed contract has no process any more, wherever it ran.
    let is_active = state != State::Failed;
    if let Some(process) = start.process.filter(|process| is_active && process.host != host_name()) {
        return Err(ExecutionError::OtherMachine { id, state, host: process.host });
    }
    if start.workdir != settings.workdir && (is_active || was_interrupted(version)) {
        return Err(ExecutionError::OtherWorkdir { id, workdir: start.workdir });
    }
    Ok(())
}

/// True if a program executed the contract, in contrast to an agent that works on its own.
fn is_by_program(version: &VersionHistory) -> bool {
    match version.state() {
        State::Claimed => version.transitions().next_back().is_some_and(|claim| claim.details.contains_key(PROCESS)),
        _ => ExecutionStart::last(version).is_some_and(|start| start.process.is_some()),
    }
}

fn awaits_approval(version: &VersionHistory) -> bool {
    version.open_notes().any(|note| note.kind == NoteKind::ApprovalRequested)
}
