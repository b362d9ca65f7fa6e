//! A policy that was checked and compiled: only the parts that decisions need.

mod condition;
mod expression;
mod names;
mod policy;

pub(crate) use condition::RiskClasses;
pub use condition::{ArgsCondition, Condition, Conditions, Doubt, Match, Range};
pub(crate) use expression::{CALL, CelInputs, run_value};
pub use expression::{CelCondition, InvalidCel};
pub use names::{
    InvalidGlob, InvalidPattern, MAX_NAME_BYTES, MatchedPatterns, NameMatch, NamePatterns, NamePatternsBuilder,
    PatternRange, glob_to_regex,
};
pub use policy::{
    Breaker, BreakerThreshold, Budget, Dedupe, Defaults, DenyAs, DenyCodes, Effect, LabelSelector, NeverApplies,
    OnError, Policy, RateLimit, Refusal, Responses, Rule, RuleId, RuleKind, Scope, Selectors, UnmetSelector,
    WorkloadSelectors,
};
