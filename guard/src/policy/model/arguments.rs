//! Conditions on the arguments of a call. They look at the top-level keys only.

use std::cmp::Ordering;

use serde_json::{Number, Value};

use super::condition::Condition;
use super::number::{compare, equal};

/// Conditions on the arguments; all of them must be met.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct ArgsCondition {
    /// Keys that must be present, with any value.
    pub has_keys: Vec<String>,
    /// Keys with the value that each must have.
    pub key_equals: Vec<(String, Value)>,
    /// Keys with the values of which each must have one.
    pub key_in: Vec<(String, Vec<Value>)>,
    /// Keys with the range in which the number of each must be.
    pub numeric_range: Vec<(String, Range)>,
}

/// A range of numbers; both ends are part of it.
#[derive(Debug, Clone, PartialEq)]
pub struct Range {
    pub min: Option<Number>,
    pub max: Option<Number>,
}

impl Range {
    /// True if the range contains no number.
    pub fn is_empty(&self) -> bool {
        let (Some(min), Some(max)) = (&self.min, &self.max) else { return false };
        compare(min, max) == Some(Ordering::Greater)
    }

    fn contains(&self, number: &Number) -> bool {
        let is_at_least = |min: &Number| compare(number, min).is_some_and(Ordering::is_ge);
        let is_at_most = |max: &Number| compare(number, max).is_some_and(Ordering::is_le);
        self.min.as_ref().is_none_or(is_at_least) && self.max.as_ref().is_none_or(is_at_most)
    }
}

impl ArgsCondition {
    /// Returns the keys without which the arguments do not meet the condition.
    pub(crate) fn required_keys(&self) -> Vec<&str> {
        let keys = self.has_keys.iter().chain(self.key_equals.iter().map(|(key, _)| key));
        let keys = keys.chain(self.key_in.iter().map(|(key, _)| key));
        keys.chain(self.numeric_range.iter().map(|(key, _)| key)).map(String::as_str).collect()
    }

    /// Returns the first condition that the arguments do not meet.
    pub(crate) fn unmet(&self, args: &Value) -> Option<Condition<'_>> {
        let value = |key: &str| args.as_object().and_then(|args| args.get(key));
        let missing = self.has_keys.iter().find(|key| value(key).is_none());
        let missing = missing.map(|key| Condition::HasKey(key));
        let unequal = || {
            let mut pairs = self.key_equals.iter();
            let pair = pairs.find(|(key, expected)| !value(key).is_some_and(|value| equal(value, expected)));
            pair.map(|(key, _)| Condition::KeyEquals(key))
        };
        let not_in = || {
            let is_in =
                |key: &str, list: &[Value]| value(key).is_some_and(|value| list.iter().any(|it| equal(it, value)));
            let pair = self.key_in.iter().find(|(key, list)| !is_in(key, list));
            pair.map(|(key, _)| Condition::KeyIn(key))
        };
        let out_of_range = || {
            let number = |key: &str| value(key).and_then(Value::as_number);
            let mut pairs = self.numeric_range.iter();
            let pair = pairs.find(|(key, range)| !number(key).is_some_and(|number| range.contains(number)));
            pair.map(|(key, _)| Condition::NumericRange(key))
        };
        missing.or_else(unequal).or_else(not_in).or_else(out_of_range)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn condition() -> ArgsCondition {
        let range = |min: Option<f64>, max: Option<f64>| Range {
            min: min.and_then(Number::from_f64),
            max: max.and_then(Number::from_f64),
        };
        ArgsCondition {
            has_keys: vec!["path".to_owned()],
            key_equals: vec![("force".to_owned(), json!(true))],
            key_in: vec![("mode".to_owned(), vec![json!("w"), json!(2)])],
            numeric_range: vec![
                ("size".to_owned(), range(Some(1.0), Some(10.0))),
                ("n".to_owned(), range(None, Some(0.0))),
            ],
        }
    }

    #[test]
    fn all_conditions_must_be_met_and_ends_of_ranges_are_in_them() {
        let condition = condition();
        let mut args = json!({"path": null, "force": true, "mode": 2.0, "size": 10, "n": -5});
        assert_eq!(condition.unmet(&args), None);
        args["size"] = json!(1);
        assert_eq!(condition.unmet(&args), None);
        for (key, value, unmet) in [
            ("force", json!("true"), Condition::KeyEquals("force")),
            ("mode", json!("2"), Condition::KeyIn("mode")),
            ("size", json!(10.1), Condition::NumericRange("size")),
            ("size", json!("5"), Condition::NumericRange("size")),
            ("n", json!(1), Condition::NumericRange("n")),
        ] {
            let mut args = args.clone();
            args[key] = value;
            assert_eq!(condition.unmet(&args), Some(unmet), "{args}");
        }
        assert_eq!(condition.unmet(&json!({})), Some(Condition::HasKey("path")));
        assert_eq!(condition.unmet(&json!(["path"])), Some(Condition::HasKey("path")));
        assert_eq!(condition.unmet(&json!({"a": {"path": 1}})), Some(Condition::HasKey("path")));
    }

    #[test]
    fn a_range_whose_ends_are_swapped_is_empty() {
        let range = |min: i32, max: i32| Range { min: Some(min.into()), max: Some(max.into()) };
        assert!(range(2, 1).is_empty() && !range(1, 1).is_empty());
        assert!(!Range { min: Some(2.into()), max: None }.is_empty());
    }
}
