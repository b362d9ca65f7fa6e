//! Whether one `match` covers another: every call that the second matches, the first matches too.

use regex::Regex;
use serde_json::{Map, Value};

use super::regex_reach::matches_everything;
use crate::policy::model::glob_to_regex;

/// True if the first certainly covers the second. Conditions in CEL and on arguments are only compared for equality.
pub(super) fn covers(first: Option<&Value>, second: Option<&Value>) -> bool {
    let empty = Map::new();
    let fields = |value: Option<&Value>| value.and_then(Value::as_object).cloned().unwrap_or_else(|| empty.clone());
    let (first, second) = (fields(first), fields(second));
    first.iter().all(|(name, condition)| {
        let other = second.get(name);
        match name.as_str() {
            "server_name" | "tool_name" => covers_name(condition, other),
            "risk_class" => other.is_some_and(|other| is_subset(other, condition)),
            _ => other == Some(condition),
        }
    })
}

/// True if the patterns certainly match every name that the others match.
fn covers_name(patterns: &Value, others: Option<&Value>) -> bool {
    let globs = list(&patterns["glob"]).iter().filter_map(Value::as_str).filter_map(|glob| glob_to_regex(glob).ok());
    let regexes = list(&patterns["regex"]).iter().filter_map(Value::as_str);
    if globs.into_iter().any(|regex| matches_everything(&regex)) || regexes.clone().any(matches_everything) {
        return true;
    }
    let Some(others) = others else { return false };
    ["glob", "regex"].into_iter().all(|kind| {
        list(&others[kind]).iter().all(|other| {
            let is_listed = list(&patterns[kind]).contains(other);
            // A glob without special characters is a name, which a wider glob can match.
            is_listed || kind == "glob" && other.as_str().is_some_and(|name| matches_name(patterns, name))
        })
    })
}

fn matches_name(patterns: &Value, name: &str) -> bool {
    if name.contains(['*', '?', '[', '\\']) {
        return false;
    }
    let globs = list(&patterns["glob"]).iter().filter_map(Value::as_str).filter_map(|glob| glob_to_regex(glob).ok());
    let regexes = list(&patterns["regex"]).iter().filter_map(Value::as_str).map(str::to_owned);
    globs.chain(regexes).any(|regex| Regex::new(&regex).is_ok_and(|regex| regex.is_match(name)))
}

fn is_subset(inner: &Value, outer: &Value) -> bool {
    list(inner).iter().all(|item| list(outer).contains(item))
}

fn list(value: &Value) -> &[Value] {
    value.as_array().map(Vec::as_slice).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_match_with_fewer_or_wider_conditions_covers_another() {
        let narrow =
            json!({"server_name": {"glob": ["git"]}, "tool_name": {"glob": ["push"]}, "args": {"has_keys": ["a"]}});
        for wide in [
            json!({}),
            json!({"tool_name": {"glob": ["*"]}}),
            json!({"tool_name": {"glob": ["p*", "x"]}}),
            json!({"tool_name": {"glob": ["push", "x"], "regex": ["y"]}, "server_name": {"glob": ["git"]}}),
            json!({"args": {"has_keys": ["a"]}}),
            json!({"tool_name": {"regex": ["^(push|pull)$"]}}),
            json!({"tool_name": {"regex": ["us"]}}),
            json!({"tool_name": {"regex": [".*"]}, "server_name": {"glob": ["**"]}}),
        ] {
            assert!(covers(Some(&wide), Some(&narrow)), "{wide}");
        }
        for other in [
            json!({"tool_name": {"glob": ["pull"]}}),
            json!({"tool_name": {"regex": ["pull"]}}),
            json!({"args": {"has_keys": ["b"]}}),
            json!({"cel": "true"}),
            json!({"risk_class": ["w"]}),
        ] {
            assert!(!covers(Some(&other), Some(&narrow)), "{other}");
        }
        assert!(covers(None, Some(&narrow)) && !covers(Some(&narrow), None));
    }
}
