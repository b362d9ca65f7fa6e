//! The values that an expression works with: JSON as it is, borrowed, and what is made of it on the way.

use std::cmp::Ordering;
use std::rc::Rc;

use serde_json::{Map, Value as Json};

/// A value. Clones are cheap.
#[derive(Debug, Clone)]
pub(crate) enum Value<'j> {
    Null,
    Bool(bool),
    Int(i64),
    Double(f64),
    Text(Text<'j>),
    List(List<'j>),
    Map(Object<'j>),
}

#[derive(Debug, Clone)]
pub(crate) enum Text<'j> {
    Borrowed(&'j str),
    Made(Rc<str>),
}

#[derive(Debug, Clone)]
pub(crate) enum List<'j> {
    Borrowed(&'j [Json]),
    Made(Rc<Vec<Value<'j>>>),
}

#[derive(Debug, Clone)]
pub(crate) enum Object<'j> {
    Borrowed(&'j Map<String, Json>),
    Made(Rc<Vec<(Text<'j>, Value<'j>)>>),
}

impl Text<'_> {
    pub(crate) fn as_str(&self) -> &str {
        match self {
            Text::Borrowed(text) => text,
            Text::Made(text) => text,
        }
    }
}

impl<'j> List<'j> {
    pub(crate) fn len(&self) -> usize {
        match self {
            List::Borrowed(items) => items.len(),
            List::Made(items) => items.len(),
        }
    }

    pub(crate) fn get(&self, index: usize) -> Option<Value<'j>> {
        match self {
            List::Borrowed(items) => items.get(index).map(Value::of),
            List::Made(items) => items.get(index).cloned(),
        }
    }
}

impl<'j> Object<'j> {
    pub(crate) fn len(&self) -> usize {
        match self {
            Object::Borrowed(map) => map.len(),
            Object::Made(entries) => entries.len(),
        }
    }

    pub(crate) fn get(&self, name: &str) -> Option<Value<'j>> {
        match self {
            Object::Borrowed(map) => map.get(name).map(Value::of),
            Object::Made(entries) => {
                entries.iter().find(|(key, _)| key.as_str() == name).map(|(_, value)| value.clone())
            }
        }
    }

    /// All keys, in the object's own order.
    pub(crate) fn keys(&self) -> Vec<Text<'j>> {
        match self {
            Object::Borrowed(map) => map.keys().map(|key| Text::Borrowed(key)).collect(),
            Object::Made(entries) => entries.iter().map(|(key, _)| key.clone()).collect(),
        }
    }
}

impl<'j> Value<'j> {
    /// A JSON value. Whole numbers that fit are whole numbers, whatever their sign; all others are doubles.
    pub(crate) fn of(json: &'j Json) -> Self {
        match json {
            Json::Null => Value::Null,
            Json::Bool(value) => Value::Bool(*value),
            Json::Number(number) => match number.as_i64() {
                Some(value) => Value::Int(value),
                None => Value::Double(number.as_f64().unwrap_or(f64::NAN)),
            },
            Json::String(text) => Value::Text(Text::Borrowed(text)),
            Json::Array(items) => Value::List(List::Borrowed(items)),
            Json::Object(map) => Value::Map(Object::Borrowed(map)),
        }
    }

    pub(crate) fn made(text: impl Into<Rc<str>>) -> Self {
        Value::Text(Text::Made(text.into()))
    }

    pub(crate) fn list(items: Vec<Value<'j>>) -> Self {
        Value::List(List::Made(Rc::new(items)))
    }

    /// What it is, in words.
    pub(crate) const fn kind(&self) -> &'static str {
        match self {
            Value::Null => "null",
            Value::Bool(_) => "true or false",
            Value::Int(_) | Value::Double(_) => "a number",
            Value::Text(_) => "a text",
            Value::List(_) => "a list",
            Value::Map(_) => "an object",
        }
    }
}

/// How two numbers stand to each other: exactly, also where one is whole and the other is not. None with NaN.
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
    /// 2^63: every double from here on is beyond all whole numbers.
    const BEYOND: f64 = 9_223_372_036_854_775_808.0;
    if double.is_nan() {
        return None;
    }
    if double >= BEYOND {
        return Some(Ordering::Less);
    }
    if double < -BEYOND {
        return Some(Ordering::Greater);
    }
    #[expect(clippy::cast_possible_truncation, reason = "in range, as was just seen")]
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
    fn whole_numbers_and_doubles_are_compared_exactly() {
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
