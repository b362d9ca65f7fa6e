//! A policy document with its defaults filled in and its sets sorted.

use std::cmp::Ordering;

use serde_json::{Map, Value, json};

/// Returns the part of a document that is not a rule, as it takes effect.
pub(super) fn header(document: &Value) -> Value {
    let mut fields = document.as_object().cloned().unwrap_or_default();
    for name in ["rules", "$schema"] {
        fields.shift_remove(name);
    }
    if let Some(version) = fields.shift_remove("policy_version") {
        fields.insert("version".to_owned(), version);
    }
    let defaults = json!({
        "defaults": {"decision_on_error": "BLOCK", "fail_open_read_tools": false},
        "selectors": {},
        "responses": {
            "deny_as": "auto", "codes": {"blocked": -32081, "throttled": -32082, "hint": -32083, "terminated": -32084}
        },
    });
    let mut header = Value::Object(fields);
    fill(&mut header, &defaults);
    if let Some(selectors) = header.get_mut("selectors") {
        sort_sets(selectors, str::to_lowercase);
    }
    header
}

/// Returns a rule as it takes effect.
pub(super) fn rule(rule: &Value) -> Value {
    let mut rule = rule.clone();
    fill(&mut rule, &json!({"enabled": true, "severity": "info", "match": {}, "effect": {}}));
    let kind = rule["kind"].as_str().unwrap_or_default().to_owned();
    let defaults = effect_defaults(&kind, &rule);
    fill(&mut rule, &defaults);
    if let Some(conditions) = rule.get_mut("match") {
        sort_sets(conditions, str::to_owned);
        if let Some(classes) = conditions.get_mut("risk_class") {
            sort_sets(classes, str::to_lowercase);
        }
    }
    if let Some(classes) = rule.pointer_mut("/effect/tag/add_risk_class") {
        sort_sets(classes, str::to_lowercase);
    }
    rule
}

fn effect_defaults(kind: &str, rule: &Value) -> Value {
    let limit = |scope: &str, action: &str, name: &str| json!({"effect": {kind: {"scope": scope, action: name}}});
    let mut defaults = match kind {
        "allow" => json!({"effect": {"action": "ALLOW"}}),
        "deny" => json!({"effect": {"action": "BLOCK"}}),
        "budget" => limit("run", "on_exceed", "BLOCK"),
        "rate_limit" => limit("run", "on_limit", "THROTTLE"),
        "breaker" => limit("server_tool", "on_trip", "BLOCK"),
        "dedupe" => limit("tool", "on_duplicate", "BLOCK"),
        _ => json!({}),
    };
    match kind {
        "budget" => defaults["effect"][kind]["cost_units_per_call"] = json!(1),
        "rate_limit" => defaults["effect"][kind]["cost_tokens_per_call"] = json!(1),
        "dedupe" => defaults["effect"][kind]["key"] = json!("args_hash"),
        _ => {}
    }
    let throttles = |effect: &Value| effect.as_object().is_some_and(|it| it.values().any(|value| value == "THROTTLE"));
    let inner = if kind == "deny" { &rule["effect"] } else { &rule["effect"][kind] };
    let is_default = kind == "rate_limit" && inner.get("on_limit").is_none();
    if throttles(inner) || is_default {
        let effect = if kind == "deny" { &mut defaults["effect"] } else { &mut defaults["effect"][kind] };
        effect["backoff_ms"] = json!(1000);
    }
    defaults
}

/// Adds the fields that are missing.
fn fill(value: &mut Value, defaults: &Value) {
    let (Value::Object(fields), Value::Object(defaults)) = (value, defaults) else { return };
    for (name, default) in defaults {
        fill(fields.entry(name.clone()).or_insert_with(|| default.clone()), default);
    }
}

/// Sorts all lists of a value and removes repetitions. `form` is applied to texts.
fn sort_sets(value: &mut Value, form: fn(&str) -> String) {
    match value {
        Value::String(text) => *text = form(text),
        Value::Array(items) => {
            for item in items.iter_mut() {
                sort_sets(item, form);
            }
            items.sort_by(compare);
            items.dedup();
        }
        Value::Object(fields) => sort_fields(fields, form),
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

fn sort_fields(fields: &mut Map<String, Value>, form: fn(&str) -> String) {
    for (name, value) in fields {
        // The order of a list that a call must have as an argument matters.
        if name == "key_equals" {
            continue;
        }
        if name == "key_in" {
            for values in value.as_object_mut().into_iter().flat_map(Map::values_mut) {
                if let Value::Array(values) = values {
                    values.sort_by(compare);
                    values.dedup();
                }
            }
            continue;
        }
        sort_sets(value, form);
    }
}

fn compare(a: &Value, b: &Value) -> Ordering {
    a.to_string().cmp(&b.to_string())
}
