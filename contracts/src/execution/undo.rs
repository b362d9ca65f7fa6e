//! Undoes the work of a failed execution, as its contract says.

use counterproof_redaction::Applied;

use super::began::{ExecutionStart, ProcessName, was_interrupted};
use super::evidence::Evidence;
use super::outcome::{RollbackOutcome, RollbackSummary};
use super::rollback_start::{RollbackStart, record};
use super::steps::Steps;
use super::{Environment, ExecutionError, RunSettings, details};
use crate::contract::{Contract, RollbackStrategy};
use crate::git;
use crate::lifecycle::{Details, State};
use crate::process::{EvidenceFolder, ShellCommand, run};
use crate::record::NoteKind;
use crate::rollback::snapshot::{self, SnapshotLimits};
use crate::store::{Store, VersionHistory};

/// The name of the folder of a snapshot, in that of the evidence.
const SNAPSHOT: &str = "snapshot";

/// Records how an execution begins. After an interruption, it begins where the interrupted one did.
pub(super) fn begin(
    contract: &Contract,
    version: &VersionHistory,
    settings: &RunSettings,
    evidence: &Evidence,
) -> Result<ExecutionStart, ExecutionError> {
    let process = Some(ProcessName::of_this());
    let started_at = (settings.clock)();
    if let Some(before) = ExecutionStart::last(version).filter(|_| was_interrupted(version))
        && before.workdir == settings.workdir
    {
        return Ok(ExecutionStart { process, started_at, ..before });
    }
    let rollback = record(contract, settings, &evidence.folder().join(SNAPSHOT))?;
    Ok(ExecutionStart { workdir: settings.workdir.clone(), process, started_at, rollback })
}

/// Undoes failed work. Returns the state of the contract afterwards.
pub(super) fn undo(
    contract: &Contract,
    start: Option<&ExecutionStart>,
    settings: &RunSettings,
    steps: &Steps<'_>,
    environment: &Environment,
    evidence: &mut Evidence,
) -> Result<(State, RollbackSummary), ExecutionError> {
    if let Some(reason) = refusal(contract, start, settings)? {
        let summary = summary(contract, RollbackOutcome::Refused, reason, None);
        steps.note(NoteKind::RollbackRefused, &summary.message, details::rollback(&summary))?;
        return Ok((State::Failed, summary));
    }
    steps.by_system(State::RollingBack, "the work of the failed execution is undone", Details::new())?;
    finish(contract, start, settings, steps, environment, evidence)
}

/// Completes a rollback that a killed process began.
pub(super) fn resume_rollback(
    version: &VersionHistory,
    settings: &RunSettings,
    steps: &Steps<'_>,
    store: &Store,
) -> Result<(), ExecutionError> {
    let contract = &version.contract;
    let start = ExecutionStart::last(version);
    let mut evidence = Evidence::create(&store.files_folder(), contract)?;
    finish(contract, start.as_ref(), settings, steps, &Environment::new(), &mut evidence).map(drop)
}

/// Performs the rollback of a contract in the state `rolling_back`.
fn finish(
    contract: &Contract,
    start: Option<&ExecutionStart>,
    settings: &RunSettings,
    steps: &Steps<'_>,
    environment: &Environment,
    evidence: &mut Evidence,
) -> Result<(State, RollbackSummary), ExecutionError> {
    let summary = perform(contract, start, settings, environment, evidence);
    let state = match summary.outcome {
        RollbackOutcome::RolledBack => State::RolledBack,
        RollbackOutcome::Refused | RollbackOutcome::Failed => State::Failed,
    };
    steps.by_system(state, &summary.message, details::rollback(&summary))?;
    Ok((state, summary))
}

/// Returns why a rollback would throw away work of others, without changing anything.
pub(super) fn refusal(
    contract: &Contract,
    start: Option<&ExecutionStart>,
    settings: &RunSettings,
) -> Result<Option<String>, ExecutionError> {
    let Some(start) = start else {
        let is_custom = contract.rollback.strategy == RollbackStrategy::Custom;
        return Ok((!is_custom).then(|| "it is not recorded how the execution began".to_owned()));
    };
    Ok(match &start.rollback {
        RollbackStart::Custom => None,
        RollbackStart::Unavailable { reason } => Some(reason.clone()),
        RollbackStart::GitReset(git) => {
            git::plan(git, &start.workdir, &settings.protected)?.err().map(|refusal| refusal.to_string())
        }
        RollbackStart::RestoreSnapshot(snapshot) => match snapshot::plan(snapshot, SnapshotLimits::default()) {
            Ok(plan) => plan.err().map(|refusal| refusal.to_string()),
            // A damaged snapshot fails the rollback, and a person decides.
            Err(error) => Some(error.to_string()),
        },
    })
}

