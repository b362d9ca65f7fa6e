//! The outcome of one execution.

use std::num::NonZeroU32;

use camino::Utf8PathBuf;
use jiff::Timestamp;
use serde_json::Value;

use crate::contract::{Contract, RollbackStrategy};
use crate::lifecycle::State;
use crate::process::EvidenceFiles;
use crate::verification::VerificationReport;

/// What became of a contract.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verdict {
    /// The work is done and verified.
    Met,
    /// The contract was completed before.
    AlreadyMet,
    /// The check passed, and a person must approve the work.
    AwaitsApproval,
    /// The agent failed, or the check did.
    NotMet,
    Interrupted,
}

impl Verdict {
    /// True if the contract is met, now or before.
    pub const fn is_met(self) -> bool {
        matches!(self, Verdict::Met | Verdict::AlreadyMet)
    }

    /// The word in documents.
    pub const fn as_str(self) -> &'static str {
        match self {
            Verdict::Met => "met",
            Verdict::AlreadyMet => "already_met",
            Verdict::AwaitsApproval => "awaits_approval",
            Verdict::NotMet => "not_met",
            Verdict::Interrupted => "interrupted",
        }
    }
}

/// An execution that has ended.
#[derive(Debug, Clone)]
pub struct Execution {
    pub contract: Contract,
    /// What became of it.
    pub verdict: Verdict,
    pub state: State,
    /// Why it is not met.
    pub reasons: Vec<String>,
    pub agent: Option<AgentRun>,
    /// The output of the agent, redacted.
    pub output: Option<Value>,
    /// The outcome of the verification.
    pub verification: Option<VerificationReport>,
    /// The end of the streams of the last attempt, redacted.
    pub streams: Option<[String; 2]>,
    /// What was done to undo the work.
    pub rollback: Option<RollbackSummary>,
    /// The folder with the evidence.
    pub evidence: Option<Utf8PathBuf>,
    /// The time of the start.
    pub started_at: Timestamp,
    /// The time of the end.
    pub ended_at: Timestamp,
}

/// A finished agent command.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AgentRun {
    /// The command line, redacted.
    pub command: String,
    pub exit_code: i32,
    /// The time from its start to its end.
    pub duration_ms: u64,
    /// The record, in the folder with the evidence.
    pub evidence: EvidenceFiles,
}

/// What was done to undo the work.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RollbackSummary {
    /// The strategy of the contract.
    pub strategy: RollbackStrategy,
    pub outcome: RollbackOutcome,
    /// What was done, or why not.
    pub message: String,
    /// How to get the undone work back.
    pub way_back: Option<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RollbackOutcome {
    /// The work is undone.
    RolledBack,
    /// It would throw away work of others, so nothing was changed.
    Refused,
    Failed,
}

impl RollbackOutcome {
    /// The word in documents.
    pub const fn as_str(self) -> &'static str {
        match self {
            RollbackOutcome::RolledBack => "rolled_back",
            RollbackOutcome::Refused => "refused",
            RollbackOutcome::Failed => "failed",
        }
    }
}

impl Execution {
    /// Returns the version of the contract.
    pub const fn version(&self) -> NonZeroU32 {
        self.contract.version
    }
}
