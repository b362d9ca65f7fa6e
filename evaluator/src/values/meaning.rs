//! JSON values by meaning: key order never matters, and `50` equals `50.0`. Equality, hashes, a total order and a distance, all of
//! which agree with each other.

use std::cmp::Ordering;
use std::collections::{HashMap, HashSet};
use std::hash::{BuildHasher, BuildHasherDefault, DefaultHasher, Hash, Hasher, RandomState};
use std::sync::OnceLock;

use serde_json::{Map, Number, Value};

/// Whole floats below this are compared as whole numbers. `i128` holds them exactly.
const WHOLE_FLOATS: f64 = 1e36;

pub(crate) const fn type_name(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "boolean",
        Value::Number(_) => "number",
        Value::String(_) => "string",
        Value::Array(_) => "array",
        Value::Object(_) => "object",
    }
}

/// True if two values are equal in meaning.
pub fn same(a: &Value, b: &Value) -> bool {
    match (a, b) {
        (Value::Number(a), Value::Number(b)) => number_key(a) == number_key(b),
        (Value::Array(a), Value::Array(b)) => a.len() == b.len() && a.iter().zip(b).all(|(a, b)| same(a, b)),
        (Value::Object(a), Value::Object(b)) => same_object(a, b),
        _ => a == b,
    }
}

pub(crate) fn same_object(a: &Map<String, Value>, b: &Map<String, Value>) -> bool {
    // The keys are nearly always in the same order, so that no lookup is needed.
    let is_same = |((key, value), (other_key, other)): ((&String, &Value), (&String, &Value))| {
        let other = if key == other_key { Some(other) } else { b.get(key) };
        other.is_some_and(|other| same(value, other))
    };
    a.len() == b.len() && a.iter().zip(b).all(is_same)
}

/// A number as a key. Whole numbers are exact, because floats cannot tell all whole numbers beyond 2^53 apart.
#[derive(PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) enum NumberKey {
    Whole(i128),
    Fraction(u64),
}

pub(super) fn number_key(number: &Number) -> NumberKey {
    if let Some(whole) = number.as_i128() {
        return NumberKey::Whole(whole);
    }
    let float = number.as_f64().unwrap_or(f64::MAX);
    if float.fract() == 0.0 && float.abs() < WHOLE_FLOATS {
        #[expect(clippy::cast_possible_truncation, reason = "whole and in range")]
        return NumberKey::Whole(float as i128);
    }
    // By bits, so that the key can be hashed and ordered. −0.0 and NaN cannot occur: zero is whole, and JSON has no NaN.
    NumberKey::Fraction(float.to_bits())
}

/// Returns a hash that is equal for values that are equal in meaning, within one process.
///
/// Each process has its own key, or the comparison has one, so that no agent can construct colliding values.
pub(crate) fn meaning_hash(value: &Value) -> u64 {
    let mut hasher = keyed();
    hash_meaning(value, &mut hasher);
    hasher.finish()
}

/// Hashes a key made of several parts, such as other hashes, with the key of this process.
pub(crate) fn key_of(parts: impl Hash) -> u64 {
    let mut hasher = keyed();
    parts.hash(&mut hasher);
    hasher.finish()
}

/// Returns the [`meaning_hash`] of a text, without building a value.
pub(crate) fn text_hash(text: &str) -> u64 {
    key_of((Tag::String, text))
}

/// Returns the [`meaning_hash`] of an object, without building a value.
pub(crate) fn object_hash(fields: &Map<String, Value>) -> u64 {
    let mut hasher = keyed();
    hash_object(fields, &mut hasher);
    hasher.finish()
}

/// A hasher that has read the key of this process.
static KEYED: OnceLock<DefaultHasher> = OnceLock::new();

fn keyed() -> DefaultHasher {
    KEYED.get_or_init(|| RandomState::new().build_hasher()).clone()
}

/// Sets the key of this process, so that processes with the same key have the same hashes. Without effect after the first hash.
pub(crate) fn set_key(key: &[u8]) {
    let mut hasher = DefaultHasher::new();
    hasher.write(key);
    let _ = KEYED.set(hasher);
}

/// The type of a value. It is hashed first, so that values of different types do not collide.
#[derive(Hash)]
enum Tag {
    Null,
    Bool,
    Number,
    String,
    Array,
    Object,
}

