//! The budget of a check: a number of steps for the thread that runs it.

use std::borrow::Cow;
use std::cell::Cell;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::slice;

use jsonschema::json::{Array, Json, Node, NodeIdentity, Object, SerdeJson};
use jsonschema::{JsonType, Keyword, ValidationError};
use serde_json::{Map, Number, Value, json, map};

use super::cost::{self, DATA, MAPS, STEPS, for_each_schema};

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
                weights.text = weights.text.max(cost::pattern_steps(pattern));
            }
            let by_pattern = part.get("patternProperties").and_then(Value::as_object);
            let steps = by_pattern.into_iter().flat_map(Map::keys).map(|pattern| cost::pattern_steps(pattern));
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

/// The representation of counting values.
pub(super) struct Counting;

#[derive(Debug, Clone, Copy)]
pub(super) struct CountingNode<'a>(pub(super) &'a Value);

impl Json for Counting {
    type Node<'a> = CountingNode<'a>;
    type PreparedKey = String;
    type StringBuffer = Value;

    fn prepare_key(key: &str) -> String {
        key.to_owned()
    }

    fn with_string_node<T>(buffer: &mut Value, string: &str, run: impl FnOnce(CountingNode<'_>) -> T) -> T {
        SerdeJson::with_string_node(buffer, string, |value| run(CountingNode(value)))
    }
}

impl<'a> Node<'a, Counting> for CountingNode<'a> {
    type Object = CountingObject<'a>;
    type Array = CountingArray<'a>;
    type Number = &'a Number;

    fn as_object(&self) -> Option<CountingObject<'a>> {
        take(1);
        self.0.as_object().map(CountingObject)
    }

    fn as_array(&self) -> Option<CountingArray<'a>> {
        take(1);
        self.0.as_array().map(|items| CountingArray(items))
    }

    fn as_string(&self) -> Option<Cow<'a, str>> {
        let text = self.0.as_str();
        take_for_text(text.map_or(0, str::len));
        text.map(Cow::Borrowed)
    }

    fn as_number(&self) -> Option<&'a Number> {
        take(1);
        self.0.as_number()
    }

    fn as_boolean(&self) -> Option<bool> {
        take(1);
        self.0.as_bool()
    }

    fn is_null(&self) -> bool {
        take(1);
        self.0.is_null()
    }

    fn json_type(&self) -> JsonType {
        take(1);
        self.0.json_type()
    }

    fn string_length(&self) -> Option<u64> {
        take(1 + self.0.as_str().map_or(0, str::len) as u64 / 64);
        self.0.string_length()
    }

    fn equals_value(&self, expected: &Value) -> bool {
        // Both sides are read to the end if they are equal.
        take(1 + if self.0.is_object() || self.0.is_array() { nodes(expected) } else { 0 });
        self.0.equals_value(expected)
    }

    fn to_value(&self) -> Cow<'a, Value> {
        take(1);
        Cow::Borrowed(self.0)
    }

    fn identity(&self) -> Option<NodeIdentity> {
        take(1);
        self.0.identity()
    }
}

#[derive(Debug)]
pub(super) struct CountingObject<'a>(&'a Map<String, Value>);

impl<'a> Object<'a, Counting> for CountingObject<'a> {
    type Node = CountingNode<'a>;
    type MemberName = &'a str;
    type MembersIter = Members<'a>;

    fn len(&self) -> usize {
        self.0.len()
    }

    fn get(&self, key: &String) -> Option<CountingNode<'a>> {
        take(1);
        self.0.get(key).map(CountingNode)
    }

    fn members(&self) -> Members<'a> {
        Members(self.0.iter())
    }
}

/// The members of an object that counts.
#[derive(Debug)]
pub(super) struct Members<'a>(map::Iter<'a>);

impl<'a> Iterator for Members<'a> {
    type Item = (&'a str, CountingNode<'a>);

    fn next(&mut self) -> Option<Self::Item> {
        let member = self.0.next();
        take_for_member(member.map_or(0, |(name, _)| name.len()));
        member.map(|(name, value)| (name.as_str(), CountingNode(value)))
    }
}

#[derive(Debug)]
pub(super) struct CountingArray<'a>(&'a [Value]);

impl<'a> Array<'a, Counting> for CountingArray<'a> {
    type Node = CountingNode<'a>;
    type ElementsIter = Elements<'a>;

    fn len(&self) -> usize {
        self.0.len()
    }

    fn elements(&self) -> Elements<'a> {
        Elements(self.0.iter())
    }

    fn is_unique(&self) -> bool {
        take(self.0.iter().map(nodes).sum());
        Array::<SerdeJson>::is_unique(&self.0)
    }
}

/// The elements of an array that counts.
#[derive(Debug)]
pub(super) struct Elements<'a>(slice::Iter<'a, Value>);

impl<'a> Iterator for Elements<'a> {
    type Item = CountingNode<'a>;

    fn next(&mut self) -> Option<Self::Item> {
        take(1);
        self.0.next().map(CountingNode)
    }
}

/// The counting keyword. It accepts every value.
pub(super) struct CountingKeyword;

impl<'i> Keyword<'i, Counting> for CountingKeyword {
    fn validate(&self, _: CountingNode<'i>) -> Result<(), ValidationError<'i>> {
        take(1);
        Ok(())
    }

    fn is_valid(&self, _: CountingNode<'i>) -> bool {
        take(1);
        true
    }
}

/// Keywords whose value is a schema for the same value.
const CONDITIONS: [&str; 4] = ["not", "if", "then", "else"];

/// Adds the counting keyword to a schema and to all schemas in it.
pub(super) fn add_steps(schema: &mut Value) {
    let Value::Object(map) = schema else { return };
    for (keyword, value) in map.iter_mut() {
        match (keyword.as_str(), value) {
            (keyword, _) if DATA.contains(&keyword) => {}
            (keyword, Value::Object(named)) if MAPS.contains(&keyword) => {
                // The report names a property that must not be there, so these stay as they are.
                let keep_false = matches!(keyword, "properties" | "patternProperties");
                for schema in named.values_mut().filter(|schema| !(keep_false && **schema == Value::Bool(false))) {
                    add_steps_to_any(schema);
                }
            }
            (_, Value::Array(list)) => list.iter_mut().for_each(add_steps_to_any),
            (keyword, value) if CONDITIONS.contains(&keyword) => add_steps_to_any(value),
            // Unknown keywords too: a reference can point into them.
            (_, value) => add_steps(value),
        }
    }
    map.insert(STEPS.to_owned(), Value::Bool(true));
}

/// Adds the counting keyword to a schema that may be a boolean. References can multiply these too.
fn add_steps_to_any(schema: &mut Value) {
    match schema {
        Value::Bool(true) => *schema = json!({}),
        Value::Bool(false) => *schema = json!({"not": {}}),
        _ => {}
    }
    add_steps(schema);
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
