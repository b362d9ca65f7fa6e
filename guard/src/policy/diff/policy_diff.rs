//! Compares two policies.

use std::collections::HashMap;

use serde::Serialize;
use serde_json::Value;

use super::changes::changes;
use super::effective;
use crate::policy::model::RuleId;

/// The differences between two policies.
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
    /// The value before. `None` if the field was missing.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub before: Option<Value>,
    /// The value after. `None` if the field is missing.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub after: Option<Value>,
}

/// A rule that differs.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(tag = "change", rename_all = "snake_case")]
pub enum RuleChange {
    /// Only the new policy has the rule.
    Added {
        rule_id: RuleId,
        /// Its place in the new policy, from 1.
        place: usize,
        /// The rule as it takes effect.
        rule: Value,
    },
    /// Only the old policy has the rule.
    Removed {
        rule_id: RuleId,
        /// Its place in the old policy, from 1.
        place: usize,
        /// The rule as it took effect.
        rule: Value,
    },
    /// Both have the rule.
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
    /// True if the policies mean the same.
    pub fn is_empty(&self) -> bool {
        self.fields.is_empty() && self.rules.is_empty()
    }
}

/// Compares the documents of two valid policies.
pub fn diff(before: &Value, after: &Value) -> PolicyDiff {
    let mut fields = changes(&effective::header(before), &effective::header(after));
    fields.sort_by_key(|change| importance(&change.pointer));
    PolicyDiff { fields, rules: rule_changes(&rules(before), &rules(after)) }
}

/// What decides most comes first.
fn importance(pointer: &str) -> usize {
    let order = ["/mode", "/defaults", "/selectors", "/responses", "/policy_id", "/version"];
    order.iter().position(|start| pointer.starts_with(start)).unwrap_or(order.len())
}

fn rules(document: &Value) -> Vec<(RuleId, Value)> {
    let rules = document.get("rules").and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
    rules.iter().filter_map(|rule| Some((RuleId::new(rule["rule_id"].as_str()?)?, effective::rule(rule)))).collect()
}

fn rule_changes(before: &[(RuleId, Value)], after: &[(RuleId, Value)]) -> Vec<RuleChange> {
    let old: HashMap<&RuleId, usize> = before.iter().enumerate().map(|(index, (id, _))| (id, index)).collect();
    let common: Vec<usize> = after.iter().filter_map(|(id, _)| old.get(id).copied()).collect();
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
