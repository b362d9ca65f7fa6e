//! Undoes the work of a failed execution, as its contract says.

use camino::Utf8Path;
use counterproof_artifact::with_causes;

use super::transitions::{Evidence, FailedBy, Steps, rollback as rollback_details};
use super::{Environment, ExecutionError, ExecutionStart, RunSettings};
use crate::contract::{Contract, RollbackStrategy};
use crate::lifecycle::{Details, State};
use crate::process::{EvidenceFolder, ProcessError};
use crate::rollback::{RollbackEnd, RollbackPlan, RollbackSettings, RollbackStart};
use crate::store::NoteKind;
use crate::store::{Store, Then, VersionHistory};

/// Number of steps of a rollback that a message lists.
const LISTED_STEPS: usize = 3;

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RollbackSummary {
    pub strategy: RollbackStrategy,
    pub outcome: RollbackOutcome,
    pub message: String,
    pub way_back: Option<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RollbackOutcome {
    RolledBack,
    /// It would throw away work of others, so nothing was changed.
    Refused,
    Failed,
}

impl RollbackOutcome {
    pub const fn as_str(self) -> &'static str {
        match self {
            RollbackOutcome::RolledBack => "rolled_back",
            RollbackOutcome::Refused => "refused",
            RollbackOutcome::Failed => "failed",
        }
    }
}

#[derive(Debug)]
pub(crate) struct Undo<'a> {
    pub(crate) contract: &'a Contract,
    /// How the execution began, if that is recorded.
    pub(crate) start: Option<&'a ExecutionStart>,
    pub(crate) settings: &'a RunSettings,
    pub(crate) steps: &'a Steps<'a>,
    pub(crate) environment: &'a Environment,
    pub(crate) evidence: &'a mut Evidence,
}

/// Completes a rollback that a killed process began.
pub(crate) fn resume_rollback(
    version: &VersionHistory,
    settings: &RunSettings,
    steps: &Steps<'_>,
    store: &Store,
    environment: &Environment,
) -> Result<(State, RollbackSummary), ExecutionError> {
    let contract = &version.contract;
    let start = ExecutionStart::last(version);
    let mut evidence = Evidence::create(&store.files_folder(), contract)?;
    Undo { contract, start: start.as_ref(), settings, steps, environment, evidence: &mut evidence }.finish()
}

impl Undo<'_> {
    /// Fails the contract and undoes its work. Returns its state afterwards.
    pub(crate) fn fail_and_undo(
        self,
        by: FailedBy,
        reason: &str,
        details: Details,
    ) -> Result<(State, RollbackSummary), ExecutionError> {
        // Planned before the transition: a refused rollback must leave the contract failed, not `rolling_back`.
        if let Some(refusal) = self.refusal() {
            let summary = self.summary(RollbackOutcome::Refused, refusal, None);
            self.steps.fail(by, reason, details, Some(not_rolled_back(&summary)))?;
            return Ok((State::Failed, summary));
        }
        let undone = "the work of the failed execution is undone".to_owned();
        // One change: a crash in between would leave failed work that no later execution undoes.
        self.steps.fail(by, reason, details, Some(Then::Transition { to: State::RollingBack, reason: undone }))?;
        self.finish()
    }

    fn finish(mut self) -> Result<(State, RollbackSummary), ExecutionError> {
        let summary = self.perform();
        // The evidence is the same for every outcome, so that readers need one form.
        let found = rollback_details(&summary);
        if summary.outcome == RollbackOutcome::RolledBack {
            self.steps.by_system(State::RolledBack, &summary.message, found)?;
            return Ok((State::RolledBack, summary));
        }
        if self.settings.cancellation.is_cancelled() {
            // The contract stays `rolling_back`, and the next run completes the rollback.
            return Err(ProcessError::Cancelled.into());
        }
        self.steps.fail(FailedBy::System, &sentence_of(&summary), found, Some(not_rolled_back(&summary)))?;
        Ok((State::Failed, summary))
    }

    fn refusal(&self) -> Option<String> {
        let folder = self.evidence.folder();
        let rollback = match self.began() {
            Ok(rollback) => rollback,
            Err(reason) => return Some(reason),
        };
        match rollback.plan(&self.rollback_settings(&folder)) {
            Ok(RollbackPlan::Steps(_)) => None,
            Ok(RollbackPlan::Refused(refusal)) => Some(refusal.reason),
            // The rollback would fail in the same way, perhaps after changes.
            Err(error) => Some(with_causes(&error)),
        }
    }

    /// Returns what the rollback returns to. Without a record of the start, only a command can undo the work.
    fn began(&self) -> Result<RollbackStart, String> {
        match (self.start, self.contract.rollback.strategy) {
            (Some(start), _) => Ok(start.rollback.clone()),
            (None, RollbackStrategy::Custom) => Ok(RollbackStart::Custom),
            (None, _) => Err("it is not recorded how the execution began".to_owned()),
        }
    }

    fn rollback_settings<'s>(&'s self, folder: &'s Utf8Path) -> RollbackSettings<'s> {
        // The rollback happens where the execution began, even if this run has another working directory.
        let workdir = self.start.map_or(&self.settings.workdir, |start| &start.workdir);
        let evidence = EvidenceFolder { path: folder, redactor: &self.settings.redactor };
        let mut rollback = RollbackSettings::new(workdir, evidence);
        rollback.command = self.contract.rollback.custom.as_deref();
        rollback.protected.clone_from(&self.settings.protected);
        rollback.name = self.contract.id.as_str();
        rollback.environment.clone_from(self.environment);
        rollback.supervisor.clone_from(&self.settings.supervisor);
        rollback
    }

    fn perform(&mut self) -> RollbackSummary {
        let folder = self.evidence.folder();
        let ended = self.began().and_then(|rollback| {
            let ended = rollback.roll_back(&self.rollback_settings(&folder), &self.settings.cancellation);
            ended.map_err(|error| with_causes(&error))
        });
        match ended {
            Ok(RollbackEnd::RolledBack { done, way_back, evidence }) => {
                if let Some(files) = &evidence {
                    self.evidence.add_record(files);
                }
                self.summary(RollbackOutcome::RolledBack, sentence(&done), way_back)
            }
            Ok(RollbackEnd::Refused(refusal)) => self.summary(RollbackOutcome::Refused, refusal.reason, None),
            Ok(RollbackEnd::Failed { reason, evidence }) => {
                self.evidence.add_record(&evidence);
                self.summary(RollbackOutcome::Failed, reason, None)
            }
            Err(reason) => self.summary(RollbackOutcome::Failed, reason, None),
        }
    }

    fn summary(&self, outcome: RollbackOutcome, message: String, way_back: Option<String>) -> RollbackSummary {
        RollbackSummary { strategy: self.contract.rollback.strategy, outcome, message, way_back }
    }
}

fn not_rolled_back(summary: &RollbackSummary) -> Then {
    let (kind, reason) = (NoteKind::NotRolledBack, sentence_of(summary));
    Then::Note { kind, reason, details: rollback_details(summary) }
}

fn sentence_of(summary: &RollbackSummary) -> String {
    format!("rollback {}: {}", summary.outcome.as_str(), summary.message)
}

fn sentence(done: &[String]) -> String {
    match done {
        [] => "nothing had changed".to_owned(),
        _ if done.len() <= LISTED_STEPS => done.join(", "),
        _ => format!("{} and {} more", done[..LISTED_STEPS].join(", "), done.len() - LISTED_STEPS),
    }
}
