//! The retry budget of a run: the maximum number of retries over all cases.
//!
//! Retries help a single case. When every case fails, they would multiply the load on a failing agent; the budget prevents
//! that.

use std::fmt;
use std::str::FromStr;
use std::sync::atomic::{AtomicU64, Ordering};

/// A percentage budget allows at least this many retries. In small runs, a percentage would allow almost none.
const MIN_OF_PERCENTAGE: u64 = 10;

/// The maximum number of retries over all cases of a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RetryBudget {
    /// An absolute number.
    Retries(u64),
    /// A percentage of the number of cases, rounded up; at least ten retries, unless the percentage is zero.
    Percent(u32),
}

impl Default for RetryBudget {
    /// One retry per case on average.
    fn default() -> Self {
        Self::Percent(100)
    }
}

impl RetryBudget {
    /// Returns the number of retries for this many cases.
    pub fn for_cases(self, cases: usize) -> u64 {
        match self {
            RetryBudget::Retries(retries) => retries,
            RetryBudget::Percent(0) => 0,
            RetryBudget::Percent(percent) => {
                (cases as u64).saturating_mul(percent.into()).div_ceil(100).max(MIN_OF_PERCENTAGE)
            }
        }
    }
}

/// An invalid retry budget.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("invalid retry budget: use a number of retries such as 50, or a percentage of the cases such as 20%")]
pub struct RetryBudgetError;

impl FromStr for RetryBudget {
    type Err = RetryBudgetError;

    fn from_str(text: &str) -> Result<Self, RetryBudgetError> {
        let digits = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
        match text.strip_suffix('%') {
            Some(percent) if digits(percent) => percent.parse().map(Self::Percent).map_err(|_| RetryBudgetError),
            None if digits(text) => text.parse().map(Self::Retries).map_err(|_| RetryBudgetError),
            _ => Err(RetryBudgetError),
        }
    }
}

impl fmt::Display for RetryBudget {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            RetryBudget::Retries(retries) => write!(f, "{retries}"),
            RetryBudget::Percent(percent) => write!(f, "{percent}%"),
        }
    }
}

/// The remaining retries of a run, shared by all cases.
#[derive(Debug)]
pub(crate) struct RetryTokens(AtomicU64);

impl RetryTokens {
    pub(crate) const fn new(retries: u64) -> Self {
        Self(AtomicU64::new(retries))
    }

    /// Takes one retry. Returns `false` if none is left.
    pub(crate) fn take(&self) -> bool {
        // Relaxed: the counter guards no other memory. A plain subtraction could wrap below zero when two cases fail together.
        self.0.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |left| left.checked_sub(1)).is_ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_budget_is_parsed_as_a_number_or_a_percentage() {
        for text in ["0", "50", "0%", "20%", "250%"] {
            assert_eq!(text.parse::<RetryBudget>().map(|budget| budget.to_string()).as_deref(), Ok(text));
        }
        for text in ["", "%", "-1", "1.5", "+3", "20 %", "many", "99999999999999999999"] {
            assert_eq!(text.parse::<RetryBudget>(), Err(RetryBudgetError), "{text:?}");
        }
    }

    #[test]
    fn a_percentage_grows_with_the_cases_but_has_a_minimum() {
        assert_eq!(RetryBudget::Percent(20).for_cases(1001), 201);
        assert_eq!(RetryBudget::Percent(20).for_cases(3), 10);
        assert_eq!(RetryBudget::Percent(0).for_cases(1000), 0);
        assert_eq!(RetryBudget::Retries(3).for_cases(1000), 3);
        assert_eq!(RetryBudget::default().for_cases(5000), 5000);
    }

    #[test]
    fn tokens_run_out() {
        let tokens = RetryTokens::new(2);
        assert_eq!([tokens.take(), tokens.take(), tokens.take(), tokens.take()], [true, true, false, false]);
    }
}
