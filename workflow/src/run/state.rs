//! What a run knows: its settings, where it is, and what the checks found. A checkpoint has all of it.

use std::fmt;

use counterproof_contracts::contract::Contract;
use counterproof_sessions::event::RequestedCall;
use counterproof_sessions::session::SessionStatus;
use counterproof_workspace::{Author, RepositoryId};
use serde::{Deserialize, Serialize};

use crate::forge::PullRequest;
use crate::model::Price;
use crate::suite::{Commands, Target, TestReport};
use crate::tools::SandboxChoice;

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Workflow {
    FixFailingTest,
    ImplementFeature,
}

impl Workflow {
    /// Returns the value of the field `workflow`.
    pub const fn word(self) -> &'static str {
        match self {
            Workflow::FixFailingTest => "fix_failing_test",
            Workflow::ImplementFeature => "implement_feature",
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ForgeKind {
    Local,
    Github,
}

/// All settings of a run but secrets. They are stored with each checkpoint, and can be replaced at a resume.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Settings {
    pub workflow: Workflow,
    /// The path or the URL of the repository.
    pub source: String,
    pub branch: Option<String>,
    /// The test as the user named it.
    pub test: Option<String>,
    pub specification: Option<String>,
    pub target_files: Vec<String>,
    pub examples: Vec<String>,
    pub model: ModelSettings,
    pub test_command: Option<String>,
    pub suite_command: Option<String>,
    pub lint_command: Option<String>,
    pub ci_command: Option<String>,
    /// Another agent in place of the built-in one.
    pub agent_command: Option<String>,
    pub forge: ForgeKind,
    /// Seconds.
    pub ci_timeout: Option<f64>,
    /// Seconds that a test, suite or lint command may take.
    pub command_timeout: f64,
    pub limits: Limits,
    /// Turns between two checkpoints.
    pub checkpoint_every: u64,
    pub include_ignored: Vec<String>,
    /// Largest new content of a checkpoint, in bytes.
    pub max_snapshot_bytes: u64,
    pub sandbox: SandboxChoice,
    /// The file with the policy that decides about the calls of the agent.
    pub policy: Option<String>,
    /// The contract that must hold before a commit is made.
    pub contract: Option<Box<Contract>>,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ModelSettings {
    /// The base URL, such as `http://localhost:8000/v1`, without credentials. The built-in agent needs it; for another one, `None`
    /// means the servers that the environment names, or the public ones.
    pub url: Option<String>,
    /// Whether the URL had credentials, which are not stored.
    #[serde(default)]
    pub had_credentials: bool,
    /// The built-in agent needs it.
    pub name: Option<String>,
    pub is_streaming: bool,
    pub price: Option<Price>,
}

/// When a run ends without success.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Limits {
    /// Attempts that end with a red check.
    pub iterations: u64,
    /// Requests to the model, repeated ones included.
    pub turns: Option<u64>,
    pub tokens: Option<u64>,
    pub cost: Option<f64>,
}

/// The states of the machine, in the order of a run without a red check.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Phase {
    Created,
    /// The workspace is made.
    Checkout,
    /// The target test must fail.
    Reproduce,
    /// The suite runs before the change.
    Baseline,
    /// The agent looks for the place.
    Localise,
    /// The agent has read a file.
    Understand,
    /// The agent has changed a file.
    Edit,
    TargetTest,
    Suite,
    Lint,
    Contract,
    Commit,
    Push,
    PullRequest,
    Ci,
    Succeeded,
    Failed,
    Paused,
}

impl Phase {
    /// Returns the name of the state in records.
    pub const fn word(self) -> &'static str {
        match self {
            Phase::Created => "created",
            Phase::Checkout => "checkout",
            Phase::Reproduce => "reproduce",
            Phase::Baseline => "baseline",
            Phase::Localise => "localise",
            Phase::Understand => "understand",
            Phase::Edit => "edit",
            Phase::TargetTest => "target_test",
            Phase::Suite => "suite",
            Phase::Lint => "lint",
            Phase::Contract => "contract",
            Phase::Commit => "commit",
            Phase::Push => "push",
            Phase::PullRequest => "pull_request",
            Phase::Ci => "ci",
            Phase::Succeeded => "succeeded",
            Phase::Failed => "failed",
            Phase::Paused => "paused",
        }
    }
}

impl fmt::Display for Phase {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.word())
    }
}

/// Everything that a run needs to go on, next to the messages and the snapshot.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct RunState {
    pub settings: Settings,
    pub base: Base,
    pub phase: Phase,
    pub commands: Option<Commands>,
    pub target: Option<Target>,
    /// The files that define the target test.
    pub target_files: Vec<String>,
    /// Whether no file is known in which a weakened target test would be found.
    #[serde(default)]
    pub is_unguarded: bool,
    /// The suite before the change.
    pub before: Option<TestReport>,
    /// The result of the target test before the change.
    pub reproduced: Option<TestReport>,
    pub spent: Spent,
    /// Attempts that ended with a red check.
    pub red_checks: u64,
    /// The calls of the last answer that have no result yet.
    pub pending: Vec<RequestedCall>,
    /// Whether the first of them has begun.
    pub is_running: bool,
    /// Whether the linter has changed files since the attempt ended.
    pub is_linted: bool,
    pub checks: Checks,
    /// What the model wrote at the end of its last attempt, or the end of what an agent command printed.
    pub last_text: Option<String>,
    pub publication: Publication,
    pub outcome: Option<Outcome>,
}

