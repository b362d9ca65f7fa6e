//! The sum of what the answers of a run used, compared with its limits before each case.

use counterproof_artifact::Usage;

/// The limits of what the answers of a run may use together. The runner checks them before each case.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct UsageLimits {
    /// The highest cost, in the currency that the agent reports.
    pub cost: Option<f64>,
    /// The largest number of input and output tokens.
    pub tokens: Option<u64>,
    /// Whether the run goes on after an answer that does not report what a limit is about.
    pub allow_unknown: bool,
}

/// What the complete cases used.
#[derive(Debug)]
pub(crate) struct Spending {
    limits: UsageLimits,
    cost: f64,
    tokens: u64,
    /// Whether an answer does not report what a limit is about.
    is_unknown: bool,
}

impl Spending {
    pub(crate) const fn new(limits: UsageLimits) -> Self {
        Self { limits, cost: 0.0, tokens: 0, is_unknown: false }
    }

    /// Adds a case that reached the agent. Without `usage`, what it used is unknown.
    pub(crate) fn add(&mut self, usage: Option<&Usage>) {
        let cost = usage.and_then(|usage| usage.cost);
        let counts = usage.and_then(|usage| Some((usage.input_tokens?, usage.output_tokens?)));
        self.is_unknown |= self.limits.cost.is_some() && cost.is_none();
        self.is_unknown |= self.limits.tokens.is_some() && counts.is_none();
        self.cost += cost.unwrap_or_default();
        if let Some((input, output)) = counts {
            self.tokens = self.tokens.saturating_add(input.get()).saturating_add(output.get());
        }
    }

    /// Returns why no further case starts; `None` while the limits allow one.
    pub(crate) fn exceeded(&self) -> Option<String> {
        let UsageLimits { cost, tokens, allow_unknown } = self.limits;
        if let Some(limit) = cost.filter(|limit| self.cost >= *limit) {
            return Some(format!("the answers cost {}, and the limit is {limit}", rounded(self.cost)));
        }
        if let Some(limit) = tokens.filter(|limit| self.tokens >= *limit) {
            return Some(format!("the answers used {} tokens, and the limit is {limit}", self.tokens));
        }
        let what = if cost.is_some() { "cost" } else { "tokens" };
        (self.is_unknown && !allow_unknown)
            .then(|| format!("an answer does not report its {what}, so the limit cannot be checked"))
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
        let mut spending = Spending::new(UsageLimits { cost: Some(0.3), ..UsageLimits::default() });
        for _ in 0..3 {
            assert_eq!(spending.exceeded(), None);
            spending.add(Some(&usage(Some(0.1), None)));
        }
        assert_eq!(spending.exceeded().unwrap(), "the answers cost 0.3, and the limit is 0.3");
    }

    #[test]
    fn a_missing_count_stops_a_run_unless_it_is_allowed() {
        for allow_unknown in [false, true] {
            let mut spending = Spending::new(UsageLimits { tokens: Some(10), allow_unknown, ..UsageLimits::default() });
            spending.add(Some(&usage(Some(1.0), None)));
            spending.add(None);
            assert_eq!(spending.exceeded().is_none(), allow_unknown);
            spending.add(Some(&usage(None, Some((7, 5)))));
            assert_eq!(spending.exceeded().unwrap(), "the answers used 12 tokens, and the limit is 10");
        }
    }

    #[test]
    fn without_limits_nothing_stops_a_run() {
        let mut spending = Spending::new(UsageLimits::default());
        spending.add(None);
        assert_eq!(spending.exceeded(), None);
    }
}
