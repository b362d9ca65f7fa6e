//! Expectations on the time, size and cost of an answer: `max_latency_ms`, `max_steps`, `max_tokens` and `max_cost`.

use counterproof_artifact::evaluation::{Judgement, UsageCode};
use counterproof_cases::Expected;

use super::measure::of_answer;
use crate::load::LoadedAnswer;
use crate::messages::usage as text;

/// The most of a quantity that an answer may take.
#[derive(Debug, Clone, Copy)]
pub(in crate::judge) struct UsageLimit {
    /// The key in the cases file.
    pub(in crate::judge) key: &'static str,
    quantity: UsageCode,
    most: f64,
}

/// The limits of a case.
pub(in crate::judge) fn limits(expected: &Expected) -> impl Iterator<Item = UsageLimit> {
    let limit = |key, quantity, most: Option<f64>| most.map(|most| UsageLimit { key, quantity, most });
    let count = |count: Option<u64>| count.map(|count| count as f64);
    [
        limit("max_latency_ms", UsageCode::Duration, expected.max_latency_ms),
        limit("max_steps", UsageCode::Steps, count(expected.max_steps)),
        limit("max_tokens", UsageCode::Tokens, count(expected.max_tokens)),
        limit("max_cost", UsageCode::Cost, expected.max_cost),
    ]
    .into_iter()
    .flatten()
}

impl UsageLimit {
    /// The limit as text for the report.
    pub(in crate::judge) fn expected(self) -> String {
        format!("at most {}", self.amount(self.most, None))
    }

    /// Judges an answer. A quantity that the answer does not report is neither within the limit nor above it.
    pub(in crate::judge) fn judge(self, answer: &LoadedAnswer) -> Judgement {
        let usage = of_answer(answer);
        let Some(actual) = usage.get(self.quantity) else {
            return Judgement::Undecided(format!("the answer does not report its {}", text::quantity(self.quantity)));
        };
        let found = self.amount(actual, usage.currency.as_deref());
        if actual <= self.most {
            return Judgement::Met(found);
        }
        // Rounded amounts can look equal to the limit; then the exact number is needed.
        let is_rounded_away = found == self.amount(self.most, usage.currency.as_deref());
        let exact = if is_rounded_away { format!(" (exactly {actual})") } else { String::new() };
        Judgement::Unmet(format!("{found}{exact}, at most {}", self.amount(self.most, None)))
    }

    fn amount(self, value: f64, currency: Option<&str>) -> String {
        let amount = text::amount(self.quantity, value, currency);
        match self.quantity {
            UsageCode::Steps | UsageCode::Tokens => format!("{amount} {}", text::quantity(self.quantity)),
            UsageCode::Duration | UsageCode::ToolTime | UsageCode::Cost => amount,
        }
    }
}
