//! The rows of the checklist that are about decisions.

use counterproof_ledger::event::{Action, Transport};
use serde_json::json;

use crate::kit::{Run, rules};

const DENY_PUSH: &str = "- {rule_id: no-push, kind: deny, match: {tool_name: {glob: [push]}}, severity: critical}\n";

#[test]
fn pol_001_observe_mode_allows_every_call_and_states_what_would_have_been_decided() {
    let mut run = Run::new(rules("observe", DENY_PUSH));
    let decision = run.call("git", "push", &json!({}));
    assert_eq!((decision.record.action, decision.record.rule_id), (Action::Allow, None));
    assert_eq!(decision.record.explain.reason_code, "OBSERVE_MODE");
    let observed = decision.record.observed.unwrap();
    assert_eq!((observed.action, observed.rule_id.as_deref()), (Action::Block, Some("no-push")));
    assert_eq!(observed.reason_code, "POLICY_BLOCK");
    let observed = run.call("git", "pull", &json!({})).record.observed.unwrap();
    assert_eq!((observed.action, observed.reason_code.as_str()), (Action::Allow, "DEFAULT_ALLOW"));
}

#[test]
fn pol_002_a_deny_rule_above_an_allow_rule_decides() {
    let allow = "- {rule_id: all, kind: allow}\n";
    let mut run = Run::new(rules("guardrails", &format!("{DENY_PUSH}{allow}")));
    let decision = run.call("git", "push", &json!({})).record;
    assert_eq!((decision.action, decision.rule_id.as_deref()), (Action::Block, Some("no-push")));
    assert_eq!(decision.explain.reason_code, "POLICY_BLOCK");
    assert_eq!(run.reason("pull"), (Action::Allow, Some("all".to_owned()), "POLICY_ALLOW".to_owned()));
    let mut run = Run::new(rules("guardrails", &format!("{allow}{DENY_PUSH}")));
    assert_eq!(run.reason("push"), (Action::Allow, Some("all".to_owned()), "POLICY_ALLOW".to_owned()));
}

#[test]
fn pol_003_a_budget_refuses_the_fourth_call() {
    for (on_exceed, action) in [
        ("", Action::Block),
        (", on_exceed: REJECT_WITH_HINT, hint_text: Use the cache", Action::RejectWithHint),
        (", on_exceed: TERMINATE_RUN", Action::TerminateRun),
    ] {
        let budget = format!("limit_calls: 3{on_exceed}");
        let rule = format!(
            "- {{rule_id: three, kind: budget, match: {{tool_name: {{glob: [push]}}}}, effect: {{budget: {{{budget}}}}}}}\n"
        );
        let mut run = Run::new(rules("guardrails", &rule));
        for _ in 0..3 {
            assert_eq!(run.action("push"), Action::Allow);
            assert_eq!(run.action("pull"), Action::Allow);
        }
        assert_eq!(run.reason("push"), (action, Some("three".to_owned()), "BUDGET_EXCEEDED".to_owned()));
        assert_eq!(run.action("push"), action);
        assert_eq!(run.action("pull"), Action::Allow);
    }
}

#[test]
fn pol_004_a_token_bucket_throttles_calls_without_tokens() {
    let limit = "{capacity: 2, refill_tokens: 1, refill_period_ms: 60000, on_limit: THROTTLE, backoff_ms: 500}";
    let rule = format!("- {{rule_id: slow, kind: rate_limit, effect: {{rate_limit: {limit}}}}}\n");
    let mut run = Run::new(rules("guardrails", &rule));
    assert_eq!([run.action("a"), run.action("b")], [Action::Allow; 2]);
    for _ in 0..3 {
        let decision = run.call("git", "c", &json!({})).record;
        assert_eq!((decision.action, decision.backoff_ms), (Action::Throttle, Some(500)));
        assert_eq!(
            (decision.rule_id.as_deref(), decision.explain.reason_code.as_str()),
            (Some("slow"), "RATE_LIMITED")
        );
    }
    assert_eq!(run.at(59_999).action("a"), Action::Throttle);
    assert_eq!(run.at(60_000).action("a"), Action::Allow);
    assert_eq!(run.at(60_001).action("a"), Action::Throttle);
}

