//! The transitions of one execution.

use camino::{Utf8Path, Utf8PathBuf};
use counterproof_redaction::Applied;
use counterproof_store::line_log::LockOptions;
use counterproof_store::write::{self, Durability, WriteError};
use jiff::Timestamp;
use serde_json::{Map, Value, json};

use super::start::LEFT;
use super::{ExecutionError, RollbackSummary, RunSettings};
use crate::contract::{Contract, ContractKey};
use crate::git::Changes;
use crate::lifecycle::{Actor, Details, State};
use crate::process::EvidenceFiles;
use crate::store::{NewTransition, Store, StoreError, Then};
use crate::store::{Note, NoteKind};
use crate::verification::{
    ArtifactCheck, AssertionOutcome, AssertionResult, FoundArtifact, OutputCheck, VerificationReport,
};

pub(super) const EXECUTION: &str = "execution";

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum FailedBy {
    /// The owner: the work itself failed.
    Owner,
    /// The program: the check failed.
    System,
}

#[derive(Debug)]
pub(crate) struct Steps<'s> {
    store: &'s Store,
    settings: &'s RunSettings,
    key: ContractKey,
}

impl<'s> Steps<'s> {
    pub(crate) fn new(store: &'s Store, settings: &'s RunSettings, contract: &Contract) -> Self {
        let key = ContractKey { id: contract.id.clone(), version: Some(contract.version) };
        Self { store, settings, key }
    }

    pub(crate) fn now(&self) -> Timestamp {
        (self.settings.clock)()
    }

    pub(crate) fn by_owner(&self, to: State, reason: &str, details: Details) -> Result<(), StoreError> {
        self.make(to, Actor::Agent(self.settings.owner.clone()), reason, details)
    }

    pub(crate) fn by_system(&self, to: State, reason: &str, details: Details) -> Result<(), StoreError> {
        self.make(to, Actor::System, reason, details)
    }

    fn make(&self, to: State, actor: Actor, reason: &str, details: Details) -> Result<(), StoreError> {
        self.make_then(to, actor, reason, details, None)
    }

    pub(crate) fn fail(
        &self,
        by: FailedBy,
        reason: &str,
        details: Details,
        then: Option<Then>,
    ) -> Result<(), StoreError> {
        let actor = match by {
            FailedBy::Owner => Actor::Agent(self.settings.owner.clone()),
            FailedBy::System => Actor::System,
        };
        // What follows is redacted here, because the store writes it as it is.
        let then = then.map(|then| match then {
            Then::Note { kind, reason, details } => {
                Then::Note { kind, reason: self.redacted(&reason), details: self.redacted_details(details) }
            }
            other @ Then::Transition { .. } => other,
        });
        self.make_then(State::Failed, actor, reason, details, then)
    }

    fn make_then(
        &self,
        to: State,
        actor: Actor,
        reason: &str,
        details: Details,
        then: Option<Then>,
    ) -> Result<(), StoreError> {
        let request = NewTransition {
            key: self.key.clone(),
            to,
            actor,
            reason: self.redacted(reason),
            owner: None,
            details: self.redacted_details(details),
        };
        self.store.edit(&LockOptions::default())?.transition_then(request, then, self.now()).map(drop)
    }

    pub(crate) fn note(&self, kind: NoteKind, reason: &str, details: Details) -> Result<(), ExecutionError> {
        // `new` always sets a version; a note without one would belong to no work.
        let Some(version) = self.key.version else { return Ok(()) };
        let note = Note {
            id: self.key.id.clone(),
            version,
            at: self.now(),
            actor: Actor::System,
            kind,
            reason: self.redacted(reason),
            details: self.redacted_details(details),
        };
        Ok(self.store.edit(&LockOptions::default())?.note(note)?)
    }

    fn redacted(&self, text: &str) -> String {
        self.settings.redactor.text(text, &mut Applied::default())
    }

    /// Masks secrets in evidence. What a rollback reads later stays as it is.
    fn redacted_details(&self, mut details: Details) -> Details {
        // A rollback compares these paths and commits with the repository: a masked one would match nothing.
        let kept = [EXECUTION, LEFT].map(|name| details.remove(name).map(|value| (name.to_owned(), value)));
        self.settings.redactor.object(&mut details, &mut Applied::default());
        details.extend(kept.into_iter().flatten());
        details
    }
}

const MAX_REASONS: usize = 50;

/// Returns the evidence of a verification. `evidence` has the names of the files, relative to the files of the store.
pub(super) fn verification(report: &VerificationReport, changes: Option<Changes>, evidence: &[String]) -> Details {
    let last = report.attempts.last();
    let artifact = |it: &ArtifactCheck| match &it.found {
        FoundArtifact::Found { sha256, bytes } => json!({"path": it.path, "sha256": sha256, "bytes": bytes}),
        FoundArtifact::Problem { message, .. } => json!({"path": it.path, "problem": message}),
    };
    let mut document = json!({
        "passed": report.passed,
        "exit_code": last.map(|attempt| attempt.exit_code),
        "timed_out": last.is_some_and(|attempt| attempt.stopped == Some(crate::process::StopReason::TimedOut)),
        "duration_ms": report.attempts.iter().map(|attempt| attempt.duration_ms).sum::<u64>(),
        "attempts": report.attempts.len(),
        "reasons": reasons(report),
        "assertions": report.assertions.iter().map(assertion).collect::<Vec<Value>>(),
        "artifacts": report.artifacts.iter().map(artifact).collect::<Vec<Value>>(),
        "evidence": evidence,
    });
    // Left out instead of null: a reader takes a missing field as unknown.
    if let Some(changes) = changes {
        document["changes"] = json!(changes);
    }
    Map::from_iter([("verification".to_owned(), document)])
}

