//! The conditions of a rule, and whether a call meets them.
//!
//! A condition is met, not met, or undecided. A rule matches if all its conditions are met. One condition that is not met decides,
//! whatever the others are.

use std::cmp::Ordering;
use std::fmt;

use counterproof_artifact::one_line;
use counterproof_expression::NoValue;
use serde::Deserialize;
use serde_json::{Number, Value};

use super::expression::{CelCondition, CelInputs};
use super::names::PatternRange;
use crate::policy::call::{Args, CallFacts};

const PART_CHARS: usize = 80;

/// The conditions of a rule. A field that is `None` or empty is met by every call.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Conditions {
    pub server_name: Option<PatternRange>,
    pub tool_name: Option<PatternRange>,
    /// Risk classes in lower case, of which the call must have one.
    pub risk_class: Vec<String>,
    pub args: Option<ArgsCondition>,
    pub cel: Option<CelCondition>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Match<'r> {
    Yes,
    No(Condition<'r>),
    Undecided(Condition<'r>, Doubt),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Condition<'r> {
    ServerName,
    ToolName,
    RiskClass,
    HasKey(&'r str),
    KeyEquals(&'r str),
    KeyIn(&'r str),
    NumericRange(&'r str),
    Args,
    Cel,
}

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Doubt {
    #[error("the name is longer than {} bytes", super::names::MAX_NAME_BYTES)]
    NameTooLong,
    #[error("the arguments are too large to be inspected")]
    ArgsTooLarge,
    #[error("a tag rule for this risk class is undecided")]
    RiskClassUncertain,
    #[error("{message}")]
    CelFailed {
        part: String,
        /// The failure. The text may contain parts of the arguments.
        message: String,
    },
    #[error("{}", NoValue::TooLong)]
    CelTooLong,
}

impl Doubt {
    pub(crate) fn without_values(&self) -> String {
        match self {
            Doubt::CelFailed { part, .. } => format!("`{}` has no value", one_line(part, PART_CHARS)),
            other => other.to_string(),
        }
    }
}

impl fmt::Display for Condition<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Condition::ServerName => f.write_str("match.server_name"),
            Condition::ToolName => f.write_str("match.tool_name"),
            Condition::RiskClass => f.write_str("match.risk_class"),
            Condition::HasKey(key) => write!(f, "match.args.has_keys `{key}`"),
            Condition::KeyEquals(key) => write!(f, "match.args.key_equals `{key}`"),
            Condition::KeyIn(key) => write!(f, "match.args.key_in `{key}`"),
            Condition::NumericRange(key) => write!(f, "match.args.numeric_range `{key}`"),
            Condition::Args => f.write_str("match.args"),
            Condition::Cel => f.write_str("match.cel"),
        }
    }
}

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct RiskClasses {
    certain: Vec<String>,
    possible: Vec<String>,
}

impl RiskClasses {
    pub(crate) fn add(&mut self, classes: &[String], is_certain: bool) {
        // The classes of a tag rule that is undecided are only possible.
        let list = if is_certain { &mut self.certain } else { &mut self.possible };
        for class in classes {
            if !list.contains(class) {
                list.push(class.clone());
            }
        }
    }

    /// The classes that the call certainly has, in the order in which they were added.
    pub(crate) fn certain(&self) -> &[String] {
        &self.certain
    }

    pub(crate) fn has_possible(&self) -> bool {
        self.possible.iter().any(|class| !self.certain.contains(class))
    }

    pub(crate) fn into_certain(self) -> Vec<String> {
        self.certain
    }
}

impl Conditions {
    pub(crate) fn check(&self, call: &CallFacts<'_>, classes: &RiskClasses, cel: &mut CelInputs<'_>) -> Match<'_> {
        // Every condition is checked, even after one that is undecided: one that is known to be unmet decides, and needs no doubt.
        let mut undecided = None;
        if !self.risk_class.is_empty() && !self.risk_class.iter().any(|class| classes.certain.contains(class)) {
            if !self.risk_class.iter().any(|class| classes.possible.contains(class)) {
                return Match::No(Condition::RiskClass);
            }
            undecided = Some((Condition::RiskClass, Doubt::RiskClassUncertain));
        }
        if let Some(condition) = &self.args {
            match call.args {
                Args::Inspected(args) => {
                    if let Some(unmet) = condition.unmet(args) {
                        return Match::No(unmet);
                    }
                }
                // The first doubt is the one that is reported.
                Args::TooLarge => undecided = undecided.or(Some((Condition::Args, Doubt::ArgsTooLarge))),
            }
        }
        if let Some(condition) = &self.cel {
            match condition.evaluate(cel, classes) {
                Ok(true) => {}
                Ok(false) => return Match::No(Condition::Cel),
                Err(doubt) => undecided = undecided.or(Some((Condition::Cel, doubt))),
            }
        }
        undecided.map_or(Match::Yes, |(condition, doubt)| Match::Undecided(condition, doubt))
    }
}

/// Conditions on the arguments; all of them must be met.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct ArgsCondition {
    pub has_keys: Vec<String>,
    pub key_equals: Vec<(String, Value)>,
    pub key_in: Vec<(String, Vec<Value>)>,
    pub numeric_range: Vec<(String, Range)>,
}

/// A range of numbers; both ends are part of it.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Range {
    pub min: Option<Number>,
    pub max: Option<Number>,
}

impl Range {
    pub fn is_empty(&self) -> bool {
        let (Some(min), Some(max)) = (&self.min, &self.max) else { return false };
        compare(min, max) == Some(Ordering::Greater)
    }

