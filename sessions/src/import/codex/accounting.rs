//! What counts once: the tokens of a call that a thread repeats, and lines that a fork copies from its parent.

use jiff::Timestamp;
use serde_json::Value;

use crate::protocol::token_count;

/// The numbers of a model call, by which it is recognized.
pub(super) type Tokens = [Option<u64>; 5];

/// Returns input, cached input, output, reasoning and all tokens.
pub(super) fn tokens(usage: Option<&Value>) -> Tokens {
    let number = |name: &str| usage.and_then(|usage| token_count(usage.get(name)?));
    ["input_tokens", "cached_input_tokens", "output_tokens", "reasoning_output_tokens", "total_tokens"].map(number)
}

pub(super) fn difference(total: Tokens, before: Option<Tokens>) -> Tokens {
    let mut tokens = total;
    for (tokens, before) in tokens.iter_mut().zip(before.unwrap_or_default()) {
        *tokens = tokens.map(|tokens| tokens.saturating_sub(before.unwrap_or(0)));
    }
    tokens
}

pub(super) fn key_of(tokens: Tokens) -> String {
    tokens.map(|number| number.map_or_else(|| "-".to_owned(), |number| number.to_string())).join(",")
}

/// How copies of the parent's lines are recognized if the parent is not known.
#[derive(Default)]
pub(super) struct CopyRule {
    /// When the fork was made, and the time of its first line.
    pub(super) forked_at: Option<Timestamp>,
    pub(super) header_at: Option<Timestamp>,
    /// The time in the id of the thread.
    pub(super) thread: Option<u64>,
    /// The number of the first line that is not a copy, if the first line states it.
    pub(super) first_ordinal: Option<u64>,
}

impl CopyRule {
    pub(super) fn is_copy(&self, line: &Value, stated: Option<Timestamp>) -> bool {
        if let (Some(first), Some(ordinal)) = (self.first_ordinal, line.get("ordinal").and_then(Value::as_u64)) {
            return ordinal < first;
        }
        // Turns have ids of the time at which they began.
        let turn = line.pointer("/payload/turn_id").and_then(Value::as_str).and_then(uuid_time);
        if let (Some(turn), Some(thread)) = (turn, self.thread) {
            return turn < thread;
        }
        // Copies have their own time, or are written at once after the first line.
        let is_older = stated.is_some() && stated <= self.forked_at;
        let is_burst = stated.zip(self.header_at).is_some_and(|(stated, header)| {
            stated.as_millisecond().saturating_sub(header.as_millisecond()) < COPY_BURST_MS
        });
        is_older || is_burst
    }
}

/// How long a program takes to write the copies of a fork at most.
const COPY_BURST_MS: i64 = 1000;

/// Returns the milliseconds in a UUID of version 7.
pub(super) fn uuid_time(id: &str) -> Option<u64> {
    let id = uuid::Uuid::try_parse(id).ok()?;
    (id.get_version_num() == 7).then(|| u64::try_from(id.as_u128() >> 80).ok()).flatten()
}
