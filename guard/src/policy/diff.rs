//! The differences between two policies, by meaning: defaults are filled in, and the order within lists of conditions does not
//! matter.

use std::cmp::Ordering;
use std::collections::HashMap;

use counterproof_artifact::pointer;
use serde::Serialize;
use serde_json::{Map, Value, json};

use super::document::default_reason_code;
use super::model::RuleId;

#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct PolicyDiff {
    /// Fields outside of the rules, the mode and the defaults first.
    pub fields: Vec<FieldChange>,
    /// Rules, in the order of the new policy; removed rules come last.
    pub rules: Vec<RuleChange>,
}

#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct FieldChange {
    /// A JSON Pointer within the policy or the rule.
    pub pointer: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub before: Option<Value>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub after: Option<Value>,
}

#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(tag = "change", rename_all = "snake_case")]
pub enum RuleChange {
    Added {
        rule_id: RuleId,
        place: usize,
        rule: Value,
    },
    Removed {
        rule_id: RuleId,
        place: usize,
        rule: Value,
    },
    Changed {
        rule_id: RuleId,
        /// The place in the old policy, if the rule moved relative to other rules.
        #[serde(skip_serializing_if = "Option::is_none")]
        moved_from: Option<usize>,
        /// The place in the new policy, from 1.
        place: usize,
        /// The fields that differ. Empty if the rule only moved.
        fields: Vec<FieldChange>,
    },
}

impl PolicyDiff {
    pub fn is_empty(&self) -> bool {
        self.fields.is_empty() && self.rules.is_empty()
    }
}

pub fn diff(before: &Value, after: &Value) -> PolicyDiff {
    // With defaults filled in: a field that states its default is not a difference.
    let mut fields = changes(&effective_header(before), &effective_header(after));
    fields.sort_by_key(|change| importance(&change.pointer));
    PolicyDiff { fields, rules: rule_changes(&rules(before), &rules(after)) }
}

fn importance(pointer: &str) -> usize {
    let order = ["/mode", "/defaults", "/selectors", "/responses", "/policy_id", "/version"];
    order.iter().position(|start| pointer.starts_with(start)).unwrap_or(order.len())
}

fn rules(document: &Value) -> Vec<(RuleId, Value)> {
    let rules = document.get("rules").and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
    rules.iter().filter_map(|rule| Some((RuleId::new(rule["rule_id"].as_str()?)?, effective_rule(rule)))).collect()
}

fn rule_changes(before: &[(RuleId, Value)], after: &[(RuleId, Value)]) -> Vec<RuleChange> {
    let old: HashMap<&RuleId, usize> = before.iter().enumerate().map(|(index, (id, _))| (id, index)).collect();
    let common: Vec<usize> = after.iter().filter_map(|(id, _)| old.get(id).copied()).collect();
    // Of the rules that both have, as few as possible count as moved.
    let unmoved = longest_increasing(&common);
    let mut found = Vec::new();
    for (index, (rule_id, rule)) in after.iter().enumerate() {
        let (rule_id, place) = (rule_id.clone(), index + 1);
        let Some(&from) = old.get(&rule_id) else {
            found.push(RuleChange::Added { rule_id, place, rule: rule.clone() });
            continue;
        };
        let fields = changes(&before[from].1, rule);
        let moved_from = (!unmoved.contains(&from)).then_some(from + 1);
        if moved_from.is_some() || !fields.is_empty() {
            found.push(RuleChange::Changed { rule_id, moved_from, place, fields });
        }
    }
    let removed = before.iter().enumerate().filter(|(_, (id, _))| !after.iter().any(|(other, _)| other == id));
    found.extend(removed.map(|(index, (rule_id, rule))| RuleChange::Removed {
        rule_id: rule_id.clone(),
        place: index + 1,
        rule: rule.clone(),
    }));
    found
}