fn perform(
    contract: &Contract,
    start: Option<&ExecutionStart>,
    settings: &RunSettings,
    environment: &Environment,
    evidence: &mut Evidence,
) -> RollbackSummary {
    let done = match start.map(|start| (&start.rollback, start)) {
        Some((RollbackStart::GitReset(git), start)) => reset(contract, git, start, settings),
        Some((RollbackStart::RestoreSnapshot(snapshot), _)) => restore(snapshot),
        Some((RollbackStart::Unavailable { reason }, _)) => Err((RollbackOutcome::Refused, reason.clone())),
        Some((RollbackStart::Custom, _)) | None => custom(contract, settings, environment, evidence),
    };
    match done {
        Ok((message, way_back)) => summary(contract, RollbackOutcome::RolledBack, message, way_back),
        Err((outcome, message)) => summary(contract, outcome, message, None),
    }
}

/// What was done, with the way to get it back; or why not.
type Done = Result<(String, Option<String>), (RollbackOutcome, String)>;

fn reset(contract: &Contract, git: &git::GitStart, start: &ExecutionStart, settings: &RunSettings) -> Done {
    match git::reset(git, &start.workdir, &settings.protected, contract.id.as_str()) {
        Ok(Ok(done)) => {
            let way_back = done.saved.map(|saved| format!("git -C {} checkout {saved} -- .", git.root));
            Ok((format!("discarded {}", done.discarded.summary()), way_back))
        }
        Ok(Err(refusal)) => Err((RollbackOutcome::Refused, refusal.to_string())),
        Err(error) => Err((RollbackOutcome::Failed, text(&error))),
    }
}

fn restore(start: &snapshot::SnapshotStart) -> Done {
    match snapshot::restore(start, SnapshotLimits::default()) {
        Ok(Ok(done)) => {
            let message = format!("restored {} and removed {} files", done.restored.len(), done.removed.len());
            Ok((message, done.saved.map(|saved| format!("cp -a {saved}/files/. {}", start.root))))
        }
        Ok(Err(refusal)) => Err((RollbackOutcome::Refused, refusal.to_string())),
        Err(error) => Err((RollbackOutcome::Failed, text(&error))),
    }
}

fn custom(contract: &Contract, settings: &RunSettings, environment: &Environment, evidence: &mut Evidence) -> Done {
    let failed = |message: String| (RollbackOutcome::Failed, message);
    let Some(line) = contract.rollback.custom.as_deref() else {
        return Err(failed("the contract has no rollback command".to_owned()));
    };
    let mut command = ShellCommand::new(line, settings.folder());
    command.environment.clone_from(environment);
    command.supervisor.clone_from(&settings.supervisor);
    let finished = run(&command, &settings.cancellation).map_err(|error| failed(text(&error)))?;
    let (ending, stopped) = (finished.ending, finished.stopped);
    let folder = evidence.folder();
    let stored = EvidenceFolder { path: &folder, redactor: &settings.redactor }.store("rollback", finished);
    let files = stored.map_err(|error| failed(text(&error)))?;
    evidence.add_record(&files);
    if let Some(reason) = stopped {
        return Err(failed(format!("the rollback command failed: {reason}")));
    }
    if !ending.is_success() {
        return Err(failed(format!("the rollback command ended with {ending}")));
    }
    let line = settings.redactor.text(line, &mut Applied::default());
    Ok((format!("ran `{line}`"), None))
}

fn summary(
    contract: &Contract,
    outcome: RollbackOutcome,
    message: String,
    way_back: Option<String>,
) -> RollbackSummary {
    let strategy = match contract.rollback.strategy {
        RollbackStrategy::GitReset => "git_reset",
        RollbackStrategy::RestoreSnapshot => "restore_snapshot",
        RollbackStrategy::Custom => "custom",
    };
    RollbackSummary { strategy, outcome, message, way_back }
}

/// Returns an error with its causes in one line.
fn text(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        text = format!("{text}: {error}");
        cause = error.source();
    }
    text
}
