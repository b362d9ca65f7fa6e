//! Repetitions of one call: the same tool with the same arguments, several times in a row. An agent that loops repeats a call
//! far more often than a known-good version ever does.

use std::sync::atomic::{AtomicUsize, Ordering};

use counterproof_artifact::EventBody;

use crate::load::LoadedAnswer;
use crate::values::{key_of, object_hash, text_hash};

/// Repetitions up to this length are never reported: one call and two retries, the default of common API clients.
const RETRIES: usize = 3;

/// The same call, several times in a row.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Repetition {
    /// How many times the call was made.
    pub(crate) times: usize,
    /// The event of the first of these calls.
    pub(crate) first: usize,
}

/// Returns the longest repetition of an answer, the first of several; `None` without a call. Another call or a retrieval ends
/// a repetition; results and messages do not.
pub(crate) fn longest(loaded: &LoadedAnswer) -> Option<Repetition> {
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
#[derive(Debug, Default)]
pub(crate) struct BaselineRepetition(AtomicUsize);

impl BaselineRepetition {
    /// Starts with the length of a known repetition.
    pub(crate) fn new(times: usize) -> Self {
        Self(AtomicUsize::new(times))
    }

    /// Records an answer of the baseline.
    pub(crate) fn note(&self, baseline: &LoadedAnswer) {
        if let Some(repetition) = longest(baseline) {
            self.0.fetch_max(repetition.times, Ordering::Relaxed);
        }
    }

    /// The length of the longest repetition that was recorded.
    pub(crate) fn times(&self) -> usize {
        self.0.load(Ordering::Relaxed)
    }
}

/// Whether new repeats a call far more often than baseline ever did: more than twice as often, and beyond usual retries. If
/// each repetition is repeated once more with the same probability, and baseline's longest of n cases has m calls, then the
/// probability that any of n cases exceeds 2m is about 1/n: a comparison of equal agents rarely reports one.
pub(crate) fn is_loop(times: usize, baseline: usize) -> bool {
    times > RETRIES && times > 2 * baseline
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_loop_is_more_than_retries_and_more_than_twice_what_baseline_did() {
        let loops = |times, baseline| is_loop(times, baseline);
        assert_eq!([loops(3, 1), loops(4, 1), loops(4, 0), loops(4, 2), loops(5, 2)], [false, true, true, false, true]);
    }
}
