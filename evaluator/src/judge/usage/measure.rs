//! Time, size and cost of one answer, and the medians of several.

use counterproof_artifact::evaluation::SideUsage;
use counterproof_artifact::{AttemptOutcome, Count, EventBody, Millis, Quantity};

use crate::load::LoadedAnswer;

/// Measures an answer.
pub(crate) fn of_answer(loaded: &LoadedAnswer) -> SideUsage {
    // Attempts that failed are the transport's time, not the agent's.
    let succeeded = loaded.case.attempts.iter().rfind(|attempt| attempt.outcome == AttemptOutcome::Ok);
    let duration = succeeded.and_then(|attempt| attempt.latency_ms.as_ref()).map(Millis::as_f64);
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

/// The medians over the answers of several runs; `None` without an answer. A quantity is left out unless every answer has it,
/// and a cost unless all are in one currency.
pub(crate) fn typical(answers: &[SideUsage]) -> Option<SideUsage> {
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

/// The median of at least one value.
fn median(mut values: Vec<f64>) -> f64 {
    values.sort_unstable_by(f64::total_cmp);
    let middle = values.len() / 2;
    if values.len() % 2 == 1 { values[middle] } else { f64::midpoint(values[middle - 1], values[middle]) }
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
}
