//! How far two JSON objects are apart, between 0 (the same) and 1 (nothing in common).
//!
//! An object is taken as a multiset of leaves, each a JSON Pointer with its array indexes left out and the value there;
//! the distance of two multisets is 1 − 2·common ⁄ (leaves of both) (Dice 1945).

use std::collections::HashMap;

use serde_json::{Map, Value};

use super::json::meaning_hash;

/// An object's leaves, hashed and counted once so that it can be compared many times.
#[derive(Debug, Clone, Default)]
pub struct Leaves {
    counts: HashMap<u64, u32>,
    total: u32,
}

impl Leaves {
    /// The leaves of an object.
    pub fn of(object: &Map<String, Value>) -> Self {
        let mut leaves = Leaves::default();
        leaves.take_fields(object, 0);
        leaves
    }

    /// The leaves of any value.
    pub fn of_value(value: &Value) -> Self {
        let mut leaves = Leaves::default();
        leaves.take(value, 0);
        leaves
    }

    fn take_fields(&mut self, fields: &Map<String, Value>, path: u64) {
        for (key, value) in fields {
            self.take(value, mix(path, meaning_hash(&Value::String(key.clone()))));
        }
    }

    fn take(&mut self, value: &Value, path: u64) {
        match value {
            Value::Object(fields) if !fields.is_empty() => self.take_fields(fields, path),
            Value::Array(items) if !items.is_empty() => items.iter().for_each(|item| self.take(item, mix(path, 1))),
            _ => {
                *self.counts.entry(mix(path, meaning_hash(value))).or_default() += 1;
                self.total += 1;
            }
        }
    }

    /// How many leaves there are.
    pub const fn count(&self) -> usize {
        self.total as usize
    }

    /// Equal for equal leaves.
    pub fn fingerprint(&self) -> u64 {
        // Added up, since a map has no order.
        self.counts.iter().fold(0, |sum, (leaf, count)| sum.wrapping_add(mix(*leaf, u64::from(*count))))
    }

    /// The distance to other leaves; two empty ones are the same.
    pub fn distance(&self, other: &Leaves) -> f64 {
        let both = self.total + other.total;
        if both == 0 {
            return 0.0;
        }
        let common: u32 =
            self.counts.iter().map(|(leaf, count)| other.counts.get(leaf).map_or(0, |theirs| *count.min(theirs))).sum();
        1.0 - 2.0 * f64::from(common) / f64::from(both)
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

    fn distance(a: &Value, b: &Value) -> f64 {
        Leaves::of_value(a).distance(&Leaves::of_value(b))
    }

    #[test]
    fn the_ends_of_the_scale_are_same_and_nothing_in_common() {
        assert!(distance(&json!({"a": 1, "b": [1, 2]}), &json!({"b": [2, 1], "a": 1.0})).abs() < 1e-9);
        assert!((distance(&json!({"a": 1}), &json!({"a": 2})) - 1.0).abs() < 1e-9);
        assert!(distance(&json!({}), &json!({})).abs() < 1e-9);
    }

    #[test]
    fn one_changed_leaf_of_two_is_half_way() {
        assert!((distance(&json!({"a": 1, "b": 1}), &json!({"a": 1, "b": 2})) - 0.5).abs() < 1e-9);
    }

    #[test]
    fn a_value_under_another_key_is_another_leaf() {
        assert!((distance(&json!({"a": 1}), &json!({"b": 1})) - 1.0).abs() < 1e-9);
    }
}
