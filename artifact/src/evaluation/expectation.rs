//! The expectations of the cases file, as they were judged.

use serde::{Deserialize, Serialize};

/// One expectation of the cases file, judged on both sides.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ExpectationResult {
    /// The key in the cases file, such as `tool_required`.
    pub code: String,
    /// What was expected, in words.
    pub expected: String,
    /// How the baseline did; absent where it has no answer to judge.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub baseline: Option<Judgement>,
    /// How new did; absent where it has no answer to judge.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub new: Option<Judgement>,
}

/// How one side did on an expectation, with what was found, in words.
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
    /// `Met` or `Unmet`.
    pub fn from_met(is_met: bool, found: String) -> Self {
        if is_met { Self::Met(found) } else { Self::Unmet(found) }
    }

    /// Whether the expectation is met.
    pub const fn is_met(&self) -> bool {
        matches!(self, Self::Met(_))
    }

    /// Whether the expectation is not met. An undecided one is neither met nor unmet.
    pub const fn is_unmet(&self) -> bool {
        matches!(self, Self::Unmet(_))
    }

    /// Whether the expectation could not be decided.
    pub const fn is_undecided(&self) -> bool {
        matches!(self, Self::Undecided(_))
    }

    /// What was found, in words.
    pub fn found(&self) -> &str {
        match self {
            Self::Met(found) | Self::Unmet(found) | Self::Undecided(found) => found,
        }
    }
}

/// A judgement as `evaluation.json` stores it.
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
