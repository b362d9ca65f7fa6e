//! Results of the expectations in the cases file.

use serde::{Deserialize, Serialize};

/// The result of one expectation on both sides.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ExpectationResult {
    /// The key in the cases file, such as `tool_required`.
    pub code: String,
    /// A description of the expected behaviour.
    pub expected: String,
    /// The name that the cases file gives it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// True for a hard expectation: unmet on new, it fails the gate whatever the baseline does.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub must: bool,
    /// The result on the baseline; absent where it has no answer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub baseline: Option<Judgement>,
    /// The result on new; absent where it has no answer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub new: Option<Judgement>,
}

/// The result of an expectation on one side, with a description of the actual behaviour.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(from = "JudgementRecord", into = "JudgementRecord")]
pub enum Judgement {
    /// The expectation is met.
    Met(String),
    /// The expectation is not met.
    Unmet(String),
    /// The expectation could not be decided within the limits on work.
    Undecided(String),
}

impl Judgement {
    /// True where the expectation is met.
    pub const fn is_met(&self) -> bool {
        matches!(self, Self::Met(_))
    }

    /// True where the expectation is not met. An undecided one is neither met nor unmet.
    pub const fn is_unmet(&self) -> bool {
        matches!(self, Self::Unmet(_))
    }

    /// True where the expectation could not be decided.
    pub const fn is_undecided(&self) -> bool {
        matches!(self, Self::Undecided(_))
    }

    /// The description of the actual behaviour.
    pub fn found(&self) -> &str {
        match self {
            Self::Met(found) | Self::Unmet(found) | Self::Undecided(found) => found,
        }
    }
}

/// The form of a judgement in `evaluation.json`.
#[derive(Serialize, Deserialize)]
struct JudgementRecord {
    passed: bool,
    found: String,
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    undecided: bool,
}

impl From<JudgementRecord> for Judgement {
    fn from(record: JudgementRecord) -> Self {
        match (record.passed, record.undecided) {
            (true, _) => Self::Met(record.found),
            (false, false) => Self::Unmet(record.found),
            (false, true) => Self::Undecided(record.found),
        }
    }
}

impl From<Judgement> for JudgementRecord {
    fn from(judgement: Judgement) -> Self {
        let (passed, undecided) = (judgement.is_met(), judgement.is_undecided());
        let (Judgement::Met(found) | Judgement::Unmet(found) | Judgement::Undecided(found)) = judgement;
        Self { passed, found, undecided }
    }
}
