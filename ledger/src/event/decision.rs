//! The decision about a call.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::PolicyRef;

/// The field `decision` of `tool_call_decision`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct DecisionRecord {
    pub action: Action,
    /// The rule that decided; `null` for the default.
    pub rule_id: Option<String>,
    /// The severity of the rule.
    pub severity: Severity,
    /// The reason.
    pub explain: Explanation,
    pub policy: PolicyRef,
    /// Time to wait before the next attempt, for `THROTTLE`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub backoff_ms: Option<u64>,
    /// What the agent can do instead, for `REJECT_WITH_HINT`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hint: Option<Hint>,
    /// Why the run ends, for `TERMINATE_RUN`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub terminate: Option<Termination>,
    /// What the rules would have decided, in observe mode. `action` is `ALLOW` then.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub observed: Option<ObservedDecision>,
}

/// What happens to a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
pub enum Action {
    /// It is forwarded.
    Allow,
    /// It is refused.
    Block,
    /// It is refused for a while.
    Throttle,
    /// It is refused, and the agent receives a hint.
    RejectWithHint,
    /// It is refused, and the run ends.
    TerminateRun,
}

impl Action {
    /// All decisions.
    pub const ALL: [Self; 5] =
        [Action::Allow, Action::Block, Action::Throttle, Action::RejectWithHint, Action::TerminateRun];

    /// The name in events and policies.
    pub const fn name(self) -> &'static str {
        match self {
            Action::Allow => "ALLOW",
            Action::Block => "BLOCK",
            Action::Throttle => "THROTTLE",
            Action::RejectWithHint => "REJECT_WITH_HINT",
            Action::TerminateRun => "TERMINATE_RUN",
        }
    }
}

/// How serious a decision is.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Severity {
    /// Information.
    #[default]
    Info,
    /// Worth a look.
    Warn,
    /// Needs a person.
    Critical,
}

/// The reason of a decision.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Explanation {
    /// One sentence.
    pub summary: String,
    /// A stable code, such as `BUDGET_EXCEEDED`.
    pub reason_code: String,
}

/// What an agent can do instead of a refused call.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Hint {
    /// One or more sentences for the model.
    pub hint_text: String,
    /// Arguments that would be allowed.
    pub suggested_args: Option<Value>,
    /// When and how to try again.
    pub retry_advice: Option<String>,
    pub hint_kind: HintKind,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
pub enum HintKind {
    /// Other arguments are needed.
    ArgFix,
    Budget,
    /// The calls are too fast.
    Rate,
    /// The call is unsafe.
    Safety,
    /// Anything else.
    #[serde(other)]
    Other,
}

/// Why a run ends.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Termination {
    pub terminate_code: String,
    /// One sentence.
    pub terminate_message: String,
}

/// What the rules would have decided.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ObservedDecision {
    pub action: Action,
    pub rule_id: Option<String>,
    /// The stable code of the reason.
    pub reason_code: String,
}
