//! The gate on the whole comparison. It lists every rule, also those that are met, with its limit, its count, and the number of
//! cases that it could have counted.

mod config;
mod decision;
mod evaluate;
mod headline;
mod review;
mod rules;
mod standing;
mod usage_review;

pub use decision::{Decision, DecisionKind, ViolatedRule, decide, more_runs, wanted_baseline_runs};
pub(crate) use evaluate::{GateInput, at_most, judge};
pub use evaluate::{UnknownScope, unknown_scopes};
pub(crate) use headline::{JudgedBy, NO_BASELINE, judged_by, lacks_expectations};
pub use headline::{headline, is_alone, is_unconfirmed, qualifications};
pub(crate) use review::{
    ReviewInput, ReviewSet, incomplete_baseline, item_of, items as review_items, sort as sort_review,
};
pub use review::{ReviewLine, review_lines};
pub use rules::{AddedCase, GateRules, GrowthLimit, Limit, Measure, ScopeRules, UsageLimits};
pub(crate) use rules::{GateCase, USAGE_CODES, fails_by_default, unmet_test, usage_rules};
pub use standing::{RankedCase, Standing, ViolatedRules, worst_first};
pub(crate) use usage_review::{Repeatability, items as usage_review};
