//! The values of an evaluation: borrowed JSON, and values that the expression computes.

use std::cmp::Ordering;
use std::rc::Rc;

use serde_json::{Map, Value as Json};

/// A value that is cheap to clone.
#[derive(Debug, Clone)]
pub(crate) enum Value<'j> {
    Null,
    Bool(bool),
    Int(i64),
    Double(f64),
    String(Str<'j>),
    List(List<'j>),
    Map(Object<'j>),
}

#[derive(Debug, Clone)]
pub(crate) enum Str<'j> {
    Borrowed(&'j str),
    Owned(Rc<str>),
}

#[derive(Debug, Clone)]
pub(crate) enum List<'j> {
    Borrowed(&'j [Json]),
    Owned(Rc<Vec<Value<'j>>>),
}

#[derive(Debug, Clone)]
pub(crate) enum Object<'j> {
    Borrowed(&'j Map<String, Json>),
    Owned(Rc<Vec<(Str<'j>, Value<'j>)>>),
}

impl Str<'_> {
    pub(crate) fn as_str(&self) -> &str {
        match self {
            Str::Borrowed(text) => text,
            Str::Owned(text) => text,
        }
    }
}

impl<'j> List<'j> {
    pub(crate) fn len(&self) -> usize {
        match self {
            List::Borrowed(items) => items.len(),
            List::Owned(items) => items.len(),
        }
    }

    pub(crate) fn get(&self, index: usize) -> Option<Value<'j>> {
        match self {
            List::Borrowed(items) => items.get(index).map(Value::from_json),
            List::Owned(items) => items.get(index).cloned(),
        }
    }
}

impl<'j> Object<'j> {
    pub(crate) fn len(&self) -> usize {
        match self {
            Object::Borrowed(map) => map.len(),
            Object::Owned(entries) => entries.len(),
        }
    }

    pub(crate) fn get(&self, name: &str) -> Option<Value<'j>> {
        match self {
            Object::Borrowed(map) => map.get(name).map(Value::from_json),
            Object::Owned(entries) => {
                entries.iter().find(|(key, _)| key.as_str() == name).map(|(_, value)| value.clone())
            }
        }
    }

    /// Returns all keys in document order.
    pub(crate) fn keys(&self) -> Vec<Str<'j>> {
        match self {
            Object::Borrowed(map) => map.keys().map(|key| Str::Borrowed(key)).collect(),
            Object::Owned(entries) => entries.iter().map(|(key, _)| key.clone()).collect(),
        }
    }
}

impl<'j> Value<'j> {
    /// Borrows a JSON value. A number is an integer if it fits into `i64`, and a double otherwise.
    pub(crate) fn from_json(json: &'j Json) -> Self {
        match json {
            Json::Null => Value::Null,
            Json::Bool(value) => Value::Bool(*value),
            Json::Number(number) => match number.as_i64() {
                Some(value) => Value::Int(value),
                None => Value::Double(number.as_f64().unwrap_or(f64::NAN)),
            },
            Json::String(text) => Value::String(Str::Borrowed(text)),
            Json::Array(items) => Value::List(List::Borrowed(items)),
            Json::Object(map) => Value::Map(Object::Borrowed(map)),
        }
    }

    pub(crate) fn string(text: impl Into<Rc<str>>) -> Self {
        Value::String(Str::Owned(text.into()))
    }

    pub(crate) fn list(items: Vec<Value<'j>>) -> Self {
        Value::List(List::Owned(Rc::new(items)))
    }

    /// Describes the type for messages.
    pub(crate) const fn describe(&self) -> &'static str {
        match self {
            Value::Null => "null",
            Value::Bool(_) => "a boolean",
            Value::Int(_) | Value::Double(_) => "a number",
            Value::String(_) => "a string",
            Value::List(_) => "a list",
            Value::Map(_) => "an object",
        }
    }
}

/// Compares two numbers exactly, also an integer with a double. Returns `None` for NaN.
pub(crate) fn compare_numbers(left: &Value<'_>, right: &Value<'_>) -> Option<Ordering> {
    match (left, right) {
        (Value::Int(left), Value::Int(right)) => Some(left.cmp(right)),
        (Value::Double(left), Value::Double(right)) => left.partial_cmp(right),
        (Value::Int(left), Value::Double(right)) => int_with_double(*left, *right),
        (Value::Double(left), Value::Int(right)) => int_with_double(*right, *left).map(Ordering::reverse),
        _ => None,
    }
}

fn int_with_double(int: i64, double: f64) -> Option<Ordering> {
    /// 2^63: every larger double is larger than all `i64` values.
    const TWO_POW_63: f64 = 9_223_372_036_854_775_808.0;
    if double.is_nan() {
        return None;
    }
    if double >= TWO_POW_63 {
        return Some(Ordering::Less);
    }
    if double < -TWO_POW_63 {
        return Some(Ordering::Greater);
    }
    #[expect(clippy::cast_possible_truncation, reason = "the range is checked above")]
    let whole = double.trunc() as i64;
    let by_fraction = || 0.0_f64.partial_cmp(&double.fract());
    match int.cmp(&whole) {
        Ordering::Equal => by_fraction(),
        other => Some(other),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn integers_and_doubles_compare_exactly() {
        let compare = |int: i64, double: f64| compare_numbers(&Value::Int(int), &Value::Double(double));
        assert_eq!(compare(50, 50.0), Some(Ordering::Equal));
        assert_eq!((compare(50, 50.5), compare(-50, -50.5)), (Some(Ordering::Less), Some(Ordering::Greater)));
        assert_eq!(compare(9_007_199_254_740_993, 9_007_199_254_740_992.0), Some(Ordering::Greater));
        assert_eq!(
            (compare(i64::MAX, 1e300), compare(i64::MIN, -1e300)),
            (Some(Ordering::Less), Some(Ordering::Greater))
        );
        assert_eq!(
            (compare(i64::MIN, -9_223_372_036_854_775_808.0), compare(0, f64::NAN)),
            (Some(Ordering::Equal), None)
        );
    }
}
