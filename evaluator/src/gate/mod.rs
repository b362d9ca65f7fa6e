//! The gate on the whole comparison. It never passes silently: it lists every rule with its limit, with its count, and with
//! the number of cases it looked at.

mod evaluate;
mod headline;
mod limits;

pub(crate) use evaluate::{GateCase, counts, judge};
pub(crate) use evaluate::{UNDECIDED, at_most, is_convicted};
pub use evaluate::{UnknownScope, unknown_scopes};
pub(crate) use headline::lacks_expectations;
pub use headline::{headline, qualifications};
pub use limits::{GateLimits, Limit, Measure, ScopeLimits};