fn hash_meaning(value: &Value, hasher: &mut DefaultHasher) {
    match value {
        Value::Null => Tag::Null.hash(hasher),
        Value::Bool(flag) => (Tag::Bool, flag).hash(hasher),
        Value::String(text) => (Tag::String, text).hash(hasher),
        Value::Number(number) => (Tag::Number, number_key(number)).hash(hasher),
        Value::Array(items) => {
            (Tag::Array, items.len()).hash(hasher);
            // The length precedes the items, so that `[[a], b]` and `[[a, b]]` differ.
            for item in items {
                hash_meaning(item, hasher);
            }
        }
        Value::Object(fields) => hash_object(fields, hasher),
    }
}

fn hash_object(fields: &Map<String, Value>, hasher: &mut DefaultHasher) {
    let field = |(key, value): (&String, &Value)| {
        let mut field = keyed();
        key.hash(&mut field);
        hash_meaning(value, &mut field);
        field.finish()
    };
    // A sum, because the order of the fields must not matter, and XOR would let two equal fields cancel out.
    (Tag::Object, fields.iter().map(field).fold(0, u64::wrapping_add)).hash(hasher);
}

pub(crate) type HashedMap<V> = HashMap<u64, V, BuildHasherDefault<AsIs>>;

pub(crate) type HashedSet = HashSet<u64, BuildHasherDefault<AsIs>>;

#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct AsIs(u64);

impl Hasher for AsIs {
    fn write(&mut self, bytes: &[u8]) {
        // Required by the trait. Keys are `u64`, so only `write_u64` runs.
        for byte in bytes {
            self.0 = self.0.rotate_left(8) ^ u64::from(*byte);
        }
    }

    fn write_u64(&mut self, hash: u64) {
        self.0 = hash;
    }

    fn finish(&self) -> u64 {
        self.0
    }
}

pub(crate) fn compare_values(a: &Value, b: &Value) -> Ordering {
    match (a, b) {
        (Value::Bool(a), Value::Bool(b)) => a.cmp(b),
        (Value::Number(a), Value::Number(b)) => number_key(a).cmp(&number_key(b)),
        (Value::String(a), Value::String(b)) => a.cmp(b),
        (Value::Array(a), Value::Array(b)) => compare_lists(a, b, compare_values),
        (Value::Object(a), Value::Object(b)) => compare_objects(a, b),
        _ => rank(a).cmp(&rank(b)),
    }
}

/// Compares two lists by their first elements that differ, then by length.
pub(crate) fn compare_lists<T>(a: &[T], b: &[T], order: impl Fn(&T, &T) -> Ordering) -> Ordering {
    let differing = a.iter().zip(b).map(|(a, b)| order(a, b)).find(|order| order.is_ne());
    differing.unwrap_or_else(|| a.len().cmp(&b.len()))
}

fn compare_objects(a: &Map<String, Value>, b: &Map<String, Value>) -> Ordering {
    let (left, right) = (sorted_keys(a), sorted_keys(b));
    let values = || {
        let pairs = left.iter().filter_map(|key| Some(compare_values(a.get(*key)?, b.get(*key)?)));
        pairs.into_iter().find(|order| order.is_ne())
    };
    // Keys decide first, in sorted order, because key order has no meaning.
    left.cmp(&right).then_with(|| values().unwrap_or(Ordering::Equal))
}

fn sorted_keys(fields: &Map<String, Value>) -> Vec<&String> {
    let mut keys: Vec<_> = fields.keys().collect();
    keys.sort_unstable();
    keys
}

const fn rank(value: &Value) -> u8 {
    match value {
        Value::Null => 0,
        Value::Bool(_) => 1,
        Value::Number(_) => 2,
        Value::String(_) => 3,
        Value::Array(_) => 4,
        Value::Object(_) => 5,
    }
}

/// The cost of a pair or of an element, in ten-thousandths of the cost of leaving out one element.
pub(crate) type Cost = u64;

/// The leaves of a value, hashed and counted once for many comparisons.
#[derive(Debug, Clone, Default)]
pub(crate) struct Leaves {
    counts: HashedMap<u32>,
    total: u32,
}

impl Leaves {
    pub(crate) fn from_value(value: &Value) -> Self {
        let mut leaves = Leaves::default();
        leaves.take(value, 0);
        leaves
    }

    fn take_fields(&mut self, fields: &Map<String, Value>, path: u64) {
        for (key, value) in fields {
            self.take(value, mix(path, text_hash(key)));
        }
    }

