//! Time, size and cost: of each case, and over all cases.

use serde::{Deserialize, Serialize};

use crate::Quantity;
use crate::number::whole;

/// The time, size and cost of a case. A side without an answer is absent.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct CaseUsage {
    /// The baseline.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub baseline: Option<SideUsage>,
    /// New.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub new: Option<SideUsage>,
}

impl CaseUsage {
    /// Returns the values of baseline and new, where both sides have the quantity. Costs in different currencies cannot be
    /// compared, so there are none.
    pub fn compared(&self, code: UsageCode) -> Option<(f64, f64)> {
        let (baseline, new) = (self.baseline.as_ref()?, self.new.as_ref()?);
        let values = (baseline.get(code)?, new.get(code)?);
        // Costs in two currencies cannot be compared.
        (baseline.currency_of(code) == new.currency_of(code)).then_some(values)
    }
}

/// The time, size and cost of the answers of a side to a case: of the only run, or the medians over several runs.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct SideUsage {
    /// The milliseconds of the attempt that succeeded.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub duration_ms: Option<Quantity>,
    /// The number of tool calls and retrievals.
    pub steps: Quantity,
    /// The milliseconds of all tool results together; absent where calls have no results.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tool_ms: Option<Quantity>,
    /// The tokens that the model read, including the cached ones.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub input_tokens: Option<Quantity>,
    /// The tokens that the model wrote.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub output_tokens: Option<Quantity>,
    /// The input tokens that came from a cache.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cached_tokens: Option<Quantity>,
    /// The cost in `currency`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cost: Option<Quantity>,
    /// The currency of the cost, if it is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub currency: Option<String>,
}

impl SideUsage {
    /// Input and output tokens together, where both are known.
    pub fn tokens(&self) -> Option<f64> {
        // Only if both are known: a sum of one would look like a fall.
        Some(self.input_tokens?.value() + self.output_tokens?.value())
    }

    /// Returns the currency of a cost, if it is known. Other quantities have none.
    pub fn currency_of(&self, code: UsageCode) -> Option<&str> {
        self.currency.as_deref().filter(|_| code == UsageCode::Cost)
    }

    /// Returns a quantity, if it is known.
    pub fn get(&self, code: UsageCode) -> Option<f64> {
        match code {
            UsageCode::Duration => self.duration_ms.map(Quantity::value),
            UsageCode::Steps => Some(self.steps.value()),
            UsageCode::ToolTime => self.tool_ms.map(Quantity::value),
            UsageCode::Tokens => self.tokens(),
            UsageCode::Cost => self.cost.map(Quantity::value),
        }
    }
}

/// A quantity that is compared over all cases.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum UsageCode {
    /// The milliseconds of the attempt that succeeded.
    Duration,
    /// Tool calls and retrievals.
    Steps,
    /// The milliseconds of all tool results.
    ToolTime,
    /// Input and output tokens.
    Tokens,
    /// The cost.
    Cost,
}

impl UsageCode {
    /// All quantities, in display order.
    pub const ALL: [UsageCode; 5] =
        [UsageCode::Duration, UsageCode::Steps, UsageCode::ToolTime, UsageCode::Tokens, UsageCode::Cost];
}

/// A quantity compared over all cases in which both sides have it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct UsageMeasure {
    /// The quantity.
    pub code: UsageCode,
    /// The number of cases in which both sides have it.
    #[serde(deserialize_with = "whole::required")]
    pub cases: u64,
    /// The sum over these cases on the baseline.
    pub baseline: Quantity,
    /// The sum over these cases on new.
    pub new: Quantity,
    /// The currency of a cost, if it is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub currency: Option<String>,
    /// The number of cases with a larger value on new.
    #[serde(deserialize_with = "whole::required")]
    pub rose: u64,
    /// The number of cases with a smaller value on new.
    #[serde(deserialize_with = "whole::required")]
    pub fell: u64,
    /// The p-value of the one-sided signed-rank test that new has larger values.
    pub p: f64,
    /// How the p-value was computed.
    pub method: UsageMethod,
    /// The ratio of new to baseline in a typical case; absent if it is not finite.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ratio: Option<UsageRatio>,
}

impl UsageMeasure {
    /// The relative growth of the sum; `None` where the baseline's sum is 0.
    pub fn growth(&self) -> Option<f64> {
        let baseline = self.baseline.value();
        // There is no growth in per cent from zero.
        (baseline > 0.0).then(|| self.new.value() / baseline - 1.0)
    }
}

/// How the p-value of a signed-rank test is computed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum UsageMethod {
    /// The exact permutation distribution of the ranks, ties included.
    Exact,
    /// The normal approximation with corrections for ties and continuity.
    Normal,
}

/// A ratio of new to baseline with its 95 % confidence interval.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct UsageRatio {
    /// The Hodges–Lehmann estimate.
    pub estimate: f64,
    /// The lower end of the interval; absent with too few cases.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub low: Option<f64>,
    /// The upper end of the interval; absent with too few cases, or where it is not finite.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub high: Option<f64>,
}
