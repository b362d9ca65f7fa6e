//! The gate on the whole comparison. It lists every rule, also those that are met, with its limit, its count, and the number of
//! cases that it could have counted.

mod evaluate;
mod headline;
mod review;
mod rules;
mod unmet;
mod usage_rules;

pub(crate) use evaluate::{GateCase, GateInput, judge};
pub use evaluate::{UnknownScope, ViolatedRules, unknown_scopes};
pub(crate) use evaluate::{at_most, fails_by_default};
pub(crate) use headline::lacks_expectations;
pub use headline::{headline, qualifications};
pub(crate) use review::{ReviewInput, ReviewSet, incomplete_baseline, items as review_items, sorted as sorted_review};
pub use review::{ReviewLine, review_lines};
pub use rules::{GateRules, Limit, Measure, ScopeRules};
pub(crate) use unmet::unmet_test;
pub(crate) use usage_rules::{CODES as USAGE_CODES, usage_review, usage_rules};
pub use usage_rules::{GrowthLimit, UsageLimits};
