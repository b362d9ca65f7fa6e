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

/// How one side did on an expectation.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Judgement {
    /// Whether it was met.
    pub passed: bool,
    /// What was found, in words.
    pub found: String,
    /// True where it could not be decided within the bounds of the work; it is not met then, and not failed either.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub undecided: bool,
}

impl Judgement {
    /// It was met.
    pub fn met(found: impl Into<String>) -> Self {
        Self { passed: true, found: found.into(), undecided: false }
    }

    /// It was not met.
    pub fn unmet(found: impl Into<String>) -> Self {
        Self { passed: false, found: found.into(), undecided: false }
    }

    /// Nobody can tell within the bounds.
    pub fn undecided(found: impl Into<String>) -> Self {
        Self { passed: false, found: found.into(), undecided: true }
    }

    /// It was met, or it was not.
    pub fn of(passed: bool, found: impl Into<String>) -> Self {
        if passed { Self::met(found) } else { Self::unmet(found) }
    }
}
