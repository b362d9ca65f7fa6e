//! A policy document with its defaults filled in and its sets sorted.

use std::cmp::Ordering;

use serde_json::{Map, Value, json};

use crate::policy::document::default_reason_code;

/// The integers below this number have exact decimals: 2^53.
const MAX_EXACT: f64 = 9_007_199_254_740_992.0;

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
    use_integers(&mut header);
    if let Some(labels) = header.pointer_mut("/selectors/workload/labels").and_then(Value::as_object_mut) {
        // One value is a list of one.
        labels.values_mut().filter(|value| value.is_string()).for_each(|value| *value = json!([value.take()]));
    }
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
    use_integers(&mut rule);
    remove_default_codes(&kind, &mut rule["effect"]);
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

/// Removes the codes that a rule has without stating them. They follow from its kind and its action, which are compared.
fn remove_default_codes(kind: &str, effect: &mut Value) {
    let reason_code = default_reason_code(kind, effect["action"].as_str());
    let stated = effect.get("reason_code").and_then(Value::as_str).unwrap_or(reason_code).to_owned();
    let hint_kind = if effect.get("suggested_args").is_some() { "ARG_FIX" } else { "OTHER" };
    remove_if_equal(effect, "reason_code", reason_code);
    remove_if_equal(effect, "hint_kind", hint_kind);
    remove_if_equal(effect, "terminate_code", &stated);
    if let Some(limit) = effect.get_mut(kind) {
        remove_if_equal(limit, "terminate_code", &stated);
    }
}

fn remove_if_equal(fields: &mut Value, name: &str, default: &str) {
    if let Some(fields) = fields.as_object_mut().filter(|fields| fields.get(name).is_some_and(|value| value == default))
    {
        fields.shift_remove(name);
    }
}

/// Writes integers that are written as decimals, such as `1.0`, as integers.
fn use_integers(value: &mut Value) {
    match value {
        Value::Number(number) => {
            let decimal = number.as_f64().filter(|number| number.fract() == 0.0 && number.abs() < MAX_EXACT);
            if let Some(decimal) = decimal.filter(|_| number.is_f64()) {
                #[expect(clippy::cast_possible_truncation, reason = "it is an integer below 2^53")]
                let integer = decimal as i64;
                *value = integer.into();
            }
        }
        Value::Array(items) => items.iter_mut().for_each(use_integers),
        Value::Object(fields) => fields.values_mut().for_each(use_integers),
        Value::Null | Value::Bool(_) | Value::String(_) => {}
    }
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
