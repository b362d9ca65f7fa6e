//! What each rule did with a call, for `guard policy explain`.

use serde::Serialize;

use crate::policy::model::{RuleId, RuleKind};

/// What one rule did with a call.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct RuleStep {
    pub rule_id: RuleId,
    pub kind: RuleKind,
    #[serde(flatten)]
    pub matching: Matching,
    /// What it did, in words; `None` if it did nothing.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub effect: Option<String>,
}

/// Whether a rule matched a call.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(tag = "match", rename_all = "snake_case")]
pub enum Matching {
    /// The rule is not enabled.
    Disabled,
    /// An earlier rule ended the evaluation.
    NotReached,
    /// This condition is not met.
    No {
        condition: String,
        /// Why it is not met.
        reason: String,
    },
    /// All conditions are met.
    Yes {
        /// The conditions; empty for a rule that matches every call.
        conditions: Vec<String>,
    },
    Undecided {
        condition: String,
        /// Why it is undecided.
        reason: String,
        /// How the rule is treated then.
        treated: Treatment,
    },
}

/// How an undecided rule is treated.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Treatment {
    /// In the stricter of both ways.
    Strict,
    /// In the more lenient of both ways.
    Lenient,
}
