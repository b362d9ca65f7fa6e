//! Undoes the work of a failed execution, as its contract says.

use camino::Utf8Path;
use counterproof_artifact::with_causes;
use jiff::Timestamp;

use super::began::{ExecutionStart, ProcessName, was_interrupted};
use super::evidence::Evidence;
use super::outcome::{RollbackOutcome, RollbackSummary};
use super::rollback_start::StartRequest;
use super::steps::Steps;
use super::{Environment, ExecutionError, RollbackMode, RunSettings, details};
use crate::contract::{Contract, RollbackStrategy};
use crate::git::Protected;
use crate::lifecycle::{Details, State};
use crate::process::EvidenceFolder;
use crate::record::NoteKind;
use crate::rollback::{Began, RollbackEnd, RollbackPlan, RollbackSettings};
use crate::store::{Store, VersionHistory};

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
    if let Some(before) = ExecutionStart::last(version).filter(|_| was_interrupted(version))
        && before.workdir == settings.workdir
    {
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

/// Undoes failed work. Returns the state of the contract afterwards.
pub(super) fn undo(
    contract: &Contract,
    start: Option<&ExecutionStart>,
    settings: &RunSettings,
    steps: &Steps<'_>,
    environment: &Environment,
    evidence: &mut Evidence,
) -> Result<(State, RollbackSummary), ExecutionError> {
    if let Some(reason) = refusal(contract, start, settings, evidence) {
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
