//! What was asked, what was said, and what was done: a case for a reader who does not open its artifacts.

use serde::{Deserialize, Serialize};

use crate::number::whole;

/// What was asked of both sides, and what came of it. All texts are cut and on one line.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Story {
    /// The request of the user in the cases file; absent without one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub asked: Option<String>,
    /// The answer of the baseline; absent without one, and where the sides do not differ.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub baseline_said: Option<String>,
    /// The answer of new; absent like that of the baseline.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub new_said: Option<String>,
    /// The writes of the baseline: actions above low risk that took effect.
    #[serde(default, deserialize_with = "whole::required")]
    pub baseline_writes: u64,
    /// The writes of new.
    #[serde(default, deserialize_with = "whole::required")]
    pub new_writes: u64,
    /// The tools whose writes differ, the most harmful first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub effects: Vec<Effect>,
}

impl Story {
    /// The harm of the worst effect.
    pub fn harm(&self) -> Option<Harm> {
        self.effects.iter().filter_map(Effect::harm).min()
    }
}

/// The writes of one tool that differ between the sides.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Effect {
    /// The tool.
    pub tool: String,
    /// How many of its writes took effect on the baseline.
    #[serde(deserialize_with = "whole::required")]
    pub baseline: u64,
    /// How many took effect on new.
    #[serde(deserialize_with = "whole::required")]
    pub new: u64,
    /// The writes of new without evidence that resolves, where the baseline has fewer.
    #[serde(default, skip_serializing_if = "is_zero", deserialize_with = "whole::required")]
    pub without_evidence: u64,
    /// The writes of new that failed, where the baseline has fewer.
    #[serde(default, skip_serializing_if = "is_zero", deserialize_with = "whole::required")]
    pub failed: u64,
    /// True if no call carries out a write of either side: the agents proposed them only.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub proposed: bool,
    /// True for a tool of high risk, whose writes are hard to reverse.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub irreversible: bool,
    /// The arguments that differ in writes that both sides made.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub changed: Vec<ChangedArgument>,
}

impl Effect {
    /// The harm of the effect; `None` where new wrote less and nothing else differs.
    pub fn harm(&self) -> Option<Harm> {
        if self.irreversible && self.new > self.baseline {
            Some(Harm::IrreversibleWrite)
        } else if self.irreversible && !self.changed.is_empty() {
            Some(Harm::ChangedIrreversibleWrite)
        } else if self.without_evidence > 0 {
            Some(Harm::WriteWithoutEvidence)
        } else if !self.changed.is_empty() {
            Some(Harm::ChangedWrite)
        } else {
            None
        }
    }
}

/// An argument with another value on new.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ChangedArgument {
    /// Its name, or its path within the arguments.
    pub name: String,
    /// The value of the baseline as short JSON, a text without quotes.
    pub baseline: String,
    /// The value of new.
    pub new: String,
}

/// How harmful a difference in the writes is, the worst first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Harm {
    /// New made a write that cannot be undone and that the baseline did not make.
    IrreversibleWrite,
    /// A write that cannot be undone has other arguments.
    ChangedIrreversibleWrite,
    /// A write of new has no evidence.
    WriteWithoutEvidence,
    /// A write that can be undone has other arguments.
    ChangedWrite,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde calls it with a reference")]
const fn is_zero(count: &u64) -> bool {
    *count == 0
}
