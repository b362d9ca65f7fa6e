//! A total order of JSON values by meaning. Values that are equal in meaning are equal in this order.
//!
//! Algorithms use it to choose between two lists by content, so that the result does not depend on which side is which.

use std::cmp::Ordering;

use serde_json::{Map, Value};

use super::equality::number_key;

/// Compares two values.
pub(crate) fn of_values(a: &Value, b: &Value) -> Ordering {
    match (a, b) {
        (Value::Bool(a), Value::Bool(b)) => a.cmp(b),
        (Value::Number(a), Value::Number(b)) => number_key(a).cmp(&number_key(b)),
        (Value::String(a), Value::String(b)) => a.cmp(b),
        (Value::Array(a), Value::Array(b)) => of_lists(a, b, of_values),
        (Value::Object(a), Value::Object(b)) => of_objects(a, b),
        _ => rank(a).cmp(&rank(b)),
    }
}

/// Compares two lists by their first elements that differ, then by length.
pub(crate) fn of_lists<T>(a: &[T], b: &[T], order: impl Fn(&T, &T) -> Ordering) -> Ordering {
    let differing = a.iter().zip(b).map(|(a, b)| order(a, b)).find(|order| order.is_ne());
    differing.unwrap_or_else(|| a.len().cmp(&b.len()))
}

fn of_objects(a: &Map<String, Value>, b: &Map<String, Value>) -> Ordering {
    let (left, right) = (sorted_keys(a), sorted_keys(b));
    let values = || {
        let pairs = left.iter().filter_map(|key| Some(of_values(a.get(*key)?, b.get(*key)?)));
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

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn values_are_equal_in_it_where_they_mean_the_same() {
        let (a, b) = (json!({"x": [1, {"y": 2.0}], "z": null}), json!({"z": null, "x": [1.0, {"y": 2}]}));
        assert_eq!(of_values(&a, &b), Ordering::Equal);
        for (a, b) in [(json!([1]), json!([2])), (json!({"a": 1}), json!({"b": 0})), (json!("1"), json!(1))] {
            assert_eq!(of_values(&a, &b), of_values(&b, &a).reverse());
            assert!(of_values(&a, &b).is_ne());
        }
    }
}