/// The commit on which a run begins.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Base {
    pub repository: RepositoryId,
    pub commit: String,
    /// The branch that the pull request is for.
    pub branch: String,
    pub author: Author,
    /// The URL of the remote `origin`.
    pub origin: Option<String>,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
pub struct Spent {
    /// Requests that were sent, repeated ones included.
    pub requests: u64,
    pub answers: u64,
    pub tokens: u64,
    /// `None` without prices.
    pub cost: Option<f64>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum CheckResult {
    Pass,
    Fail,
}

impl CheckResult {
    pub const fn of(is_passed: bool) -> Self {
        if is_passed { CheckResult::Pass } else { CheckResult::Fail }
    }
}

/// The last results of the checks.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Checks {
    pub target: Option<CheckResult>,
    pub suite: Option<CheckResult>,
    /// `None` as long as the suite did not run after the change.
    pub new_failures: Option<Vec<String>>,
    /// Tests that failed once and passed when they ran again.
    pub flaky: Vec<String>,
    pub tests_added: u64,
}

/// What a run has made public, or is about to.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Publication {
    /// The branch of the pull request, which no other session uses.
    pub branch: String,
    /// The commits of the session, the latest last.
    pub commits: Vec<String>,
    pub pushed: Option<String>,
    /// Commits of the session that are not below the present ones: it was rewound.
    #[serde(default)]
    pub former: Vec<String>,
    pub pull_request: Option<PullRequest>,
    pub ci: Option<CheckResult>,
}

/// How a run ended.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "status", rename_all = "snake_case")]
pub enum Outcome {
    Success,
    Failure {
        #[serde(flatten)]
        failure: Failure,
        /// The state in which the run stopped.
        stopped_in: Phase,
    },
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Failure {
    pub kind: FailureKind,
    pub message: String,
}

impl Failure {
    pub fn new(kind: FailureKind, message: impl Into<String>) -> Self {
        Self { kind, message: message.into() }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FailureKind {
    TestPassesAlready,
    TestNotFound,
    TestTampered,
    TargetStillFails,
    NewFailures,
    CiFailed,
    CiTimeout,
    BudgetTurns,
    BudgetTokens,
    BudgetCost,
    Model,
    Forge,
    Paused,
    Interrupted,
}

impl RunState {
    /// Returns the limit that does not allow a further request.
    pub fn exhausted(&self) -> Option<Failure> {
        let Limits { turns, tokens, cost, .. } = self.settings.limits;
        let Spent { requests, tokens: used, cost: paid, .. } = self.spent;
        if let Some(limit) = turns.filter(|limit| requests >= *limit) {
            let message = format!("{requests} requests to the model were sent; the limit is {limit} (`--max-turns`)");
            return Some(Failure::new(FailureKind::BudgetTurns, message));
        }
        if let Some(limit) = tokens.filter(|limit| used > *limit) {
            let message = format!("{used} tokens were used; the limit is {limit} (`--max-tokens`)");
            return Some(Failure::new(FailureKind::BudgetTokens, message));
        }
        let paid = paid.unwrap_or(0.0);
        if let Some(limit) = cost.filter(|limit| paid > *limit) {
            let message = format!("the model calls cost {paid:.4}; the limit is {limit} (`--max-cost`)");
            return Some(Failure::new(FailureKind::BudgetCost, message));
        }
        None
    }

    /// Returns the state in which an ended run can go on: after a fault outside of it, or with a higher limit.
    pub fn continuation(&self) -> Option<Phase> {
        let Some(Outcome::Failure { failure, stopped_in }) = &self.outcome else { return None };
        let is_possible = match failure.kind {
            FailureKind::Model | FailureKind::Forge | FailureKind::CiTimeout => true,
            FailureKind::BudgetTurns | FailureKind::BudgetTokens | FailureKind::BudgetCost => {
                self.exhausted().is_none()
            }
            FailureKind::TargetStillFails | FailureKind::NewFailures | FailureKind::CiFailed => {
                self.red_checks < self.settings.limits.iterations
            }
            _ => false,
        };
        is_possible.then_some(*stopped_in)
    }

    /// Makes a run go on that has no pull request of its own yet, or one with other commits: what was published is published again.
    pub(super) fn go_on_before_push(&mut self) {
        if let Some(phase) = self.continuation() {
            self.phase = phase;
            self.outcome = None;
        }
        if matches!(self.phase, Phase::PullRequest | Phase::Ci | Phase::Succeeded) {
            self.phase = Phase::Push;
            self.outcome = None;
        }
    }

    /// Returns whether an ended run could go on, now or with a higher limit.
    pub fn can_continue(&self) -> bool {
        let Some(Outcome::Failure { failure, .. }) = &self.outcome else { return false };
        !matches!(failure.kind, FailureKind::TestPassesAlready | FailureKind::TestNotFound | FailureKind::TestTampered)
    }

    /// Returns the status of the session.
    pub const fn status(&self) -> SessionStatus {
        match &self.outcome {
            None => SessionStatus::Running,
            Some(Outcome::Success) => SessionStatus::Completed,
            Some(Outcome::Failure { .. }) => SessionStatus::Failed,
        }
    }
}