    fn contains(&self, number: &Number) -> bool {
        let is_at_least = |min: &Number| compare(number, min).is_some_and(Ordering::is_ge);
        let is_at_most = |max: &Number| compare(number, max).is_some_and(Ordering::is_le);
        // A bound that cannot be compared is not met.
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

pub(crate) fn compare(a: &Number, b: &Number) -> Option<Ordering> {
    match (integer(a), integer(b)) {
        (Some(a), Some(b)) => Some(a.cmp(&b)),
        (Some(a), None) => compare_with_double(a, b.as_f64()?),
        (None, Some(b)) => compare_with_double(b, a.as_f64()?).map(Ordering::reverse),
        (None, None) => a.as_f64()?.partial_cmp(&b.as_f64()?),
    }
}

fn integer(number: &Number) -> Option<i128> {
    number.as_u64().map(i128::from).or_else(|| number.as_i64().map(i128::from))
}

/// Compares exactly: the whole part first, which decides unless both are equal.
fn compare_with_double(integer: i128, double: f64) -> Option<Ordering> {
    // Conversion to an integer saturates, and integers of JSON are far from its limits.
    #[expect(clippy::cast_possible_truncation, reason = "the fraction is compared after the whole part")]
    // A comparison as floats would make integers beyond 2^53 equal to their neighbours.
    let whole = double.trunc() as i128;
    let fraction = 0.0_f64.partial_cmp(&double.fract())?;
    Some(integer.cmp(&whole).then(fraction))
}

pub(crate) fn equal(a: &Value, b: &Value) -> bool {
    // Numbers are compared by value, and the order of keys does not matter.
    match (a, b) {
        (Value::Number(a), Value::Number(b)) => compare(a, b) == Some(Ordering::Equal),
        (Value::Array(a), Value::Array(b)) => a.len() == b.len() && a.iter().zip(b).all(|(a, b)| equal(a, b)),
        (Value::Object(a), Value::Object(b)) => {
            a.len() == b.len() && a.iter().all(|(key, a)| b.get(key).is_some_and(|b| equal(a, b)))
        }
        (a, b) => a == b,
    }
}

#[cfg(test)]
mod tests {
    use camino::Utf8Path;
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;
    use crate::identity::RunIdentity;
    use crate::policy::Policy;

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

    #[test]
    fn numbers_are_compared_by_value() {
        assert!(equal(&json!({"a": [1, 2.0], "b": null}), &json!({"b": null, "a": [1.0, 2]})));
        assert!(!equal(&json!(9_007_199_254_740_993_u64), &json!(9_007_199_254_740_992.0)));
        assert!(!equal(&json!(1), &json!("1")));
        assert!(!equal(&json!(1.5), &json!(1)));
        assert!(equal(&json!(0), &json!(-0.0)));
        let order = |a: Value, b: Value| compare(a.as_number().unwrap(), b.as_number().unwrap()).unwrap();
        assert_eq!(order(json!(-1), json!(-1.5)), Ordering::Greater);
        assert_eq!(order(json!(u64::MAX), json!(1e300)), Ordering::Less);
        assert_eq!(order(json!(-1e300), json!(i64::MIN)), Ordering::Less);
    }

    proptest! {
        #[test]
        fn the_order_of_small_numbers_is_that_of_doubles(a in -1000_i32..1000, b in -4000_i32..4000) {
            let b = f64::from(b) / 4.0;
            let (x, y) = (Number::from(a), Number::from_f64(b).unwrap());
            prop_assert_eq!(compare(&x, &y), f64::from(a).partial_cmp(&b));
            prop_assert_eq!(compare(&y, &x), b.partial_cmp(&f64::from(a)));
        }
    }

    #[test]
    fn a_policy_for_other_runs_or_servers_never_applies() {
        let lookup = |name: &str| (name == "SUB_CLIENT").then(|| "custom".to_owned());
        let (run, _) = RunIdentity::from_environment(lookup);
        for (policy, expected) in [
            ("rules: []", None),
            ("selectors: {client: [claude]}\nrules: []", None),
            ("rules: [{rule_id: a, kind: deny}]", None),
            (
                "selectors: {client: [claude, codex]}\nrules: [{rule_id: a, kind: deny}]",
                Some("selector `client` needs `claude` or `codex`, and the run has `custom`"),
            ),
            (
                "selectors: {workload: {labels: {team: pay}}}\nrules: [{rule_id: a, kind: deny}]",
                Some("selector `workload.labels.team` needs `pay`, and the run has none"),
            ),
            (
                "rules: [{rule_id: a, kind: deny, match: {server_name: {glob: [git*]}}}, {rule_id: t, kind: tag, effect: {tag: {add_risk_class: [x]}}}]",
                Some("its rules have patterns for the names of other servers in `server_name`"),
            ),
            ("rules: [{rule_id: a, kind: deny, match: {server_name: {glob: [git*, files]}}}]", None),
            (
                "rules: [{rule_id: a, kind: deny, match: {server_name: {glob: [git]}}}, {rule_id: b, kind: deny, enabled: false}]",
                Some("its rules have patterns for the names of other servers in `server_name`"),
            ),
        ] {
            let text = format!("policy_id: p\nversion: '1'\nmode: guardrails\n{policy}");
            let loaded = Policy::parse(Utf8Path::new("p.yaml"), text.as_bytes()).unwrap();
            let reason = loaded.never_applies(&run, "files").map(|reason| reason.to_string());
            assert_eq!(reason.as_deref(), expected, "{policy}");
        }
    }
}
