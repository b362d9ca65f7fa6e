//! The budget of a check: a number of steps for the thread that runs it, taken by the values that the validator reads.

use std::borrow::Cow;
use std::cell::Cell;
use std::iter::Map as Mapped;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::slice;

use jsonschema::json::{Array, Json, Node, NodeIdentity, Object, SerdeJson};
use jsonschema::{JsonType, Keyword, ValidationError};
use serde_json::{Map, Number, Value, map};

/// The steps that are left, and the steps that depend on the schema.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Budget {
    pub(super) steps: u64,
    /// The steps of the most expensive pattern, for each string and 64 bytes of it.
    pub(super) text: u64,
    /// The steps of the most expensive `patternProperties`, for each member of an object and 64 bytes of its name.
    pub(super) member: u64,
}

thread_local! {
    // The validator passes no state to values, and runs on one thread.
    static BUDGET: Cell<Budget> = Cell::new(Budget::default());
}

/// The payload of the unwinding when no steps are left.
struct NoStepsLeft;

impl Budget {
    /// Runs a validator. Returns `None` if the steps do not suffice.
    pub(super) fn run<T>(self, validate: impl FnOnce() -> T) -> Option<T> {
        // Set for each run: a check that ran out of steps leaves its rest on the thread.
        BUDGET.set(self);
        // The validator has no way to stop, so a step unwinds through it. Its state is local to the call.
        match catch_unwind(AssertUnwindSafe(validate)) {
            Ok(result) => Some(result),
            Err(payload) if payload.is::<NoStepsLeft>() => None,
            // A panic is a defect of the validator and must not look like an expensive schema.
            Err(payload) => resume_unwind(payload),
        }
    }
}

/// Takes steps from the budget, and unwinds if it is used up.
fn take(steps: u64) {
    let budget = BUDGET.get();
    match budget.steps.checked_sub(steps) {
        Some(steps) => BUDGET.set(Budget { steps, ..budget }),
        // Not a panic: the hook for panics is not called, and nothing is printed.
        None => resume_unwind(Box::new(NoStepsLeft)),
    }
}

/// Takes the steps of a text that patterns of this weight may be matched against.
fn take_for_text(bytes: usize, weight: u64) {
    take((1 + bytes as u64 / 64).saturating_mul(weight));
}

/// Counts the values in a value.
fn nodes(value: &Value) -> u64 {
    match value {
        Value::Array(items) => 1 + items.iter().map(nodes).sum::<u64>(),
        Value::Object(members) => 1 + members.values().map(nodes).sum::<u64>(),
        _ => 1,
    }
}

/// The representation of values that take steps. The validator runs its custom keywords last, so a keyword alone would miss the
/// work of all schemas that fail.
pub(super) struct Counting;

/// A value, or the members or elements of one, whose accesses take steps.
#[derive(Debug)]
pub(super) struct Counted<'a, T: ?Sized = Value>(pub(super) &'a T);

impl<T: ?Sized> Clone for Counted<'_, T> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<T: ?Sized> Copy for Counted<'_, T> {}

impl<'a> Counted<'a> {
    fn take(self, steps: u64) -> &'a Value {
        take(steps);
        self.0
    }
}

impl Json for Counting {
    type Node<'a> = Counted<'a>;
    type PreparedKey = String;
    type StringBuffer = Value;

    fn prepare_key(key: &str) -> String {
        key.to_owned()
    }

    fn with_string_node<T>(buffer: &mut Value, string: &str, run: impl FnOnce(Counted<'_>) -> T) -> T {
        SerdeJson::with_string_node(buffer, string, |value| run(Counted(value)))
    }
}

impl<'a> Node<'a, Counting> for Counted<'a> {
    type Object = Counted<'a, Map<String, Value>>;
    type Array = Counted<'a, [Value]>;
    type Number = &'a Number;

    fn as_object(&self) -> Option<Self::Object> {
        self.take(1).as_object().map(Counted)
    }

    fn as_array(&self) -> Option<Self::Array> {
        self.take(1).as_array().map(|items| Counted(items.as_slice()))
    }

    fn as_string(&self) -> Option<Cow<'a, str>> {
        let text = self.0.as_str();
        // Any pattern of the schema may be matched against this text, so it costs as much as the most expensive one.
        take_for_text(text.map_or(0, str::len), BUDGET.get().text.max(1));
        text.map(Cow::Borrowed)
    }

    fn as_number(&self) -> Option<&'a Number> {
        self.take(1).as_number()
    }

    fn as_boolean(&self) -> Option<bool> {
        self.take(1).as_bool()
    }

    fn is_null(&self) -> bool {
        self.take(1).is_null()
    }

    fn json_type(&self) -> JsonType {
        self.take(1).json_type()
    }

    fn string_length(&self) -> Option<u64> {
        self.take(1 + self.0.as_str().map_or(0, str::len) as u64 / 64).string_length()
    }

    fn equals_value(&self, expected: &Value) -> bool {
        // Both sides are read to the end if they are equal.
        let steps = if self.0.is_object() || self.0.is_array() { 1 + nodes(expected) } else { 1 };
        self.take(steps).equals_value(expected)
    }

    fn to_value(&self) -> Cow<'a, Value> {
        Cow::Borrowed(self.take(1))
    }

    fn identity(&self) -> Option<NodeIdentity> {
        self.take(1).identity()
    }
}

type Members<'a> = Mapped<map::Iter<'a>, fn((&'a String, &'a Value)) -> (&'a str, Counted<'a>)>;

impl<'a> Object<'a, Counting> for Counted<'a, Map<String, Value>> {
    type Node = Counted<'a>;
    type MemberName = &'a str;
    type MembersIter = Members<'a>;

    fn len(&self) -> usize {
        self.0.len()
    }

    fn get(&self, key: &String) -> Option<Counted<'a>> {
        take(1);
        self.0.get(key).map(Counted)
    }

    fn members(&self) -> Members<'a> {
        self.0.iter().map(|(name, value)| {
            // `patternProperties` matches each name against all of its patterns.
            take_for_text(name.len(), BUDGET.get().member.saturating_add(1));
            (name.as_str(), Counted(value))
        })
    }
}

impl<'a> Array<'a, Counting> for Counted<'a, [Value]> {
    type Node = Counted<'a>;
    type ElementsIter = Mapped<slice::Iter<'a, Value>, fn(&'a Value) -> Counted<'a>>;

    fn len(&self) -> usize {
        self.0.len()
    }

    fn elements(&self) -> Self::ElementsIter {
        self.0.iter().map(|item| {
            take(1);
            Counted(item)
        })
    }

    fn is_unique(&self) -> bool {
        // Comparing elements reads everything below them.
        take(self.0.iter().map(nodes).sum());
        Array::<SerdeJson>::is_unique(&self.0)
    }
}

/// The counting keyword. It accepts every value.
pub(super) struct CountingKeyword;

impl<'i> Keyword<'i, Counting> for CountingKeyword {
    fn validate(&self, _: Counted<'i>) -> Result<(), ValidationError<'i>> {
        take(1);
        Ok(())
    }

    fn is_valid(&self, _: Counted<'i>) -> bool {
        take(1);
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_largest_weights_exceed_every_budget() {
        let budget = Budget { steps: 1_000, text: u64::MAX, member: u64::MAX };
        for bytes in [0, 1_000] {
            let value = serde_json::json!({ "a".repeat(bytes): "a".repeat(bytes) });
            let object = Counted(&value);
            assert!(budget.run(|| object.as_object().unwrap().members().count()).is_none());
            assert!(budget.run(|| Counted(&value["a".repeat(bytes)]).as_string()).is_none());
        }
    }
}
