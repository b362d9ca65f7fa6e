//! What a rule does with the calls that it matches.

use counterproof_ledger::event::{Action, HintKind};
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// What a rule does.
#[derive(Debug, Clone, PartialEq)]
pub enum Effect {
    /// Allows the call, unless an earlier rule decided.
    Allow {
        /// The stable code of the reason.
        reason_code: String,
        /// One sentence.
        message: Option<String>,
    },
    /// Refuses the call, unless an earlier rule decided.
    Deny(Refusal),
    /// Refuses calls beyond a number or a cost.
    Budget(Budget),
    /// Refuses calls that are too frequent.
    RateLimit(RateLimit),
    /// Refuses calls in a loop, or to tools that fail.
    Breaker(Breaker),
    /// Refuses calls that repeat an earlier one.
    Dedupe(Dedupe),
    /// Adds risk classes, in lower case.
    Tag(Vec<String>),
}

/// How a call is refused.
#[derive(Debug, Clone, PartialEq)]
pub struct Refusal {
    /// The action. Not `ALLOW`.
    pub action: Action,
    /// The stable code of the reason.
    pub reason_code: String,
    /// One sentence.
    pub message: Option<String>,
    /// What the agent can do instead.
    pub hint_text: Option<String>,
    pub hint_kind: HintKind,
    /// Arguments that would be allowed.
    pub suggested_args: Option<Value>,
    /// When and how to try again.
    pub retry_advice: Option<String>,
    /// Time to wait before the next attempt, for `THROTTLE`.
    pub backoff_ms: u64,
    /// The code of the end of the run, for `TERMINATE_RUN`.
    pub terminate_code: String,
}

/// What counts together.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Scope {
    /// All calls of the run.
    Run,
    /// Calls of one tool name, on any server.
    Tool,
    /// Calls of one tool of one server.
    ServerTool,
}

/// A budget: calls and cost units for the whole run.
#[derive(Debug, Clone, PartialEq)]
pub struct Budget {
    /// What counts together.
    pub scope: Scope,
    /// The number of calls that are allowed.
    pub limit_calls: Option<u64>,
    /// The cost units that are allowed.
    pub limit_cost_units: Option<u64>,
    pub cost_units_per_call: u64,
    /// What happens to other calls.
    pub on_exceed: Refusal,
}

/// A token bucket, which starts full.
#[derive(Debug, Clone, PartialEq)]
pub struct RateLimit {
    /// What counts together.
    pub scope: Scope,
    /// The largest number of tokens.
    pub capacity: u64,
    /// The tokens that each period adds.
    pub refill_tokens: u64,
    /// The length of a period.
    pub refill_period_ms: u64,
    /// The tokens that one call takes.
    pub cost_tokens_per_call: u64,
    /// What happens to calls without tokens.
    pub on_limit: Refusal,
}

/// A breaker. At least one of its thresholds is set.
#[derive(Debug, Clone, PartialEq)]
pub struct Breaker {
    /// What counts together.
    pub scope: Scope,
    /// Calls with the same arguments.
    pub repeats: Option<BreakerThreshold>,
    /// Calls that ended with an error.
    pub errors: Option<BreakerThreshold>,
    /// What happens to the call.
    pub on_trip: Refusal,
}

/// A number of calls within a time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BreakerThreshold {
    /// The number of calls at which the breaker trips.
    pub count: u64,
    /// The length of the window.
    pub window_ms: u64,
}

/// A window in which a call must not be repeated.
#[derive(Debug, Clone, PartialEq)]
pub struct Dedupe {
    /// What counts together.
    pub scope: Scope,
    /// The length of the window.
    pub window_ms: u64,
    /// What happens to the repeated call.
    pub on_duplicate: Refusal,
}