/// Returns a longest increasing subsequence: the rules that kept their order.
fn longest_increasing(numbers: &[usize]) -> Vec<usize> {
    // For each length, the index of the smallest last number; and for each number, the index of the one before it.
    let (mut ends, mut before): (Vec<usize>, Vec<Option<usize>>) = (Vec::new(), vec![None; numbers.len()]);
    for (index, number) in numbers.iter().enumerate() {
        let length = ends.partition_point(|end| numbers[*end] < *number);
        before[index] = length.checked_sub(1).map(|shorter| ends[shorter]);
        if length == ends.len() {
            ends.push(index);
        } else {
            ends[length] = index;
        }
    }
    let mut chain = Vec::new();
    let mut at = ends.last().copied();
    while let Some(index) = at {
        chain.push(numbers[index]);
        at = before[index];
    }
    chain
}

const MAX_EXACT: f64 = 9_007_199_254_740_992.0;

/// Returns the part of a document that is not a rule, as it takes effect.
fn effective_header(document: &Value) -> Value {
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

fn effective_rule(rule: &Value) -> Value {
    let mut rule = rule.clone();
    fill(&mut rule, &json!({"enabled": true, "severity": "info", "match": {}, "effect": {}}));
    let kind = rule["kind"].as_str().unwrap_or_default().to_owned();
    // After the first defaults, because they depend on the kind and on the stated action.
    let defaults = effect_defaults(&kind, &rule);
    fill(&mut rule, &defaults);
    use_integers(&mut rule);
    // Default codes follow from the kind and the action, which are compared anyway.
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
            // YAML and JSON writers differ in how they write whole numbers.
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

fn changes(before: &Value, after: &Value) -> Vec<FieldChange> {
    let mut changes = Vec::new();
    compare_values(String::new(), Some(before), Some(after), &mut changes);
    changes
}

fn compare_values(place: String, before: Option<&Value>, after: Option<&Value>, changes: &mut Vec<FieldChange>) {
    match (before, after) {
        (Some(before), Some(after)) if before == after => {}
        (Some(Value::Object(before)), Some(Value::Object(after))) => {
            let added = after.keys().filter(|key| !before.contains_key(*key));
            for key in before.keys().chain(added) {
                compare_values(pointer::child(&place, key), before.get(key), after.get(key), changes);
            }
        }
        (before, after) => {
            changes.push(FieldChange { pointer: place, before: before.cloned(), after: after.cloned() });
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    fn document(rules: &Value) -> Value {
        json!({"policy_id": "p", "version": "1", "mode": "observe", "rules": rules})
    }

    #[test]
    fn defaults_and_the_order_of_lists_are_no_differences() {
        let before = document(&json!([{"rule_id": "a", "kind": "deny", "match": {"tool_name": {"glob": ["x", "y"]}}}]));
        let mut after = document(&json!([{
            "rule_id": "a", "kind": "deny", "enabled": true, "severity": "info", "effect": {"action": "BLOCK"},
            "match": {"tool_name": {"glob": ["y", "x", "x"]}}
        }]));
        after["defaults"] = json!({"decision_on_error": "BLOCK"});
        after["responses"] = json!({"codes": {"hint": -32083}});
        assert_eq!(diff(&before, &after), PolicyDiff::default());
        let limit = |more: &Value| {
            let mut limit = json!({"capacity": 1, "refill_tokens": 1, "refill_period_ms": 1});
            for (name, value) in more.as_object().unwrap() {
                limit[name] = value.clone();
            }
            document(&json!([{"rule_id": "a", "kind": "rate_limit", "effect": {"rate_limit": limit}}]))
        };
        let written =
            limit(&json!({"scope": "run", "on_limit": "THROTTLE", "backoff_ms": 1000, "cost_tokens_per_call": 1}));
        assert!(diff(&limit(&json!({})), &written).is_empty());
        assert!(!diff(&limit(&json!({})), &limit(&json!({"backoff_ms": 5}))).is_empty());
        let equals = |list: &Value| {
            document(&json!([{"rule_id": "a", "kind": "deny", "match": {"args": {"key_equals": {"k": list}}}}]))
        };
        assert!(!diff(&equals(&json!([1, 2])), &equals(&json!([2, 1]))).is_empty());
    }

    #[test]
    fn other_ways_to_write_the_same_policy_are_no_differences() {
        let rule = |rule: Value| document(&json!([rule]));
        for (one, other) in [
            (
                json!({"rule_id": "a", "kind": "deny", "match": {"args": {"key_equals": {"n": 1}, "key_in": {"m": [2, 3]}}}}),
                json!({"rule_id": "a", "kind": "deny", "match": {"args": {"key_equals": {"n": 1.0}, "key_in": {"m": [3.0, 2]}}},
                       "effect": {"action": "BLOCK", "reason_code": "POLICY_BLOCK", "hint_kind": "OTHER"}}),
            ),
            (
                json!({"rule_id": "a", "kind": "deny", "effect": {"action": "TERMINATE_RUN"}}),
                json!({"rule_id": "a", "kind": "deny", "effect": {
                    "action": "TERMINATE_RUN", "reason_code": "POLICY_TERMINATED", "terminate_code": "POLICY_TERMINATED"}}),
            ),
            (
                json!({"rule_id": "a", "kind": "budget", "effect": {"reason_code": "X", "budget": {"limit_calls": 5}}}),
                json!({"rule_id": "a", "kind": "budget", "effect": {"reason_code": "X", "budget": {"limit_calls": 5.0, "terminate_code": "X"}}}),
            ),
            (
                json!({"rule_id": "a", "kind": "allow"}),
                json!({"rule_id": "a", "kind": "allow", "effect": {"reason_code": "POLICY_ALLOW"}}),
            ),
        ] {
            assert_eq!(diff(&rule(one), &rule(other)), PolicyDiff::default());
        }
        let code =
            json!({"rule_id": "a", "kind": "deny", "effect": {"action": "THROTTLE", "reason_code": "POLICY_BLOCK"}});
        let plain = json!({"rule_id": "a", "kind": "deny", "effect": {"action": "THROTTLE"}});
        assert!(!diff(&rule(plain), &rule(code)).is_empty(), "the default of another action");
        let mut labels = [document(&json!([])), document(&json!([])), document(&json!([]))];
        labels[0]["selectors"] = json!({"workload": {"labels": {"team": "a"}}});
        labels[1]["selectors"] = json!({"workload": {"labels": {"team": ["a"]}}});
        labels[2]["selectors"] = json!({"workload": {"labels": {"team": ["b"]}}});
        assert_eq!(diff(&labels[0], &labels[1]), PolicyDiff::default());
        assert!(!diff(&labels[0], &labels[2]).is_empty());
    }

    #[test]
    fn rules_are_added_removed_moved_and_changed() {
        let rule = |id: &str, kind: &str| json!({"rule_id": id, "kind": kind});
        let before = document(&json!([rule("a", "deny"), rule("b", "deny"), rule("c", "deny"), rule("d", "allow")]));
        let mut after =
            document(&json!([rule("d", "allow"), rule("a", "deny"), rule("n", "deny"), rule("c", "allow")]));
        after["mode"] = json!("guardrails");
        after["description"] = json!("x");
        let diff = diff(&before, &after);
        let fields: Vec<_> = diff.fields.iter().map(|change| change.pointer.as_str()).collect();
        assert_eq!(fields, ["/mode", "/description"]);
        let rules: Vec<String> = diff
            .rules
            .iter()
            .map(|change| match change {
                RuleChange::Added { rule_id, place, .. } => format!("+{rule_id}@{place}"),
                RuleChange::Removed { rule_id, place, .. } => format!("-{rule_id}@{place}"),
                RuleChange::Changed { rule_id, moved_from, place, fields } => {
                    let fields: Vec<_> = fields.iter().map(|field| field.pointer.as_str()).collect();
                    format!("{rule_id}@{place} {moved_from:?} {fields:?}")
                }
            })
            .collect();
        let expected = ["d@1 Some(4) []", "+n@3", "c@4 None [\"/kind\", \"/effect/action\"]", "-b@2"];
        assert_eq!(rules, expected);
    }

    proptest! {
        #[test]
        fn a_policy_does_not_differ_from_itself_and_moves_are_symmetric(order in Just((0..8_usize).collect::<Vec<_>>()).prop_shuffle()) {
            let rules = |order: &[usize]| -> Value {
                order.iter().map(|id| json!({"rule_id": id.to_string(), "kind": "deny"})).collect()
            };
            let (before, after) = (document(&rules(&[0, 1, 2, 3, 4, 5, 6, 7])), document(&rules(&order)));
            prop_assert!(diff(&after, &after).is_empty());
            prop_assert_eq!(diff(&before, &after).rules.len(), diff(&after, &before).rules.len());
        }
    }
}
