//! Which conditions of a rule a call meets, and why it does not meet one, for `guard policy explain`.

use counterproof_artifact::one_line;
use serde_json::Value;

use crate::policy::call::{Args, CallFacts};
use crate::policy::model::{Condition, Conditions, Range};

/// Longest value in a reason, in characters.
const VALUE_CHARS: usize = 60;

/// Returns the conditions of a rule, as policies name them. A rule without conditions has none.
pub(super) fn names(conditions: &Conditions) -> Vec<String> {
    let is_there = |is_set: bool, condition| is_set.then_some(condition);
    let listed = [
        is_there(conditions.server_name.is_some(), Condition::ServerName),
        is_there(conditions.tool_name.is_some(), Condition::ToolName),
        is_there(!conditions.risk_class.is_empty(), Condition::RiskClass),
    ];
    let args = conditions.args.iter().flat_map(|args| {
        let keys = args.has_keys.iter().map(|key| Condition::HasKey(key));
        let keys = keys.chain(args.key_equals.iter().map(|(key, _)| Condition::KeyEquals(key)));
        let keys = keys.chain(args.key_in.iter().map(|(key, _)| Condition::KeyIn(key)));
        keys.chain(args.numeric_range.iter().map(|(key, _)| Condition::NumericRange(key)))
    });
    let cel = is_there(conditions.cel.is_some(), Condition::Cel);
    listed.into_iter().flatten().chain(args).chain(cel).map(|condition| condition.to_string()).collect()
}

/// Returns why a condition of a rule is not met: the value of the call, and the one that the rule needs.
pub(super) fn reason(
    condition: Condition<'_>,
    conditions: &Conditions,
    call: &CallFacts<'_>,
    classes: &[String],
) -> String {
    let args = conditions.args.as_ref();
    let needs = |key: &str, needed: String| match argument(call, key) {
        Some(value) => format!("the call has {}, and the rule needs {needed}", short(value)),
        None => format!("the call has no argument `{key}`"),
    };
    match condition {
        Condition::ServerName => format!("no pattern matches `{}`", one_line(call.server_name, VALUE_CHARS)),
        Condition::ToolName => format!("no pattern matches `{}`", one_line(call.tool_name, VALUE_CHARS)),
        Condition::RiskClass => {
            let found = if classes.is_empty() { "none".to_owned() } else { quoted(classes) };
            format!("the call has {found}, and the rule needs {}", quoted(&conditions.risk_class))
        }
        Condition::HasKey(key) => format!("the call has no argument `{key}`"),
        Condition::KeyEquals(key) => {
            let value = args.and_then(|args| args.key_equals.iter().find(|(it, _)| it == key));
            needs(key, value.map(|(_, value)| short(value)).unwrap_or_default())
        }
        Condition::KeyIn(key) => {
            let list = args.and_then(|args| args.key_in.iter().find(|(it, _)| it == key));
            let list: Vec<String> = list.into_iter().flat_map(|(_, list)| list).map(short).collect();
            needs(key, one_line(&list.join(" or "), 2 * VALUE_CHARS))
        }
        Condition::NumericRange(key) => {
            let range = args.and_then(|args| args.numeric_range.iter().find(|(it, _)| it == key));
            needs(key, range.map(|(_, range)| numbers(range)).unwrap_or_default())
        }
        Condition::Args => String::new(),
        Condition::Cel => "the expression is false".to_owned(),
    }
}

fn argument<'a>(call: &CallFacts<'a>, key: &str) -> Option<&'a Value> {
    if let Args::Inspected(args) = call.args { args.as_object()?.get(key) } else { None }
}

fn short(value: &Value) -> String {
    one_line(&value.to_string(), VALUE_CHARS)
}

fn quoted(names: &[String]) -> String {
    names.iter().map(|name| format!("`{name}`")).collect::<Vec<_>>().join(" or ")
}

fn numbers(range: &Range) -> String {
    match (&range.min, &range.max) {
        (Some(min), Some(max)) => format!("a number from {min} to {max}"),
        (Some(min), None) => format!("a number of at least {min}"),
        (None, Some(max)) => format!("a number of at most {max}"),
        (None, None) => "a number".to_owned(),
    }
}
