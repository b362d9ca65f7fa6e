//! A rule of a policy.

use std::fmt;

use counterproof_ledger::event::Severity;
use serde::{Deserialize, Serialize};

use super::condition::Conditions;
use super::effect::Effect;

/// The id of a rule, unique in its policy.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct RuleId(String);

impl RuleId {
    /// Takes an id that is not empty.
    pub fn new(id: &str) -> Option<Self> {
        (!id.trim().is_empty()).then(|| Self(id.to_owned()))
    }

    /// The text of the id.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for RuleId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RuleKind {
    Allow,
    /// Refuses calls.
    Deny,
    /// Limits calls and cost.
    Budget,
    /// Limits the rate of calls.
    RateLimit,
    /// Stops loops and failing tools.
    Breaker,
    /// Stops repeated calls.
    Dedupe,
    /// Adds risk classes.
    Tag,
}

impl RuleKind {
    /// The name in policies.
    pub const fn name(self) -> &'static str {
        match self {
            RuleKind::Allow => "allow",
            RuleKind::Deny => "deny",
            RuleKind::Budget => "budget",
            RuleKind::RateLimit => "rate_limit",
            RuleKind::Breaker => "breaker",
            RuleKind::Dedupe => "dedupe",
            RuleKind::Tag => "tag",
        }
    }
}

/// A rule that was checked and compiled.
#[derive(Debug, Clone, PartialEq)]
pub struct Rule {
    pub id: RuleId,
    /// False if the rule is skipped.
    pub is_enabled: bool,
    /// The calls that it matches.
    pub conditions: Conditions,
    /// What it does.
    pub effect: Effect,
    /// How serious its decisions are.
    pub severity: Severity,
}

impl Rule {
    pub const fn kind(&self) -> RuleKind {
        match &self.effect {
            Effect::Allow { .. } => RuleKind::Allow,
            Effect::Deny(_) => RuleKind::Deny,
            Effect::Budget(_) => RuleKind::Budget,
            Effect::RateLimit(_) => RuleKind::RateLimit,
            Effect::Breaker(_) => RuleKind::Breaker,
            Effect::Dedupe(_) => RuleKind::Dedupe,
            Effect::Tag(_) => RuleKind::Tag,
        }
    }
}
