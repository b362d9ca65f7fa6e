//! Whether one `match` covers another: every call that the second matches, the first matches too.

use serde_json::{Map, Value};

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
    if list(&patterns["glob"]).iter().any(|glob| glob == "*") {
        return true;
    }
    let Some(others) = others else { return false };
    ["glob", "regex"].into_iter().all(|kind| {
        list(&others[kind]).iter().all(|other| {
            let is_listed = list(&patterns[kind]).contains(other);
            // A glob without special characters is a name, which a wider glob can match.
            is_listed || kind == "glob" && list(&patterns["glob"]).iter().any(|glob| matches_name(glob, other))
        })
    })
}

fn matches_name(glob: &Value, name: &Value) -> bool {
    let (Some(glob), Some(name)) = (glob.as_str(), name.as_str()) else { return false };
    if name.contains(['*', '?', '[', '\\']) {
        return false;
    }
    let regex = crate::policy::model::glob_to_regex(glob).ok();
    regex.and_then(|regex| regex::Regex::new(&regex).ok()).is_some_and(|regex| regex.is_match(name))
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
        ] {
            assert!(covers(Some(&wide), Some(&narrow)), "{wide}");
        }
        for other in [
            json!({"tool_name": {"glob": ["pull"]}}),
            json!({"tool_name": {"regex": ["push"]}}),
            json!({"args": {"has_keys": ["b"]}}),
            json!({"cel": "true"}),
            json!({"risk_class": ["w"]}),
        ] {
            assert!(!covers(Some(&other), Some(&narrow)), "{other}");
        }
        assert!(covers(None, Some(&narrow)) && !covers(Some(&narrow), None));
    }
}
