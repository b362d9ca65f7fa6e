//! The sum of what the answers of one or more runs used, compared with the limits before each case.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use counterproof_artifact::Usage;

/// The limits of what the answers of all runs with one [`Spending`] may use together. The runner checks them before each case.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct UsageLimits {
    /// The highest cost, in the currency that the agent reports.
    pub cost: Option<f64>,
    /// The largest number of input and output tokens.
    pub tokens: Option<u64>,
    /// Whether a run goes on after an answer that does not report what a limit is about.
    pub allow_unknown: bool,
}

/// What the complete cases of one or more runs used. Clones share the sum.
#[derive(Debug, Clone, Default)]
pub struct Spending(Arc<Mutex<Sum>>);

#[derive(Debug, Default)]
struct Sum {
    cost: f64,
    tokens: u64,
    /// Whether an answer does not report its cost.
    is_cost_unknown: bool,
    /// Whether an answer does not report its tokens.
    are_tokens_unknown: bool,
}

impl Spending {
    /// Adds a case that reached the agent. Without `usage`, what it used is unknown.
    pub(crate) fn add(&self, usage: Option<&Usage>) {
        let cost = usage.and_then(|usage| usage.cost);
        let counts = usage.and_then(|usage| Some((usage.input_tokens?, usage.output_tokens?)));
        let mut sum = self.sum();
        sum.is_cost_unknown |= cost.is_none();
        sum.are_tokens_unknown |= counts.is_none();
        sum.cost += cost.unwrap_or_default();
        if let Some((input, output)) = counts {
            sum.tokens = sum.tokens.saturating_add(input.get()).saturating_add(output.get());
        }
    }

    /// Returns why no further case starts; `None` while the limits allow one.
    pub fn exceeded(&self, limits: &UsageLimits) -> Option<String> {
        let sum = self.sum();
        if let Some(limit) = limits.cost.filter(|limit| sum.cost >= *limit) {
            return Some(format!("the answers cost {}, and the limit is {limit}", rounded(sum.cost)));
        }
        if let Some(limit) = limits.tokens.filter(|limit| sum.tokens >= *limit) {
            return Some(format!("the answers used {} tokens, and the limit is {limit}", sum.tokens));
        }
        let unknown = if limits.cost.is_some() && sum.is_cost_unknown {
            "cost"
        } else if limits.tokens.is_some() && sum.are_tokens_unknown {
            "tokens"
        } else {
            return None;
        };
        (!limits.allow_unknown)
            .then(|| format!("an answer does not report its {unknown}, so the limit cannot be checked"))
    }

    fn sum(&self) -> MutexGuard<'_, Sum> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Sums of prices have digits that mean nothing.
fn rounded(cost: f64) -> f64 {
    (cost * 1e6).round() / 1e6
}

#[cfg(test)]
mod tests {
    use super::*;

    fn usage(cost: Option<f64>, tokens: Option<(u64, u64)>) -> Usage {
        Usage {
            cost,
            input_tokens: tokens.map(|(input, _)| input.into()),
            output_tokens: tokens.map(|(_, output)| output.into()),
            ..Usage::default()
        }
    }

    #[test]
    fn a_run_stops_at_the_limit() {
        let limits = UsageLimits { cost: Some(0.3), ..UsageLimits::default() };
        let spending = Spending::default();
        for _ in 0..3 {
            assert_eq!(spending.exceeded(&limits), None);
            // Another run with the same sum.
            spending.clone().add(Some(&usage(Some(0.1), None)));
        }
        assert_eq!(spending.exceeded(&limits).unwrap(), "the answers cost 0.3, and the limit is 0.3");
    }

    #[test]
    fn a_missing_count_stops_a_run_unless_it_is_allowed() {
        for allow_unknown in [false, true] {
            let limits = UsageLimits { tokens: Some(10), allow_unknown, ..UsageLimits::default() };
            let spending = Spending::default();
            spending.add(Some(&usage(Some(1.0), None)));
            spending.add(None);
            assert_eq!(spending.exceeded(&limits).is_none(), allow_unknown);
            spending.add(Some(&usage(None, Some((7, 5)))));
            assert_eq!(spending.exceeded(&limits).unwrap(), "the answers used 12 tokens, and the limit is 10");
        }
    }

    #[test]
    fn without_limits_nothing_stops_a_run() {
        let spending = Spending::default();
        spending.add(None);
        assert_eq!(spending.exceeded(&UsageLimits::default()), None);
    }
}
