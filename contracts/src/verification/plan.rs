//! The plan of a verification, compiled from the contract, and its execution.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

use camino::Utf8Path;
use counterproof_expression::CompileError;
use counterproof_safe_run::OutputHead;
use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::assertion::{ArtifactCheck, check_artifacts};
use super::assertion::{Assertion, AssertionInputs, AssertionResult};
use super::output_schema::{OutputCheck, OutputSchema, OutputSchemaError};
use crate::contract::{Contract, MAX_RETRIES};
use crate::process::{
    Cancellation, DEFAULT_GRACE, DEFAULT_TIMEOUT, EvidenceBudget, EvidenceFiles, EvidenceFolder, FinishedCommand,
    ProcessError, ShellCommand, StopReason, run,
};

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum PlanError {
    #[error("assertion {}: {source}", index + 1)]
    Assertion {
        /// Its index in `verification.assertions`.
        index: usize,
        source: CompileError,
    },
    #[error("output schema at `{}`: {}", .0.pointer, .0.message)]
    OutputSchema(OutputSchemaError),
}

impl PlanError {
    pub const fn code(&self) -> &'static str {
        "invalid_contract"
    }

    pub fn pointer(&self) -> String {
        match self {
            PlanError::Assertion { index, .. } => format!("/verification/assertions/{index}"),
            PlanError::OutputSchema(error) => format!("/output/schema{}", error.pointer),
        }
    }
}

#[derive(Debug, Clone)]
pub struct VerifySettings<'a> {
    pub folder: &'a Utf8Path,
    pub environment: BTreeMap<OsString, Option<OsString>>,
    pub evidence: EvidenceFolder<'a>,
    pub grace: Duration,
    /// See [`ShellCommand::supervisor`].
    pub supervisor: Option<PathBuf>,
}

impl<'a> VerifySettings<'a> {
    pub fn new(folder: &'a Utf8Path, evidence: EvidenceFolder<'a>) -> Self {
        Self { folder, environment: BTreeMap::new(), evidence, grace: DEFAULT_GRACE, supervisor: None }
    }
}

#[derive(Debug)]
pub struct VerificationPlan<'a> {
    contract: &'a Contract,
    schema: OutputSchema,
    assertions: Vec<Assertion>,
}

impl<'a> VerificationPlan<'a> {
    pub fn new(contract: &'a Contract) -> Result<Self, Vec<PlanError>> {
        let (mut assertions, mut errors) = (Vec::new(), Vec::new());
        for (index, text) in contract.verification.assertions.iter().flatten().enumerate() {
            match Assertion::compile(text) {
                Ok(assertion) => assertions.push(assertion),
                Err(source) => errors.push(PlanError::Assertion { index, source }),
            }
        }
        match OutputSchema::compile(&contract.output.schema) {
            Ok(schema) if errors.is_empty() => return Ok(Self { contract, schema, assertions }),
            Ok(_) => {}
            Err(invalid) => errors.extend(invalid.into_iter().map(PlanError::OutputSchema)),
        }
        Err(errors)
    }

    pub fn exit_code_rule(&self) -> ExitCodeRule {
        let is_read = self.assertions.iter().any(|assertion| assertion.reads("exit_code"));
        if is_read { ExitCodeRule::Assertions } else { ExitCodeRule::Zero }
    }

    /// Verifies the output of an agent: checks its shape, runs the command with its further attempts, and looks for the artifacts.
    pub fn verify(
        &self,
        output: &Value,
        settings: &VerifySettings<'_>,
        cancellation: &Cancellation,
    ) -> Result<Verified, ProcessError> {
        let schema_check = self.schema.check(output);
        // An undecided check is not a valid one.
        if schema_check != OutputCheck::Valid {
            return Ok(self.without_command(schema_check));
        }
        let (attempts, last) = self.attempts(output, settings, cancellation)?;
        let artifacts = check_artifacts(settings.folder, self.contract.artifacts());
        let report = VerificationReport {
            // Artifacts are looked for once, after the last attempt: a check may create them.
            passed: last.passed && artifacts.iter().all(ArtifactCheck::is_found),
            // A cancellation after the check has passed changes nothing.
            cancelled: !last.passed && cancellation.is_cancelled(),
            output: schema_check,
            exit_code_rule: self.exit_code_rule(),
            attempts,
            assertions: last.assertions,
            artifacts,
        };
        Ok(Verified { report, stdout: Some(last.stdout), stderr: Some(last.stderr) })
    }

    /// Returns the outcome for an output that does not have its shape: the command could only fail.
    fn without_command(&self, output: OutputCheck) -> Verified {
        let not_run = |assertion: &Assertion| assertion.not_evaluated(&"the output does not have the declared shape");
        let report = VerificationReport {
            passed: false,
            cancelled: false,
            output,
            exit_code_rule: self.exit_code_rule(),
            attempts: Vec::new(),
            assertions: self.assertions.iter().map(not_run).collect(),
            artifacts: Vec::new(),
        };
        Verified { report, stdout: None, stderr: None }
    }

