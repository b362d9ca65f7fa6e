//! Properties of decisions over random policies and calls.

use counterproof_ledger::event::Action;
use proptest::prelude::*;
use serde_json::{Value, json};

use crate::kit::{Run, policy};

/// A rule of any kind, over three tools.
fn rule() -> impl Strategy<Value = Value> {
    let conditions = prop_oneof![
        Just(json!({})),
        prop::sample::select(vec!["a", "b", "[bc]"]).prop_map(|glob| json!({"tool_name": {"glob": [glob]}})),
        Just(json!({"risk_class": ["w"]})),
        Just(json!({"args": {"numeric_range": {"n": {"min": 1}}}})),
        Just(json!({"cel": "call.args.n == 0"})),
    ];
    let action = prop::sample::select(vec!["BLOCK", "THROTTLE", "REJECT_WITH_HINT", "TERMINATE_RUN"]);
    let scope = prop::sample::select(vec!["run", "tool", "server_tool"]);
    let effect = (0..7_usize, action, scope, 1..4_u64).prop_map(|(kind, action, scope, limit)| match kind {
        0 => ("allow", json!({})),
        1 => ("deny", json!({"action": action})),
        2 => ("budget", json!({"budget": {"scope": scope, "limit_calls": limit, "on_exceed": action}})),
        3 => ("rate_limit", json!({"rate_limit": {"scope": scope, "capacity": limit, "refill_tokens": 1, "refill_period_ms": 50, "on_limit": action}})),
        4 => ("breaker", json!({"breaker": {"scope": scope, "repeat_threshold": limit + 1, "repeat_window_ms": 100, "error_threshold": limit, "window_ms": 80, "on_trip": action}})),
        5 => ("dedupe", json!({"dedupe": {"scope": scope, "window_ms": 60, "on_duplicate": action}})),
        _ => ("tag", json!({"tag": {"add_risk_class": ["W"]}})),
    });
    (conditions, effect, prop::bool::weighted(0.9)).prop_map(|(conditions, (kind, effect), enabled)| {
        json!({"kind": kind, "effect": effect, "match": conditions, "enabled": enabled})
    })
}

fn document(mode: &str, rules: &[Value]) -> String {
    let named = rules.iter().enumerate().map(|(index, rule)| {
        let mut rule = rule.clone();
        rule["rule_id"] = index.to_string().into();
        rule
    });
    json!({"policy_id": "p", "version": "1", "mode": mode, "rules": named.collect::<Vec<_>>()}).to_string()
}

/// A call: the tool, its argument, the time since the call before, and whether it fails.
type Call = (usize, u8, u64, bool);

fn calls() -> impl Strategy<Value = Vec<Call>> {
    prop::collection::vec((0..3_usize, 0..3_u8, 0..40_u64, any::<bool>()), 0..25)
}

/// Decides about all calls: the decision of each, as the rules make it.
fn decide(text: &str, calls: &[Call]) -> Vec<(Action, Option<String>, String)> {
    let mut run = Run::new(policy(text));
    let mut now = 0;
    let decisions = calls.iter().map(|(tool, number, step, fails)| {
        now += step;
        let tool = ["a", "b", "c"][*tool];
        // Without the number, expressions fail.
        let args = if *number == 2 { json!({}) } else { json!({"n": number}) };
        let record = run.at(now).call("git", tool, &args).record;
        if *fails {
            run.fail(tool);
        }
        match record.observed {
            Some(observed) => (observed.action, observed.rule_id, observed.reason_code),
            None => (record.action, record.rule_id, record.explain.reason_code),
        }
    });
    decisions.collect()
}

proptest! {
    #[test]
    fn equal_runs_have_equal_decisions(rules in prop::collection::vec(rule(), 0..8), calls in calls()) {
        let text = document("guardrails", &rules);
        prop_assert_eq!(decide(&text, &calls), decide(&text, &calls));
    }

    #[test]
    fn observe_mode_states_the_decisions_of_guardrails_mode(rules in prop::collection::vec(rule(), 0..8), calls in calls()) {
        let (enforced, observed) = (document("guardrails", &rules), document("observe", &rules));
        prop_assert_eq!(decide(&enforced, &calls), decide(&observed, &calls));
    }

    #[test]
    fn without_refusing_rules_every_call_is_allowed(rules in prop::collection::vec(rule(), 0..8), calls in calls()) {
        let harmless: Vec<Value> = rules.into_iter().filter(|rule| ["allow", "tag"].contains(&rule["kind"].as_str().unwrap())).collect();
        let decisions = decide(&document("guardrails", &harmless), &calls);
        prop_assert!(decisions.iter().all(|(action, ..)| *action == Action::Allow));
    }

    #[test]
    fn disabled_rules_change_nothing(rules in prop::collection::vec(rule(), 0..8), calls in calls()) {
        let mut named = rules;
        for (index, rule) in named.iter_mut().enumerate() {
            rule["effect"]["reason_code"] = format!("R{index}").into();
            if rule["kind"] == "tag" {
                rule["effect"].as_object_mut().unwrap().remove("reason_code");
            }
        }
        let enabled: Vec<Value> = named.iter().filter(|rule| rule["enabled"] == true).cloned().collect();
        let reasons = |rules: &[Value]| -> Vec<(Action, String)> {
            decide(&document("guardrails", rules), &calls).into_iter().map(|(action, _, reason)| (action, reason)).collect()
        };
        prop_assert_eq!(reasons(&named), reasons(&enabled));
    }

    #[test]
    fn a_budget_allows_exactly_its_limit_and_never_allows_again(limit in 1..6_u64, calls in calls()) {
        let rules = [json!({"kind": "budget", "effect": {"budget": {"limit_calls": limit}}})];
        let decisions = decide(&document("guardrails", &rules), &calls);
        for (index, (action, ..)) in decisions.iter().enumerate() {
            let expected = if (index as u64) < limit { Action::Allow } else { Action::Block };
            prop_assert_eq!(*action, expected);
        }
    }

    #[test]
    fn a_token_bucket_allows_at_most_its_capacity_and_refills(capacity in 1..5_u64, calls in calls()) {
        let limit = json!({"capacity": capacity, "refill_tokens": 1, "refill_period_ms": 50});
        let rules = [json!({"kind": "rate_limit", "effect": {"rate_limit": limit}})];
        let decisions = decide(&document("guardrails", &rules), &calls);
        let (mut allowed, mut time, mut first) = (0, 0, None);
        for ((action, ..), (_, _, step, _)) in decisions.iter().zip(&calls) {
            time += step;
            allowed += u64::from(*action == Action::Allow);
            let start: u64 = *first.get_or_insert(time);
            prop_assert!(allowed <= capacity + (time - start) / 50);
        }
    }
}