#[test]
fn pol_005_a_breaker_trips_at_the_fifth_equal_call() {
    for (on_trip, action) in
        [("", Action::Block), (", on_trip: TERMINATE_RUN, terminate_code: LOOP", Action::TerminateRun)]
    {
        let breaker = format!("{{repeat_threshold: 5, repeat_window_ms: 10000{on_trip}}}");
        let rule = format!("- {{rule_id: loop, kind: breaker, effect: {{breaker: {breaker}}}}}\n");
        let mut run = Run::new(rules("guardrails", &rule));
        for number in 0..4 {
            run.at(number * 1000);
            assert_eq!(run.action("push"), Action::Allow);
            assert_eq!(run.call("git", "push", &json!({"other": number})).record.action, Action::Allow);
        }
        let decision = run.at(9999).call("git", "push", &json!({}));
        assert_eq!(decision.record.action, action);
        assert_eq!(decision.record.explain.reason_code, "BREAKER_TRIPPED");
        let trip = decision.breaker.unwrap();
        assert_eq!(
            (trip.rule_id.as_str(), trip.trigger.as_str(), trip.count, trip.window_ms),
            ("loop", "repeat", 5, 10_000)
        );
        if action == Action::TerminateRun {
            assert_eq!(decision.record.terminate.unwrap().terminate_code, "LOOP");
        }
        // The window has passed.
        assert_eq!(run.at(19_999).action("push"), Action::Allow);
    }
}

#[test]
fn pol_006_a_repeated_write_is_refused_within_the_window() {
    let rule = "- {rule_id: once, kind: dedupe, match: {tool_name: {glob: [write_*]}},
  effect: {dedupe: {window_ms: 60000, key: args_hash}}}\n";
    let mut run = Run::new(rules("guardrails", rule));
    let (args, reordered) = (json!({"path": "a", "text": "b"}), json!({"text": "b", "path": "a"}));
    assert_eq!(run.call("fs", "write_file", &args).record.action, Action::Allow);
    let decision = run.at(59_999).call("fs", "write_file", &reordered).record;
    assert_eq!((decision.action, decision.rule_id.as_deref()), (Action::Block, Some("once")));
    assert_eq!(decision.explain.reason_code, "DEDUPE_DUPLICATE");
    assert!(decision.explain.summary.contains("repeats an earlier one"), "{}", decision.explain.summary);
    // Each repetition extends the window.
    assert_eq!(run.at(119_998).call("fs", "write_file", &args).record.action, Action::Block);
    assert_eq!(run.at(179_998).call("fs", "write_file", &args).record.action, Action::Allow);
    assert_eq!(run.call("fs", "write_file", &json!({"path": "c"})).record.action, Action::Allow);
    assert_eq!([run.action("read"), run.action("read")], [Action::Allow; 2]);
}

#[test]
fn pol_007_later_rules_match_the_risk_class_of_a_tag_rule() {
    let tag = "- {rule_id: tag, kind: tag, match: {tool_name: {glob: [push]}}, effect: {tag: {add_risk_class: [Write_Like]}}}\n";
    let deny = "- {rule_id: no-writes, kind: deny, match: {risk_class: [WRITE_LIKE]}}\n";
    let mut run = Run::new(rules("guardrails", &format!("{tag}{deny}")));
    let decision = run.call("git", "push", &json!({}));
    assert_eq!((decision.record.action, decision.record.rule_id.as_deref()), (Action::Block, Some("no-writes")));
    assert_eq!(decision.tags, ["write_like"]);
    assert_eq!(run.action("pull"), Action::Allow);
    let mut run = Run::new(rules("guardrails", &format!("{deny}{tag}")));
    assert_eq!(run.action("push"), Action::Allow);
}

#[test]
fn adapt_002_the_transport_does_not_change_decisions() {
    let limit = "- {rule_id: two, kind: budget, effect: {budget: {limit_calls: 2}}}\n";
    let decisions = |transport: Transport| {
        let mut run = Run::new(rules("guardrails", &format!("{DENY_PUSH}{limit}")));
        run.transport = transport;
        ["push", "pull", "pull", "pull"].map(|tool| run.call("git", tool, &json!({"a": 1})))
    };
    assert_eq!(decisions(Transport::McpStdio), decisions(Transport::McpHttp));
}
