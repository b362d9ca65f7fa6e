//! Undoes the work of a failed execution, as its contract says.

use camino::Utf8Path;
use counterproof_artifact::with_causes;
use jiff::Timestamp;
use serde_json::Value;

use super::began::{ExecutionStart, LEFT, ProcessName, was_interrupted};
use super::evidence::Evidence;
use super::outcome::{RollbackOutcome, RollbackSummary};
use super::rollback_start::StartRequest;
use super::steps::{FailedBy, Steps};
use super::{Environment, ExecutionError, RollbackMode, RunSettings, details};
use crate::contract::{Contract, RollbackStrategy};
use crate::git::{GitStart, Protected};
use crate::lifecycle::{Details, State};
use crate::process::{EvidenceFolder, ProcessError};
use crate::record::NoteKind;
use crate::rollback::{Began, RollbackEnd, RollbackPlan, RollbackSettings};
use crate::store::{Store, Then, VersionHistory};

/// Number of steps of a rollback that a message lists.
const LISTED_STEPS: usize = 3;

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
    if let Some(before) = ExecutionStart::last(version).filter(|_| was_interrupted(version)) {
        check_untouched(contract, &before, version, settings)?;
        return Ok(ExecutionStart { process, started_at, ..before });
    }
    let rollback = StartRequest::new(settings).record(contract, &evidence.folder().join(SNAPSHOT))?;
    Ok(ExecutionStart { workdir: settings.workdir.clone(), process, started_at, rollback })
}

/// Returns the evidence of the start of an agent that works on its own, for its transition to [`State::Executing`].
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

/// Checks that nobody has worked in the repository since the interruption: a rollback would discard that work too.
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

/// Returns the evidence of an interruption: the repository as it is now.
pub(super) fn left(start: Option<&ExecutionStart>) -> Option<(String, Value)> {
    let start = start?;
    let Began::GitReset(_) = &start.rollback else { return None };
    let now = GitStart::record(&start.workdir).ok()?.ok()?;
    Some((LEFT.to_owned(), serde_json::to_value(now).ok()?))
}

/// Fails a contract and undoes its work. Returns its state afterwards.
pub(super) fn fail_and_undo(
    failure: Failure<'_>,
    contract: &Contract,
    start: Option<&ExecutionStart>,
    settings: &RunSettings,
    steps: &Steps<'_>,
    environment: &Environment,
    evidence: &mut Evidence,
) -> Result<(State, RollbackSummary), ExecutionError> {
    let Failure { by, reason, details: found } = failure;
    if let Some(refusal) = refusal(contract, start, settings, evidence) {
        let summary = summary(contract, RollbackOutcome::Refused, refusal, None);
        let (kind, reason_of_note) = (NoteKind::NotRolledBack, format!("rollback refused: {}", summary.message));
        let note = Then::Note { kind, reason: reason_of_note, details: details::rollback(&summary) };
        steps.fail(by, reason, found, Some(note))?;
        return Ok((State::Failed, summary));
    }
    let undone = "the work of the failed execution is undone".to_owned();
    // One change: a crash in between would leave failed work that no later execution undoes.
    steps.fail(by, reason, found, Some(Then::Transition { to: State::RollingBack, reason: undone }))?;
    finish(contract, start, settings, steps, environment, evidence)
}

/// A failure that is recorded with what follows from it.
#[derive(Debug)]
pub(super) struct Failure<'a> {
    pub(super) by: FailedBy,
    pub(super) reason: &'a str,
    pub(super) details: Details,
}

