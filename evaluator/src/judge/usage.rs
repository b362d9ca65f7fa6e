//! Time, size and cost of one answer, the limits that an expectation sets to them, and repetitions of one call.

use std::sync::atomic::{AtomicUsize, Ordering};

use counterproof_artifact::evaluation::{Judgement, SideUsage, UsageCode};
use counterproof_artifact::{Attempt, AttemptOutcome, Count, EventBody, Millis, Quantity};
use counterproof_cases::Expected;
use serde::{Deserialize, Serialize};

use crate::load::LoadedAnswer;
use crate::messages::usage as text;
use crate::values::{key_of, object_hash, text_hash};

/// The time, size and cost of one answer.
pub fn of_answer(loaded: &LoadedAnswer) -> SideUsage {
    // Attempts that failed are the transport's time, not the agent's.
    let mut succeeded = loaded.case.attempts.iter().rev().filter(|attempt| attempt.outcome == AttemptOutcome::Ok);
    let latency = |attempt: &Attempt| attempt.latency_ms.as_ref().map(Millis::as_f64);
    let last = succeeded.next();
    // Each request of a conversation has an attempt that succeeded.
    let is_conversation = last.is_some_and(|attempt| attempt.extra.contains_key("request"));
    let earlier = succeeded.filter(|_| is_conversation).filter_map(latency).sum::<f64>();
    let duration = last.and_then(latency).map(|latency| latency + earlier);
    let (mut calls, mut retrievals, mut results, mut tool_ms) = (0_u32, 0_u32, 0_u32, 0.0);
    for event in &loaded.answer.events {
        match &event.body {
            EventBody::ToolCall(_) => calls += 1,
            EventBody::Retrieval(_) => retrievals += 1,
            EventBody::ToolResult(result) => {
                results += 1;
                tool_ms += result.latency_ms.as_f64();
            }
            EventBody::FinalOutput(_) | EventBody::Unknown { .. } => {}
        }
    }
    let usage = loaded.case.usage.as_ref();
    let tokens = |count: Option<Count>| count.map(|count| Quantity::from(count.get() as f64));
    SideUsage {
        duration_ms: duration.map(Quantity::from),
        steps: f64::from(calls + retrievals).into(),
        // Protocols whose answers end with the calls report no results: their tool time is unknown, not 0.
        tool_ms: (results > 0 || calls == 0).then(|| tool_ms.into()),
        input_tokens: usage.and_then(|usage| tokens(usage.input_tokens)),
        output_tokens: usage.and_then(|usage| tokens(usage.output_tokens)),
        cached_tokens: usage.and_then(|usage| tokens(usage.cached_tokens)),
        cost: usage.and_then(|usage| usage.cost).map(Quantity::from),
        currency: usage.and_then(|usage| usage.currency.clone()),
    }
}

/// The medians over the answers of several runs; `None` without an answer.
pub(crate) fn typical(answers: &[SideUsage]) -> Option<SideUsage> {
    // A quantity is left out unless every answer has it, and a cost unless all are in one currency.
    let [first, others @ ..] = answers else { return None };
    if others.is_empty() {
        return Some(first.clone());
    }
    let median_of = |quantity: fn(&SideUsage) -> Option<Quantity>| {
        let values = answers.iter().map(|answer| quantity(answer).map(Quantity::value));
        values.collect::<Option<Vec<_>>>().map(|values| Quantity::from(median(values)))
    };
    let is_one_currency = others.iter().all(|answer| answer.currency == first.currency);
    Some(SideUsage {
        duration_ms: median_of(|answer| answer.duration_ms),
        steps: median_of(|answer| Some(answer.steps)).unwrap_or_default(),
        tool_ms: median_of(|answer| answer.tool_ms),
        input_tokens: median_of(|answer| answer.input_tokens),
        output_tokens: median_of(|answer| answer.output_tokens),
        cached_tokens: median_of(|answer| answer.cached_tokens),
        cost: median_of(|answer| answer.cost).filter(|_| is_one_currency),
        currency: first.currency.clone().filter(|_| is_one_currency),
    })
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_unstable_by(f64::total_cmp);
    let middle = values.len() / 2;
    if values.len() % 2 == 1 { values[middle] } else { f64::midpoint(values[middle - 1], values[middle]) }
}

