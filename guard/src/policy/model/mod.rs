//! A policy that was checked and compiled: only the parts that decisions need.

mod applicability;
mod arguments;
mod cel_mistakes;
mod condition;
mod effect;
mod expression;
mod glob;
mod names;
mod number;
mod policy;
mod rule;
mod selectors;

pub use applicability::NeverApplies;
pub use arguments::{ArgsCondition, Range};
pub(crate) use condition::RiskClasses;
pub use condition::{Condition, Conditions, Doubt, Match};
pub use effect::{Breaker, BreakerThreshold, Budget, Dedupe, Effect, RateLimit, Refusal, Scope};
pub(crate) use expression::{CALL, CelInputs, run_value};
pub use expression::{CelCondition, InvalidCel};
pub use glob::{InvalidGlob, glob_to_regex};
pub use names::{
    InvalidPattern, MAX_NAME_BYTES, MatchedPatterns, NameMatch, NamePatterns, NamePatternsBuilder, PatternRange,
};
pub use policy::{Defaults, OnError, Policy};
pub use rule::{Rule, RuleId, RuleKind};
pub use selectors::{LabelSelector, Selectors, UnmetSelector, WorkloadSelectors};
