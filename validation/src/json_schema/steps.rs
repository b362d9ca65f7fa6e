//! The budget of a check: a number of steps for the thread that runs it.

use std::cell::Cell;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};

use serde_json::{Map, Value};

use super::counted::for_each_schema;
use super::patterns;

/// The steps that depend on the schema.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Weights {
    /// The steps of the most expensive pattern, for each string and 64 bytes of it.
    text: u64,
    /// The steps of the most expensive `patternProperties`, for each member of an object and 64 bytes of its name.
    member: u64,
}

thread_local! {
    /// The steps that are left. A validator runs on one thread.
    static LEFT: Cell<u64> = const { Cell::new(0) };
    static WEIGHTS: Cell<Weights> = const { Cell::new(Weights { text: 0, member: 0 }) };
}

/// The payload of the unwinding when no steps are left.
struct NoStepsLeft;

/// Runs a validator with a number of steps. Returns `None` if they do not suffice.
pub(super) fn within<T>(steps: u64, weights: Weights, run: impl FnOnce() -> T) -> Option<T> {
    LEFT.set(steps);
    WEIGHTS.set(weights);
    // The validator has no way to stop, so a step unwinds through it. Its state is local to the call.
    match catch_unwind(AssertUnwindSafe(run)) {
        Ok(result) => Some(result),
        Err(payload) if payload.is::<NoStepsLeft>() => None,
        Err(payload) => resume_unwind(payload),
    }
}

/// Takes steps from the budget, and unwinds if it is used up.
pub(super) fn take(steps: u64) {
    match LEFT.get().checked_sub(steps) {
        Some(left) => LEFT.set(left),
        // Not a panic: the hook for panics is not called, and nothing is printed.
        None => resume_unwind(Box::new(NoStepsLeft)),
    }
}

/// Takes the steps of reading a text, which a pattern may be matched against.
pub(super) fn take_for_text(bytes: usize) {
    take((1 + bytes as u64 / 64).saturating_mul(WEIGHTS.get().text.max(1)));
}

/// Takes the steps of visiting a member of an object with a name of this length, which patterns may be matched against.
pub(super) fn take_for_member(name_bytes: usize) {
    take((1 + name_bytes as u64 / 64).saturating_mul(1u64.saturating_add(WEIGHTS.get().member)));
}

impl Weights {
    /// Computes the weights of a schema.
    pub(super) fn new(schema: &Value) -> Self {
        let mut weights = Self::default();
        for_each_schema(schema, &mut |part| {
            if let Some(pattern) = part.get("pattern").and_then(Value::as_str) {
                weights.text = weights.text.max(patterns::steps(pattern));
            }
            let by_pattern = part.get("patternProperties").and_then(Value::as_object);
            let steps = by_pattern.into_iter().flat_map(Map::keys).map(|pattern| patterns::steps(pattern));
            weights.member = weights.member.max(steps.fold(0, u64::saturating_add));
        });
        weights
    }
}

/// Counts the values in a value.
pub(super) fn nodes(value: &Value) -> u64 {
    match value {
        Value::Array(items) => 1 + items.iter().map(nodes).sum::<u64>(),
        Value::Object(members) => 1 + members.values().map(nodes).sum::<u64>(),
        _ => 1,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_largest_weights_exceed_every_budget() {
        let weights = Weights { text: u64::MAX, member: u64::MAX };
        for name_bytes in [0, 1_000] {
            assert!(within(1_000, weights, || take_for_member(name_bytes)).is_none());
            assert!(within(1_000, weights, || take_for_text(name_bytes)).is_none());
        }
    }
}
