//! The distance of two JSON values, from equal to nothing in common.
//!
//! A value is a multiset of leaves. A leaf is a JSON Pointer without array indexes, and the value there. The distance of
//! two multisets is the share of their leaves that they do not have in common (Jaccard 1901). It orders pairs like Dice's
//! distance but is a metric, so pairing two equal elements never costs more than leaving them apart.

use serde_json::{Map, Value};

use super::hashed::HashedMap;
use super::{meaning_hash, text_hash};

/// The cost of a pair or of an element, in ten-thousandths of the cost of leaving out one element.
pub(crate) type Cost = u64;

/// The leaves of a value, hashed and counted once for many comparisons.
#[derive(Debug, Clone, Default)]
pub(crate) struct Leaves {
    counts: HashedMap<u32>,
    total: u32,
}

impl Leaves {
    /// Collects the leaves of a value.
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

    /// Returns the number of leaves.
    pub(crate) const fn count(&self) -> usize {
        self.total as usize
    }
}

/// Counts the leaves of an object's fields.
pub(crate) fn leaves_below(object: &Map<String, Value>) -> usize {
    object.values().map(leaves_of).sum()
}

/// Counts the leaves of an object. An object without fields is itself a leaf.
pub(crate) fn leaves_of_object(object: &Map<String, Value>) -> usize {
    if object.is_empty() { 1 } else { leaves_below(object) }
}

/// Counts the leaves of a value.
pub(crate) fn leaves_of(value: &Value) -> usize {
    match value {
        Value::Object(fields) => leaves_of_object(fields),
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