/// Completes a rollback that a killed process began.
pub(super) fn resume_rollback(
    version: &VersionHistory,
    settings: &RunSettings,
    steps: &Steps<'_>,
    store: &Store,
    environment: &Environment,
) -> Result<(State, RollbackSummary), ExecutionError> {
    let contract = &version.contract;
    let start = ExecutionStart::last(version);
    let mut evidence = Evidence::create(&store.files_folder(), contract)?;
    finish(contract, start.as_ref(), settings, steps, environment, &mut evidence)
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
    if summary.outcome == RollbackOutcome::RolledBack {
        steps.by_system(State::RolledBack, &summary.message, details::rollback(&summary))?;
        return Ok((State::RolledBack, summary));
    }
    if settings.cancellation.is_cancelled() {
        // The contract stays `rolling_back`, and the next run completes the rollback.
        return Err(ProcessError::Cancelled.into());
    }
    let reason = format!("rollback {}: {}", summary.outcome.as_str(), summary.message);
    let note =
        Then::Note { kind: NoteKind::NotRolledBack, reason: reason.clone(), details: details::rollback(&summary) };
    steps.fail(FailedBy::System, &reason, details::rollback(&summary), Some(note))?;
    Ok((State::Failed, summary))
}

/// Returns why a rollback is refused, without changing anything.
fn refusal(
    contract: &Contract,
    start: Option<&ExecutionStart>,
    settings: &RunSettings,
    evidence: &Evidence,
) -> Option<String> {
    let folder = evidence.folder();
    let rollback = match began(contract, start) {
        Ok(rollback) => rollback,
        Err(reason) => return Some(reason),
    };
    match rollback.plan(&rollback_settings(contract, start, settings, &Environment::new(), &folder)) {
        Ok(RollbackPlan::Steps(_)) => None,
        Ok(RollbackPlan::Refused(refusal)) => Some(refusal.reason),
        Err(error) => Some(with_causes(&error)),
    }
}

/// Returns what a rollback returns to. Without a record of the start, only a command can undo the work.
fn began(contract: &Contract, start: Option<&ExecutionStart>) -> Result<Began, String> {
    match (start, contract.rollback.strategy) {
        (Some(start), _) => Ok(start.rollback.clone()),
        (None, RollbackStrategy::Custom) => Ok(Began::Custom),
        (None, _) => Err("it is not recorded how the execution began".to_owned()),
    }
}

fn rollback_settings<'a>(
    contract: &'a Contract,
    start: Option<&'a ExecutionStart>,
    settings: &'a RunSettings,
    environment: &Environment,
    folder: &'a Utf8Path,
) -> RollbackSettings<'a> {
    let workdir = start.map_or(settings.folder(), |start| &start.workdir);
    let evidence = EvidenceFolder { path: folder, redactor: &settings.redactor };
    let mut rollback = RollbackSettings::new(workdir, evidence);
    rollback.command = contract.rollback.custom.as_deref();
    rollback.protected.clone_from(&settings.protected);
    rollback.name = contract.id.as_str();
    rollback.environment.clone_from(environment);
    rollback.supervisor.clone_from(&settings.supervisor);
    rollback
}

fn perform(
    contract: &Contract,
    start: Option<&ExecutionStart>,
    settings: &RunSettings,
    environment: &Environment,
    evidence: &mut Evidence,
) -> RollbackSummary {
    let folder = evidence.folder();
    let ended = began(contract, start).and_then(|rollback| {
        let settings_of = rollback_settings(contract, start, settings, environment, &folder);
        rollback.roll_back(&settings_of, &settings.cancellation).map_err(|error| with_causes(&error))
    });
    match ended {
        Ok(RollbackEnd::RolledBack { done, way_back, evidence: record }) => {
            if let Some(files) = &record {
                evidence.add_record(files);
            }
            summary(contract, RollbackOutcome::RolledBack, sentence(&done), way_back)
        }
        Ok(RollbackEnd::Refused(refusal)) => summary(contract, RollbackOutcome::Refused, refusal.reason, None),
        Ok(RollbackEnd::Failed { reason, evidence: files }) => {
            evidence.add_record(&files);
            summary(contract, RollbackOutcome::Failed, reason, None)
        }
        Err(reason) => summary(contract, RollbackOutcome::Failed, reason, None),
    }
}

/// Joins what was done. A long list is shortened.
fn sentence(done: &[String]) -> String {
    match done {
        [] => "nothing had changed".to_owned(),
        _ if done.len() <= LISTED_STEPS => done.join(", "),
        _ => format!("{} and {} more", done[..LISTED_STEPS].join(", "), done.len() - LISTED_STEPS),
    }
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
