//! One execution of one contract, from its claim to its end.

use camino::{Utf8Path, Utf8PathBuf};
use counterproof_artifact::one_line;
use counterproof_redaction::Applied;
use counterproof_store::read_file;
use counterproof_validation::DocumentText;
use jiff::Timestamp;
use serde_json::{Value, json};

use super::outcome::{AgentRun, Execution, VerificationStatus};
use super::start::{ExecutionStart, INTERRUPTED, ProcessName, Recovered, begin, left_repository, recover};
use super::transitions::{self, Evidence, FailedBy, Steps};
use super::undo::{RollbackSummary, Undo, resume_rollback};
use super::{Environment, ExecutionError, OutputSource, RollbackMode, RunSettings, locks};
use crate::contract::{Contract, ContractKey};
use crate::lifecycle::{Details, State};
use crate::process::{
    EvidenceBudget, EvidenceFolder, MAX_AGENT_OUTPUT_BYTES, ShellCommand, StopReason, agent_command, agent_output,
    contract_variables, run,
};
use crate::rollback::RollbackStart;
use crate::store::NoteKind;
use crate::store::{Store, VersionHistory};
use crate::verification::{VerificationPlan, VerificationReport, Verified, VerifySettings};

pub(crate) const REQUIRES_APPROVAL: &str = "requires_approval";

/// The longest text of a stream in an [`Execution`], in characters.
const STREAM_CHARS: usize = 20_000;

/// The longest line of output in a reason, in characters.
const REASON_CHARS: usize = 200;

/// Executes the latest version of a contract. A contract that was completed before is not executed again.
pub fn execute(store: &Store, key: &ContractKey, settings: &RunSettings) -> Result<Execution, ExecutionError> {
    let version = store.version(key)?;
    let state = version.state();
    let contract = version.contract;
    let plan = VerificationPlan::new(&contract)
        .map_err(|errors| ExecutionError::Invalid { id: contract.id.clone(), errors })?;
    let run = Run::new(store, settings, &contract, (settings.clock)());
    // Before anything is acquired: a completed contract needs neither locks nor an output.
    if state == State::Completed {
        return Ok(run.finish(VerificationStatus::AlreadyMet, State::Completed));
    }
    // Before anything begins: a misspelt name must not fail the contract and undo its work.
    let output = settings.source.file(&contract.id).map(|path| read_output(&path)).transpose()?;
    // Held until the end. What a dead process did not finish belongs to this execution then.
    let locks = locks::acquire(&contract, store, settings)?;
    let mut environment = locks.environment();
    // After the resources, so that no `env` of a contract replaces its id.
    environment.extend(contract_variables(&contract));
    match recover(store, &run.steps, key, settings)? {
        Recovered::Executable(version) => run.execute(&version, &plan, output, &environment),
        Recovered::Completed => Ok(run.finish(VerificationStatus::AlreadyMet, State::Completed)),
        Recovered::RollingBack(version) => {
            let (state, summary) = resume_rollback(&version, settings, &run.steps, store, &environment)?;
            Ok(run.rolled_back(state, summary))
        }
    }
}

struct Run<'s> {
    store: &'s Store,
    settings: &'s RunSettings,
    contract: &'s Contract,
    steps: Steps<'s>,
    started_at: Timestamp,
    result: Progress,
}

#[derive(Default)]
struct Progress {
    reasons: Vec<String>,
    agent: Option<AgentRun>,
    output: Option<Value>,
    verification: Option<VerificationReport>,
    streams: Option<[String; 2]>,
    rollback: Option<RollbackSummary>,
    evidence: Option<Utf8PathBuf>,
}

impl<'s> Run<'s> {
    fn new(store: &'s Store, settings: &'s RunSettings, contract: &'s Contract, started_at: Timestamp) -> Self {
        let steps = Steps::new(store, settings, contract);
        Self { store, settings, contract, steps, started_at, result: Progress::default() }
    }

    fn execute(
        mut self,
        version: &VersionHistory,
        plan: &VerificationPlan<'_>,
        output: Option<Value>,
        environment: &Environment,
    ) -> Result<Execution, ExecutionError> {
        let state = version.state();
        // The check has passed already. Another attempt would only repeat it while a person decides.
        if state == State::Verifying && version.open_notes().any(|note| note.kind == NoteKind::ApprovalRequested) {
            return Ok(self.finish(VerificationStatus::AwaitsApproval, State::Verifying));
        }
        let mut evidence = Evidence::create(&self.store.files_folder(), self.contract)?;
        self.result.evidence = Some(evidence.folder());
        let start = match state {
            // An agent that works on its own has begun already.
            State::Executing | State::Verifying => ExecutionStart::last(version),
            _ => {
                // Before the claim: a contract whose rollback would be impossible stays as it is.
                let start = begin(self.contract, version, self.settings, &evidence)?;
                if matches!(state, State::Pending | State::Ready) {
                    let process = ProcessName::of_this().into_details()?;
                    self.steps.by_owner(State::Claimed, "claimed by a run", process)?;
                }
                self.steps.by_owner(State::Executing, "the execution began", start.clone().into_details()?)?;
                Some(start)
            }
        };
        let obtained = match (output, &self.settings.source) {
            (None, OutputSource::Command(line)) => {
                from_agent(self.contract, line, self.settings, environment, &mut evidence)?
            }
            (output, _) => AgentOutput { output: output.ok_or_else(Vec::new), agent: None, interrupted: false },
        };
        let output = match self.accept(obtained, &mut evidence)? {
            Ok(output) => output,
            Err(interrupted) => {
                // The same form as the evidence of a verification, so that readers need one.
                let details = transitions::failure(&self.result.reasons, evidence.names());
                // The owner may not fail a contract that is being verified.
                let by = if state == State::Verifying { FailedBy::System } else { FailedBy::Owner };
                return self.fail(by, details, interrupted, start.as_ref(), environment, &mut evidence);
            }
        };
        if state != State::Verifying {
            self.steps.by_owner(State::Verifying, "the agent has finished", Details::new())?;
        }
        let verified = self.verify(plan, &output, environment, &mut evidence)?;
        self.judge(verified, start.as_ref(), environment, &mut evidence)
    }

