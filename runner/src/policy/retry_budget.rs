//! How many retries a whole run may make: a policy that is kind to one case must not multiply the load of an agent that is
//! failing for all of them.

use std::fmt;
use std::str::FromStr;
use std::sync::atomic::{AtomicU64, Ordering};

/// A share never comes to fewer retries than this: a handful of cases says little about the agent.
const LEAST_OF_A_SHARE: u64 = 10;

/// How many retries a run may make, over all its cases.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RetryBudget {
    /// This many.
    Retries(u64),
    /// This many for every hundred cases, rounded up; but ten at least, unless it is none.
    Percent(u32),
}

impl Default for RetryBudget {
    /// As many retries as there are cases.
    fn default() -> Self {
        Self::Percent(100)
    }
}

impl RetryBudget {
    /// What the budget comes to.
    pub fn for_cases(self, cases: usize) -> u64 {
        match self {
            RetryBudget::Retries(retries) => retries,
            RetryBudget::Percent(0) => 0,
            RetryBudget::Percent(percent) => {
                (cases as u64).saturating_mul(percent.into()).div_ceil(100).max(LEAST_OF_A_SHARE)
            }
        }
    }
}

/// A budget that is neither a number nor a percentage.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("a retry budget is a number of retries such as 50, or a share of the cases such as 20%")]
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

/// What is left of a budget, shared by all cases of a run.
#[derive(Debug)]
pub(crate) struct Purse(AtomicU64);

impl Purse {
    pub(crate) const fn new(retries: u64) -> Self {
        Self(AtomicU64::new(retries))
    }

    /// Takes one retry; false where none is left.
    pub(crate) fn take(&self) -> bool {
        self.0.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |left| left.checked_sub(1)).is_ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_budget_is_read_as_a_number_or_a_share() {
        for text in ["0", "50", "0%", "20%", "250%"] {
            assert_eq!(text.parse::<RetryBudget>().map(|budget| budget.to_string()).as_deref(), Ok(text));
        }
        for text in ["", "%", "-1", "1.5", "+3", "20 %", "many", "99999999999999999999"] {
            assert_eq!(text.parse::<RetryBudget>(), Err(RetryBudgetError), "{text:?}");
        }
    }

    #[test]
    fn a_share_grows_with_the_cases_and_leaves_small_runs_room() {
        assert_eq!(RetryBudget::Percent(20).for_cases(1001), 201);
        assert_eq!(RetryBudget::Percent(20).for_cases(3), 10);
        assert_eq!(RetryBudget::Percent(0).for_cases(1000), 0);
        assert_eq!(RetryBudget::Retries(3).for_cases(1000), 3);
        assert_eq!(RetryBudget::default().for_cases(5000), 5000);
    }

    #[test]
    fn a_purse_gives_what_it_holds_and_no_more() {
        let purse = Purse::new(2);
        assert_eq!([purse.take(), purse.take(), purse.take(), purse.take()], [true, true, false, false]);
    }
}
