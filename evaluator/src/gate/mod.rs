//! The gate on the whole comparison. It lists every rule, also those that are met, with its limit, its count, and the number of
//! cases that it could have counted.

mod config;
mod evaluate;
mod review;
mod rules;

pub(crate) use evaluate::{GateInput, at_most, judge, lacks_expectations};
pub use evaluate::{UnknownScope, ViolatedRules, headline, qualifications, unknown_scopes};
pub(crate) use review::{
    ReviewInput, ReviewSet, incomplete_baseline, items as review_items, sorted as sorted_review, usage_review,
};
pub use review::{ReviewLine, review_lines};
pub(crate) use rules::{GateCase, USAGE_CODES, fails_by_default, unmet_test, usage_rules};
pub use rules::{GateRules, GrowthLimit, Limit, Measure, ScopeRules, UsageLimits};
