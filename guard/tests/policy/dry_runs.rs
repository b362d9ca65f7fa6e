//! Recorded calls, decided again.

use std::sync::Arc;

use counterproof_artifact::canonical::canonical_hash;
use counterproof_guard::policy::{DryRun, ObservedCalls, Policy, dry_run};
use counterproof_ledger::event::{Action, Event};
use serde_json::{Value, json};

use crate::kit::rules;

const DENY: &str =
    "- {rule_id: no-force, kind: deny, match: {tool_name: {glob: [push]}, args: {key_equals: {force: true}}}}\n";

/// The events of a source, as the guard records them.
#[derive(Default)]
struct Recorded {
    lines: Vec<String>,
    calls: u64,
}

impl Recorded {
    fn add(&mut self, shim: &str, ms: u64, kind: &str, fields: &Value) {
        let mut event = json!({
            "v": "0.1.0", "type": kind, "ts": format!("2026-01-31T12:00:{:02}.{:03}Z", ms / 1000, ms % 1000),
            "run_id": "r", "agent_id": "a", "client": "codex", "env": "ci",
            "source": {"host_id": "h", "proc_id": "1", "shim_id": shim},
        });
        for (name, value) in fields.as_object().unwrap() {
            event[name] = value.clone();
        }
        // The line is an event, or the test is wrong.
        serde_json::from_value::<Event>(event.clone()).unwrap();
        self.lines.push(event.to_string());
    }

    /// Changes the decision about the latest call to one of the mode `observe`.
    fn observe(&mut self, action: &str, rule_id: &Value) {
        let at = self.lines.len() - 2;
        let mut event: Value = serde_json::from_str(&self.lines[at]).unwrap();
        event["decision"]["observed"] = json!({"action": action, "rule_id": rule_id, "reason_code": "R"});
        serde_json::from_value::<Event>(event.clone()).unwrap();
        self.lines[at] = event.to_string();
    }

    /// Adds a call that was allowed, with its preview if it is recorded.
    fn call(&mut self, shim: &str, ms: u64, tool: &str, args: &Value, preview: Option<&str>, status: &str) {
        self.calls += 1;
        let text = args.to_string();
        let call = json!({"call_id": format!("c{}", self.calls), "server_name": "git", "tool_name": tool, "args_hash": canonical_hash(args)});
        let mut start = call.clone();
        start["transport"] = json!("mcp_stdio");
        start["bytes_in"] = json!(text.len());
        start["seq"] = json!(self.calls);
        start["preview"] = json!({"truncated": preview.is_some(), "args_preview": preview.unwrap_or(&text)});
        self.add(shim, ms, "tool_call_start", &json!({"call": start}));
        let policy = json!({"policy_id": "default", "policy_version": "0.1.0", "policy_hash": "none"});
        let explain = json!({"summary": "s", "reason_code": "DEFAULT_ALLOW"});
        let decision =
            json!({"action": "ALLOW", "rule_id": null, "severity": "info", "explain": explain, "policy": policy});
        self.add(shim, ms, "tool_call_decision", &json!({"call": call, "decision": decision}));
        let end =
            json!({"call": call, "status": status, "latency_ms": 1, "bytes_out": 2, "preview": {"truncated": false}});
        self.add(shim, ms, "tool_call_end", &end);
    }

    fn decide(&self, policy: Policy) -> DryRun {
        dry_run(&Arc::new(policy), self.lines.join("\n").as_bytes())
    }
}

#[test]
fn calls_that_would_be_decided_differently_are_listed() {
    let mut recorded = Recorded::default();
    recorded.call("s1", 0, "push", &json!({"force": true}), None, "OK");
    recorded.call("s1", 10, "push", &json!({"force": false}), None, "OK");
    recorded.call("s1", 20, "pull", &json!({}), None, "OK");
    let found = recorded.decide(rules("observe", DENY));
    assert_eq!((found.sources, found.calls, found.calls_without_arguments), (1, 3, 0));
    let [difference] = &found.differences[..] else { panic!("{found:?}") };
    assert_eq!((difference.call_id.as_str(), difference.tool_name.as_str()), ("c1", "push"));
    assert_eq!((difference.before.action, difference.after.action), (Action::Allow, Action::Block));
    assert_eq!(difference.after.rule_id.as_deref(), Some("no-force"));
}

#[test]
fn each_source_has_its_own_counters_and_its_recorded_times_and_errors() {
    let rule = "- {rule_id: one, kind: rate_limit, match: {tool_name: {glob: [push]}}, effect: {rate_limit: {capacity: 1, refill_tokens: 1, refill_period_ms: 1000}}}
- {rule_id: failing, kind: breaker, match: {tool_name: {glob: [pull]}}, effect: {breaker: {error_threshold: 1, window_ms: 500}}}
";
    let mut recorded = Recorded::default();
    recorded.call("s1", 0, "push", &json!({}), None, "OK");
    recorded.call("s2", 1, "push", &json!({}), None, "OK");
    recorded.call("s1", 999, "push", &json!({}), None, "OK");
    recorded.call("s1", 1000, "push", &json!({}), None, "OK");
    recorded.call("s1", 2000, "pull", &json!({}), None, "ERROR");
    recorded.call("s1", 2499, "pull", &json!({}), None, "OK");
    recorded.call("s1", 2500, "pull", &json!({}), None, "OK");
    let found = recorded.decide(rules("guardrails", rule));
    let ids: Vec<_> =
        found.differences.iter().map(|it| (it.call_id.as_str(), it.after.rule_id.as_deref().unwrap())).collect();
    assert_eq!(ids, [("c3", "one"), ("c6", "failing")]);
    assert_eq!(found.sources, 2);
}

#[test]
fn arguments_that_are_not_recorded_are_undecided_and_other_lines_are_reported() {
    let mut recorded = Recorded::default();
    recorded.call("s1", 0, "push", &json!({"force": false}), Some("[TRUNCATED]"), "OK");
    recorded.lines.push("not json".to_owned());
    recorded.lines.push(String::new());
    let found = recorded.decide(rules("guardrails", DENY));
    assert_eq!((found.calls_without_arguments, found.differences[0].after.reason_code.as_str()), (1, "POLICY_ERROR"));
    assert_eq!((found.problems.len(), found.problems[0].line), (1, 4));
}

#[test]
fn calls_of_the_mode_observe_are_counted_apart() {
    let mut recorded = Recorded::default();
    recorded.call("s1", 0, "push", &json!({"force": true}), None, "OK");
    recorded.observe("BLOCK", &json!("no-force"));
    recorded.call("s1", 10, "pull", &json!({}), None, "OK");
    recorded.observe("BLOCK", &json!("no-pull"));
    recorded.call("s1", 20, "push", &json!({"force": true}), None, "OK");
    let found = recorded.decide(rules("guardrails", DENY));
    assert_eq!(found.observed, ObservedCalls { calls: 2, refused_before: 2, refused_after: 1 });
    let differences: Vec<_> = found.differences.iter().map(|it| (it.call_id.as_str(), it.is_observed)).collect();
    assert_eq!(differences, [("c2", true), ("c3", false)]);
}

#[test]
fn calls_without_a_recorded_decision_are_not_compared() {
    let mut recorded = Recorded::default();
    recorded.call("s1", 0, "push", &json!({"force": true}), None, "OK");
    recorded.call("s1", 10, "push", &json!({"force": true}), None, "OK");
    recorded.lines.remove(1);
    let found = recorded.decide(rules("guardrails", DENY));
    assert_eq!((found.calls, found.calls_compared, found.differences.len()), (2, 1, 1));
}