    fn take(&mut self, value: &Value, path: u64) {
        match value {
            Value::Object(fields) if !fields.is_empty() => self.take_fields(fields, path),
            Value::Array(items) if !items.is_empty() => items.iter().for_each(|item| self.take(item, mix(path, 1))),
            _ => {
                // Includes empty objects and arrays, so that removing one has a cost.
                *self.counts.entry(mix(path, meaning_hash(value))).or_default() += 1;
                self.total += 1;
            }
        }
    }

    /// Returns the cost of a pair by its distance: 0 for equal leaves, `most` if none are in common.
    pub(crate) fn cost(&self, other: &Leaves, most: Cost) -> Cost {
        let both = Cost::from(self.total + other.total);
        let common = Cost::from(self.common(other));
        // Jaccard for multisets: |A ∪ B| = |A| + |B| − |A ∩ B|. Two empty values have no leaves and cost 0.
        (both - 2 * common).saturating_mul(most).checked_div(both - common).unwrap_or(0)
    }

    fn common(&self, other: &Leaves) -> u32 {
        // The smaller side drives the loop, because one side can be much larger.
        let (few, many) = if self.counts.len() <= other.counts.len() { (self, other) } else { (other, self) };
        few.counts.iter().map(|(leaf, count)| many.counts.get(leaf).map_or(0, |theirs| *count.min(theirs))).sum()
    }

    pub(crate) const fn count(&self) -> usize {
        self.total as usize
    }
}

pub(crate) fn leaves_below(object: &Map<String, Value>) -> usize {
    object.values().map(leaves_of).sum()
}

pub(crate) fn leaves_of(value: &Value) -> usize {
    match value {
        // An empty object or list is itself a leaf.
        Value::Object(fields) if !fields.is_empty() => leaves_below(fields),
        Value::Array(items) if !items.is_empty() => items.iter().map(leaves_of).sum(),
        _ => 1,
    }
}

/// Combines two hashes so that their order matters.
fn mix(path: u64, next: u64) -> u64 {
    (path.rotate_left(5) ^ next).wrapping_mul(0x9e37_79b9_7f4a_7c15)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn key_order_and_number_form_do_not_matter() {
        let (a, b) = (json!({"x": 50, "y": [1.0]}), json!({"y": [1], "x": 50.0}));
        assert_eq!(meaning_hash(&a), meaning_hash(&b));
        assert_ne!(meaning_hash(&json!([[1], 2])), meaning_hash(&json!([[1, 2]])));
    }

    #[test]
    fn a_hash_without_a_value_equals_the_hash_of_the_value() {
        let value = json!({"f": ["x", "y"], "e": {"d": null}, "b": [1.0, "x"], "a": "t"});
        assert_eq!(object_hash(value.as_object().unwrap()), meaning_hash(&value));
        assert_eq!(text_hash("t"), meaning_hash(&json!("t")));
    }

    #[test]
    fn values_are_equal_in_it_where_they_mean_the_same() {
        let (a, b) = (json!({"x": [1, {"y": 2.0}], "z": null}), json!({"z": null, "x": [1.0, {"y": 2}]}));
        assert_eq!(compare_values(&a, &b), Ordering::Equal);
        for (a, b) in [(json!([1]), json!([2])), (json!({"a": 1}), json!({"b": 0})), (json!("1"), json!(1))] {
            assert_eq!(compare_values(&a, &b), compare_values(&b, &a).reverse());
            assert!(compare_values(&a, &b).is_ne());
        }
    }

    fn cost(a: &Value, b: &Value) -> Cost {
        Leaves::from_value(a).cost(&Leaves::from_value(b), 100)
    }

    #[test]
    fn the_ends_of_the_scale_are_same_and_nothing_in_common() {
        assert_eq!(cost(&json!({"a": 1, "b": [1, 2]}), &json!({"b": [2, 1], "a": 1.0})), 0);
        assert_eq!(cost(&json!({"a": 1}), &json!({"a": 2})), 100);
        assert_eq!(cost(&json!({}), &json!({})), 0);
    }

    #[test]
    fn of_two_leaves_one_in_common_is_a_third_of_all() {
        assert_eq!(cost(&json!({"a": 1, "b": 1}), &json!({"a": 1, "b": 2})), 66);
    }

    #[test]
    fn a_value_under_another_key_is_another_leaf() {
        assert_eq!(cost(&json!({"a": 1}), &json!({"b": 1})), 100);
    }
}