pub(super) fn failure(reasons: &[String], evidence: &[String]) -> Details {
    let document = json!({"passed": false, "exit_code": null, "reasons": reasons, "evidence": evidence});
    Map::from_iter([("verification".to_owned(), document)])
}

pub(crate) fn rollback(summary: &RollbackSummary) -> Details {
    let mut document = json!({
        "strategy": summary.strategy, "outcome": summary.outcome.as_str(), "message": summary.message,
    });
    if let Some(way_back) = &summary.way_back {
        document["way_back"] = json!(way_back);
    }
    Map::from_iter([("rollback".to_owned(), document)])
}

fn assertion(result: &AssertionResult) -> Value {
    match &result.outcome {
        AssertionOutcome::Met => json!({"expression": result.assertion, "outcome": "met"}),
        AssertionOutcome::NotMet => {
            let mut document = json!({"expression": result.assertion, "outcome": "not_met"});
            if let Some(got) = &result.got {
                document["got"] = json!(got);
            }
            document
        }
        AssertionOutcome::Error { message, span } => {
            json!({"expression": result.assertion, "outcome": "error", "message": message, "start": span.start, "end": span.end})
        }
    }
}

/// Returns why a verification did not pass, one sentence each, the assertions first. Empty if it passed.
pub fn reasons(report: &VerificationReport) -> Vec<String> {
    let mut reasons = Vec::new();
    // A stopped command leaves every assertion undecided, which would only repeat the reason.
    if !report.attempts.is_empty() && report.attempts.iter().all(|attempt| attempt.stopped.is_none()) {
        reasons.extend(report.assertions.iter().filter_map(|it| match (&it.outcome, &it.got) {
            (AssertionOutcome::Met, _) => None,
            (AssertionOutcome::NotMet, None) => Some(format!("assertion not met: {}", it.assertion)),
            (AssertionOutcome::NotMet, Some(got)) => Some(format!("assertion not met: {}; {got}", it.assertion)),
            (AssertionOutcome::Error { message, .. }, _) => {
                Some(format!("assertion failed: {}: {message}", it.assertion))
            }
        }));
    }
    match &report.output {
        OutputCheck::Valid => {}
        OutputCheck::Invalid { violations, more } => {
            reasons.extend(violations.iter().map(|it| match it.pointer.as_str() {
                "" => format!("output: {}", it.message),
                pointer => format!("output at {pointer}: {}", it.message),
            }));
            let more = more.filter(|more| *more > 0);
            reasons.extend(more.map(|more| format!("output: {more} more violations of its schema")));
        }
        OutputCheck::Undecided { reason } => reasons.push(format!("output: its schema cannot be checked: {reason}")),
    }
    if let Some(attempt) = report.attempts.last()
        && !attempt.passed
    {
        let attempts = report.attempts.len();
        let after = if attempts > 1 { format!(" in the last of {attempts} attempts") } else { String::new() };
        match (attempt.stopped, attempt.exit_code) {
            (Some(reason), _) => reasons.push(format!("verification: {reason}{after}")),
            // The exit code passed, so assertions are the reason.
            (None, 0) => {}
            (None, code) => match attempt.signal {
                Some(signal) => reasons.push(format!("verification: the command was killed by signal {signal}{after}")),
                None if report.exit_code_rule == crate::verification::ExitCodeRule::Zero => {
                    reasons.push(format!("verification: the command ended with exit code {code}{after}"));
                }
                None => {}
            },
        }
    }
    reasons.extend(report.artifacts.iter().filter_map(|it| match &it.found {
        FoundArtifact::Found { .. } => None,
        FoundArtifact::Problem { message, .. } => Some(format!("artifact: {message}")),
    }));
    // All reasons go into one line of the store, which has a limit.
    reasons.truncate(MAX_REASONS);
    reasons
}

const MAX_EXECUTIONS: u32 = 100_000;

/// The folder with the evidence of one execution: `<contract>/v<version>/<number>` in the files of the store.
#[derive(Debug)]
pub(crate) struct Evidence {
    root: Utf8PathBuf,
    /// The folder, relative to `root`.
    relative: Utf8PathBuf,
    /// The names of the files so far, relative to `root`.
    names: Vec<String>,
}

impl Evidence {
    pub(crate) fn create(root: &Utf8Path, contract: &Contract) -> Result<Self, ExecutionError> {
        let version = Utf8PathBuf::from(format!("{}/v{}", contract.id.file_stem(), contract.version));
        write::create_folder(&root.join(&version))?;
        // Creating the folder is the reservation: two executions never share evidence.
        for number in 1..=MAX_EXECUTIONS {
            let relative = version.join(number.to_string());
            match write::create_new_folder(&root.join(&relative)) {
                Ok(()) => return Ok(Self { root: root.to_owned(), relative, names: Vec::new() }),
                Err(error) if error.source.kind() == std::io::ErrorKind::AlreadyExists => {}
                Err(error) => return Err(error.into()),
            }
        }
        let source = std::io::Error::other(format!("{MAX_EXECUTIONS} executions have evidence there"));
        Err(ExecutionError::Write(WriteError { path: root.join(version), source }))
    }

    pub(crate) fn folder(&self) -> Utf8PathBuf {
        self.root.join(&self.relative)
    }

    pub(crate) fn store_json(&mut self, name: &str, document: &Value) -> Result<(), ExecutionError> {
        write::write_json(&self.folder().join(name), document, Durability::Synced)?;
        self.add(name);
        Ok(())
    }

    pub(crate) fn add_record(&mut self, files: &EvidenceFiles) {
        self.add(&files.log);
        self.add(&files.events);
    }

    fn add(&mut self, name: &str) {
        self.names.push(self.relative.join(name).into_string());
    }

    pub(crate) fn names(&self) -> &[String] {
        &self.names
    }
}