    fn attempts(
        &self,
        output: &Value,
        settings: &VerifySettings<'_>,
        cancellation: &Cancellation,
    ) -> Result<(Vec<Attempt>, LastAttempt), ProcessError> {
        let retry = self.contract.verification.retry;
        let further = retry.map_or(0, |retry| u64::from(retry.max.min(MAX_RETRIES)));
        let mut budget = EvidenceBudget::default();
        let delay = Duration::from_millis(retry.map_or(0, |retry| retry.delay_ms));
        let mut attempts = Vec::new();
        loop {
            // Each attempt is stored before the next one begins, so that a crash keeps its evidence.
            let number = attempts.len() as u64 + 1;
            let command = run(&self.command(settings), cancellation)?;
            let assertions = self.assert(output, &command);
            let is_accepted = self.exit_code_rule() == ExitCodeRule::Assertions || command.ending.is_success();
            // A stopped command never passes, even if its handler exits with 0.
            let passed = command.stopped.is_none() && is_accepted && assertions.iter().all(AssertionResult::is_met);
            let last =
                LastAttempt { passed, assertions, stdout: command.stdout.clone(), stderr: command.stderr.clone() };
            attempts.push(stored_attempt(number, passed, command, &settings.evidence, &mut budget)?);
            if passed || number > further || !cancellation.wait(delay) {
                return Ok((attempts, last));
            }
        }
    }

    fn command(&self, settings: &VerifySettings<'_>) -> ShellCommand {
        let verification = &self.contract.verification;
        ShellCommand {
            environment: settings.environment.clone(),
            timeout: verification.timeout_ms.map_or(DEFAULT_TIMEOUT, Duration::from_millis),
            grace: settings.grace,
            supervisor: settings.supervisor.clone(),
            ..ShellCommand::new(&*verification.command, settings.folder)
        }
    }

    fn assert(&self, output: &Value, command: &FinishedCommand) -> Vec<AssertionResult> {
        if let Some(reason) = command.stopped {
            // The output of a stopped command is a fragment, which could meet an assertion by chance.
            return self.assertions.iter().map(|assertion| assertion.not_evaluated(&reason)).collect();
        }
        let inputs = AssertionInputs::new(&self.contract.input, output, command);
        self.assertions.iter().map(|assertion| assertion.check(&inputs)).collect()
    }
}

struct LastAttempt {
    passed: bool,
    assertions: Vec<AssertionResult>,
    stdout: OutputHead,
    stderr: OutputHead,
}

fn stored_attempt(
    number: u64,
    passed: bool,
    command: FinishedCommand,
    evidence: &EvidenceFolder<'_>,
    budget: &mut EvidenceBudget,
) -> Result<Attempt, ProcessError> {
    let (started_at, duration, ending, stopped) =
        (command.started_at, command.duration, command.ending, command.stopped);
    Ok(Attempt {
        number,
        started_at,
        duration_ms: u64::try_from(duration.as_millis()).unwrap_or(u64::MAX),
        exit_code: ending.exit_code(),
        signal: ending.signal(),
        stopped,
        passed,
        evidence: evidence.store(&format!("attempt-{number}"), command, budget)?,
    })
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ExitCodeRule {
    /// Only 0: no assertion reads `exit_code`.
    Zero,
    /// Those that the assertions accept.
    Assertions,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Attempt {
    /// Counted from 1.
    pub number: u64,
    pub started_at: Timestamp,
    pub duration_ms: u64,
    /// The exit code as a shell reports it: 128 plus the number of the signal for a command that a signal killed.
    pub exit_code: i32,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub signal: Option<i32>,
    /// Why the command was stopped. An attempt that was stopped never passes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stopped: Option<StopReason>,
    /// True if the exit code and the assertions pass.
    pub passed: bool,
    pub evidence: EvidenceFiles,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct VerificationReport {
    /// True if the output, an attempt of the command, all assertions and all artifacts pass.
    pub passed: bool,
    pub cancelled: bool,
    pub output: OutputCheck,
    pub exit_code_rule: ExitCodeRule,
    /// The attempts of the command. Empty if the output is not valid: the command does not run then.
    pub attempts: Vec<Attempt>,
    pub assertions: Vec<AssertionResult>,
    /// The artifacts, after the last attempt. Empty if the command did not run.
    pub artifacts: Vec<ArtifactCheck>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Verified {
    pub report: VerificationReport,
    /// The start of standard output of the last attempt, not redacted. `None` without an attempt.
    pub stdout: Option<OutputHead>,
    pub stderr: Option<OutputHead>,
}