    /// Takes the output of the agent. Without one, returns whether the agent was interrupted.
    fn accept(
        &mut self,
        obtained: AgentOutput,
        evidence: &mut Evidence,
    ) -> Result<Result<Value, bool>, ExecutionError> {
        self.result.agent = obtained.agent;
        let output = match obtained.output {
            Ok(output) => output,
            Err(reasons) => {
                self.result.reasons = self.redacted_all(&reasons);
                return Ok(Err(obtained.interrupted));
            }
        };
        // The verification reads the output as the agent gave it; only what is stored is redacted.
        let mut stored = output.clone();
        self.settings.redactor.json(&mut stored, &mut Applied::default());
        evidence.store_json("output.json", &stored)?;
        self.result.output = Some(stored);
        Ok(Ok(output))
    }

    fn verify(
        &mut self,
        plan: &VerificationPlan<'_>,
        output: &Value,
        environment: &Environment,
        evidence: &mut Evidence,
    ) -> Result<VerificationReport, ExecutionError> {
        let folder = evidence.folder();
        let records = EvidenceFolder { path: &folder, redactor: &self.settings.redactor };
        let mut verify = VerifySettings::new(&self.settings.workdir, records);
        // The check gets the same ports and names as the agent, because it may talk to what the agent started.
        verify.environment.clone_from(environment);
        verify.supervisor.clone_from(&self.settings.supervisor);
        let Verified { report, stdout, stderr } = plan.verify(output, &verify, &self.settings.cancellation)?;
        for attempt in &report.attempts {
            evidence.add_record(&attempt.evidence);
        }
        let text = |head: Option<counterproof_safe_run::OutputHead>| {
            let bytes = head.map(|head| head.bytes).unwrap_or_default();
            let masked = self.settings.redactor.text(&String::from_utf8_lossy(&bytes), &mut Applied::default());
            // The end of a stream usually has the error.
            let skipped = masked.chars().count().saturating_sub(STREAM_CHARS);
            masked.chars().skip(skipped).collect::<String>()
        };
        self.result.streams = Some([text(stdout), text(stderr)]);
        let mut document = serde_json::to_value(&report)?;
        self.settings.redactor.json(&mut document, &mut Applied::default());
        evidence.store_json("verification.json", &document)?;
        Ok(report)
    }

    fn judge(
        mut self,
        report: VerificationReport,
        start: Option<&ExecutionStart>,
        environment: &Environment,
        evidence: &mut Evidence,
    ) -> Result<Execution, ExecutionError> {
        // Only for people, so a failure of git does not fail the contract.
        let changes = start.and_then(|start| match &start.rollback {
            RollbackStart::GitReset(git) => git.changes(&self.settings.protected, &self.settings.git()).ok(),
            _ => None,
        });
        let found = transitions::verification(&report, changes, evidence.names());
        let (passed, cancelled) = (report.passed, report.cancelled);
        let mut reasons = transitions::reasons(&report);
        let failed = report.attempts.last().is_some_and(|attempt| attempt.exit_code != 0 && !attempt.passed);
        // Only after a failed exit code, of which it is the likely reason.
        if let Some(line) = self.result.streams.as_ref().filter(|_| failed).and_then(|streams| last_line(&streams[1])) {
            reasons.push(format!("last line of standard error: {line}"));
        }
        self.result.reasons = self.redacted_all(&reasons);
        self.result.verification = Some(report);
        // A note and not a transition: the state stays `verifying` until a person decides.
        if passed && self.requires_approval() {
            self.steps.note(NoteKind::ApprovalRequested, "the check passed; a person must approve the work", found)?;
            return Ok(self.finish(VerificationStatus::AwaitsApproval, State::Verifying));
        }
        if passed {
            self.steps.by_system(State::Completed, "the check passed", found)?;
            return Ok(self.finish(VerificationStatus::Met, State::Completed));
        }
        self.fail(FailedBy::System, found, cancelled, start, environment, evidence)
    }

