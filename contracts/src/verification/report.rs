//! The outcome of a verification.

use counterproof_safe_run::{Ending, OutputHead};
use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use super::{ArtifactCheck, AssertionResult, OutputCheck};
use crate::process::{EvidenceFiles, StopReason};

/// Which exit codes of the command count as success.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ExitCodeRule {
    /// Only 0: no assertion reads `exit_code`.
    Zero,
    /// Those that the assertions accept.
    Assertions,
}

/// One attempt of the command.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Attempt {
    /// Counted from 1.
    pub number: u64,
    /// The time of the start.
    pub started_at: Timestamp,
    /// The time from the start until the end.
    pub duration_ms: u64,
    /// The exit code as a shell reports it: 128 plus the number of the signal for a command that a signal killed.
    pub exit_code: i32,
    /// The signal that killed the command.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub signal: Option<i32>,
    /// Why the command was stopped. An attempt that was stopped never passes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stopped: Option<StopReason>,
    /// True if the exit code and the assertions pass.
    pub passed: bool,
    /// The record.
    pub evidence: EvidenceFiles,
}

impl Attempt {
    pub(super) const fn signal(ending: Ending) -> Option<i32> {
        match ending {
            Ending::Exited(_) => None,
            Ending::Killed(signal) => Some(signal),
        }
    }
}

/// The outcome of a verification, without the output of its command.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct VerificationReport {
    /// True if the output, an attempt of the command, all assertions and all artifacts pass.
    pub passed: bool,
    pub cancelled: bool,
    /// The shape of the agent's output.
    pub output: OutputCheck,
    pub exit_code_rule: ExitCodeRule,
    /// The attempts of the command. Empty if the output is not valid: the command does not run then.
    pub attempts: Vec<Attempt>,
    /// The assertions, after the last attempt.
    pub assertions: Vec<AssertionResult>,
    /// The artifacts, after the last attempt. Empty if the command did not run.
    pub artifacts: Vec<ArtifactCheck>,
}

/// A verification that has ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Verified {
    /// The outcome.
    pub report: VerificationReport,
    /// The start of standard output of the last attempt, not redacted. `None` without an attempt.
    pub stdout: Option<OutputHead>,
    /// The start of standard error of the last attempt, not redacted.
    pub stderr: Option<OutputHead>,
}