/// The most of a quantity that an answer may take.
#[derive(Debug, Clone, Copy)]
pub(in crate::judge) struct UsageLimit {
    pub(in crate::judge) key: &'static str,
    quantity: UsageCode,
    most: f64,
}

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
    pub(in crate::judge) fn expected(self) -> String {
        format!("at most {}", self.amount(self.most, None))
    }

    pub(in crate::judge) fn judge(self, answer: &LoadedAnswer) -> Judgement {
        // A quantity that the answer does not report is neither within the limit nor above it.
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

/// Repetitions up to this length are never reported: one call and two retries, the default of common API clients.
const RETRIES: usize = 3;

/// The same call, several times in a row.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Repetition {
    pub(crate) times: usize,
    /// The event of the first of these calls.
    pub(crate) first: usize,
}

/// Returns the longest repetition of an answer, the first of several; `None` without a call.
pub(crate) fn longest(loaded: &LoadedAnswer) -> Option<Repetition> {
    // Another call or a retrieval ends a repetition; results and messages do not.
    let mut longest: Option<Repetition> = None;
    let mut current: Option<(u64, Repetition)> = None;
    for (index, event) in loaded.answer.events.iter().enumerate() {
        let call = match &event.body {
            EventBody::ToolCall(call) => key_of((text_hash(&call.tool), object_hash(&call.args))),
            EventBody::Retrieval(_) => {
                current = None;
                continue;
            }
            EventBody::ToolResult(_) | EventBody::FinalOutput(_) | EventBody::Unknown { .. } => continue,
        };
        let repetition = match current {
            Some((before, repetition)) if before == call => Repetition { times: repetition.times + 1, ..repetition },
            _ => Repetition { times: 1, first: index },
        };
        current = Some((call, repetition));
        if longest.is_none_or(|longest| repetition.times > longest.times) {
            longest = Some(repetition);
        }
    }
    longest
}

/// The longest repetition in any answer of the baseline. Threads can share it; the result does not depend on the order.
#[derive(Debug, Default, Serialize, Deserialize)]
pub(crate) struct BaselineRepetition(AtomicUsize);

impl BaselineRepetition {
    pub(crate) fn new(times: usize) -> Self {
        Self(AtomicUsize::new(times))
    }

    pub(crate) fn note(&self, baseline: &LoadedAnswer) {
        if let Some(repetition) = longest(baseline) {
            self.0.fetch_max(repetition.times, Ordering::Relaxed);
        }
    }

    /// Adds what another shard of the comparison noted.
    pub(crate) fn merge(&self, other: &Self) {
        self.0.fetch_max(other.times(), Ordering::Relaxed);
    }

    pub(crate) fn times(&self) -> usize {
        self.0.load(Ordering::Relaxed)
    }
}

/// Whether new repeats a call far more often than baseline ever did: more than twice as often, and beyond usual retries.
pub(crate) fn is_loop(times: usize, baseline: usize) -> bool {
    // If each repetition is repeated once more with the same probability, and baseline's longest of n cases has m calls, then
    // the probability that any of n cases exceeds 2m is about 1/n: a comparison of equal agents rarely reports one.
    times > RETRIES && times > 2 * baseline
}

#[cfg(test)]
mod tests {
    use super::*;

    fn side(steps: f64, cost: Option<f64>, currency: &str) -> SideUsage {
        SideUsage {
            steps: steps.into(),
            cost: cost.map(Quantity::from),
            currency: Some(currency.to_owned()),
            ..SideUsage::default()
        }
    }

    #[test]
    fn several_runs_have_the_medians_of_what_all_of_them_report() {
        assert_eq!(typical(&[]), None);
        let one = side(3.0, Some(0.5), "USD");
        assert_eq!(typical(std::slice::from_ref(&one)), Some(one.clone()));
        let all = [one.clone(), side(90.0, Some(0.7), "USD"), side(4.0, Some(0.1), "USD")];
        assert_eq!(typical(&all), Some(side(4.0, Some(0.5), "USD")));
        assert_eq!(typical(&all[..2]).unwrap().steps, Quantity::from(46.5));
        assert_eq!(typical(&[one.clone(), side(3.0, None, "USD")]).unwrap().cost, None);
        assert_eq!(typical(&[one, side(3.0, Some(0.5), "EUR")]).unwrap().cost, None);
    }

    #[test]
    fn a_loop_is_more_than_retries_and_more_than_twice_what_baseline_did() {
        let loops = |times, baseline| is_loop(times, baseline);
        assert_eq!([loops(3, 1), loops(4, 1), loops(4, 0), loops(4, 2), loops(5, 2)], [false, true, true, false, true]);
    }
}