    /// Fails the contract and undoes its work, unless the execution was interrupted: then a later one continues.
    fn fail(
        mut self,
        by: FailedBy,
        mut details: Details,
        interrupted: bool,
        start: Option<&ExecutionStart>,
        environment: &Environment,
        evidence: &mut Evidence,
    ) -> Result<Execution, ExecutionError> {
        // The history shows one line; all reasons are in the evidence.
        let reason = self.result.reasons.first().map_or("the check did not pass", String::as_str).to_owned();
        // Decided once: the record and the result must not contradict each other.
        if interrupted || self.settings.cancellation.is_cancelled() {
            details.insert(INTERRUPTED.to_owned(), true.into());
            details.extend(left_repository(start, self.settings));
            self.steps.fail(by, &reason, details, None)?;
            return Ok(self.finish(VerificationStatus::Interrupted, State::Failed));
        }
        if self.settings.rollback == RollbackMode::Never {
            self.steps.fail(by, &reason, details, None)?;
            return Ok(self.finish(VerificationStatus::NotMet, State::Failed));
        }
        let (contract, settings, steps) = (self.contract, self.settings, &self.steps);
        let undo = Undo { contract, start, settings, steps, environment, evidence };
        let (state, summary) = undo.fail_and_undo(by, &reason, details)?;
        self.result.rollback = Some(summary);
        Ok(self.finish(VerificationStatus::NotMet, state))
    }

    fn rolled_back(mut self, state: State, summary: RollbackSummary) -> Execution {
        self.result.reasons = vec!["an earlier execution failed and was interrupted during its rollback".to_owned()];
        self.result.rollback = Some(summary);
        self.finish(VerificationStatus::NotMet, state)
    }

    fn requires_approval(&self) -> bool {
        let constraints = self.contract.input.constraints.as_ref();
        let required = constraints.and_then(|constraints| constraints.get(REQUIRES_APPROVAL));
        // Anything but true counts as not required; the check of contract files reports such values.
        self.settings.requires_approval || required == Some(&json!(true))
    }

    fn redacted_all(&self, texts: &[String]) -> Vec<String> {
        texts.iter().map(|text| self.settings.redactor.text(text, &mut Applied::default())).collect()
    }

    fn finish(self, verdict: VerificationStatus, state: State) -> Execution {
        let Progress { reasons, agent, output, verification, streams, rollback, evidence } = self.result;
        Execution {
            contract: self.contract.clone(),
            verdict,
            state,
            reasons,
            agent,
            output,
            verification,
            streams,
            rollback,
            evidence,
            started_at: self.started_at,
            ended_at: (self.settings.clock)(),
        }
    }
}

fn last_line(text: &str) -> Option<String> {
    let line = text.lines().rev().find(|line| !line.trim().is_empty())?;
    Some(one_line(line.trim(), REASON_CHARS))
}

#[derive(Debug)]
struct AgentOutput {
    output: Result<Value, Vec<String>>,
    agent: Option<AgentRun>,
    interrupted: bool,
}

fn read_output(path: &Utf8Path) -> Result<Value, ExecutionError> {
    let invalid = |problem: String| ExecutionError::Output { path: path.to_owned(), problem };
    // An argument may be a pipe, which has no size and cannot be read twice.
    let bytes = read_file::read_argument(path, MAX_AGENT_OUTPUT_BYTES)
        .map_err(|error| invalid(format!("cannot be read: {error}")))?;
    let parsed = DocumentText { file: path, bytes: &bytes, first_line: 1 }.parse_json();
    match (parsed.value, parsed.findings.first()) {
        (Some(value), None) => Ok(value),
        (_, Some(finding)) => {
            let place = finding.position.map_or_else(String::new, |it| format!("{}:{}: ", it.line, it.column));
            Err(invalid(format!("is not one JSON value: {place}{}", finding.message)))
        }
        (None, None) => Err(invalid("is not JSON".to_owned())),
    }
}

fn from_agent(
    contract: &Contract,
    line: &str,
    settings: &RunSettings,
    environment: &Environment,
    evidence: &mut Evidence,
) -> Result<AgentOutput, ExecutionError> {
    let mut command: ShellCommand = agent_command(contract, line, &settings.workdir)?;
    command.environment.extend(environment.clone());
    command.timeout = settings.agent_timeout;
    command.supervisor.clone_from(&settings.supervisor);
    let finished = run(&command, &settings.cancellation)?;
    let output = agent_output(&finished).map_err(|error| vec![error.to_string()]);
    let (exit_code, duration) = (finished.exit_code(), finished.duration);
    // Before the record is stored, which consumes the command.
    let interrupted = finished.stopped == Some(StopReason::Cancelled);
    let folder = evidence.folder();
    let files = EvidenceFolder { path: &folder, redactor: &settings.redactor }.store(
        "agent",
        finished,
        &mut EvidenceBudget::default(),
    )?;
    evidence.add_record(&files);
    let agent = AgentRun {
        command: settings.redactor.text(line, &mut Applied::default()),
        exit_code,
        duration_ms: u64::try_from(duration.as_millis()).unwrap_or(u64::MAX),
        evidence: files,
    };
    Ok(AgentOutput { output, agent: Some(agent), interrupted })
}
