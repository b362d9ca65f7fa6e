//! Equality of JSON values by meaning: key order never matters, and `50` equals `50.0`.

use serde_json::{Map, Number, Value};

/// Whole floats below this are compared as whole numbers. `i128` holds them exactly.
const WHOLE_FLOATS: f64 = 1e36;

/// Returns the JSON name of a value's type.
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

/// True if two objects are equal in meaning.
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
