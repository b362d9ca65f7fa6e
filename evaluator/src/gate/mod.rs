//! The gate on the whole comparison. It lists every rule, also those that are met, with its limit, its count, and the number of
//! cases that it could have counted.

mod evaluate;
mod headline;
mod rules;

pub(crate) use evaluate::{GateCase, GateInput, counts, judge};
pub(crate) use evaluate::{UNDECIDED, at_most, fails_by_default};
pub use evaluate::{UnknownScope, unknown_scopes};
pub(crate) use headline::lacks_expectations;
pub use headline::{headline, qualifications};
pub use rules::{GateRules, Limit, Measure, ScopeRules};
