//! The order of evaluation, what counts, and undecided rules.

use counterproof_ledger::event::{Action, HintKind};
use serde_json::{Value, json};

use crate::kit::{Run, identity, policy, rules};

const LOOP: &str =
    "- {rule_id: loop, kind: breaker, effect: {breaker: {repeat_threshold: 3, repeat_window_ms: 1000}}}\n";
const BUDGET: &str = "- {rule_id: two, kind: budget, effect: {budget: {limit_calls: 2}}}\n";
const DENY: &str = "- {rule_id: no-push, kind: deny, match: {tool_name: {glob: [push]}}}\n";
const SLOW: &str = "- {rule_id: slow, kind: rate_limit, effect: {rate_limit: {capacity: 1, refill_tokens: 1, refill_period_ms: 1000}}}\n";
const ONCE: &str = "- {rule_id: once, kind: dedupe, effect: {dedupe: {window_ms: 5000}}}\n";

fn reason(action: Action, rule: &str, code: &str) -> (Action, Option<String>, String) {
    (action, (!rule.is_empty()).then(|| rule.to_owned()), code.to_owned())
}

#[test]
fn a_refused_call_spends_no_budget_and_takes_no_token() {
    let mut run = Run::new(rules("guardrails", &format!("{BUDGET}{SLOW}{DENY}")));
    for _ in 0..5 {
        assert_eq!(run.reason("push"), reason(Action::Block, "no-push", "POLICY_BLOCK"));
    }
    assert_eq!(run.action("a"), Action::Allow);
    // The retries of a throttled call spend nothing.
    for _ in 0..5 {
        assert_eq!(run.reason("a"), reason(Action::Throttle, "slow", "RATE_LIMITED"));
    }
    assert_eq!(run.at(1000).action("a"), Action::Allow);
    assert_eq!(run.at(2000).reason("a"), reason(Action::Block, "two", "BUDGET_EXCEEDED"));
}

#[test]
fn a_throttled_call_is_not_a_duplicate_when_it_is_retried() {
    let mut run = Run::new(rules("guardrails", &format!("{ONCE}{SLOW}")));
    assert_eq!(run.action("a"), Action::Allow);
    assert_eq!(run.reason("b"), reason(Action::Throttle, "slow", "RATE_LIMITED"));
    assert_eq!(run.at(1000).action("b"), Action::Allow);
    assert_eq!(run.at(2000).reason("b"), reason(Action::Block, "once", "DEDUPE_DUPLICATE"));
}

#[test]
fn a_loop_of_refused_calls_trips_a_breaker() {
    let mut run = Run::new(rules("guardrails", &format!("{DENY}{LOOP}")));
    assert_eq!(run.reason("push"), reason(Action::Block, "no-push", "POLICY_BLOCK"));
    assert_eq!(run.reason("push"), reason(Action::Block, "no-push", "POLICY_BLOCK"));
    assert_eq!(run.reason("push"), reason(Action::Block, "loop", "BREAKER_TRIPPED"));
}

#[test]
fn a_rate_limit_decides_at_once_and_hides_the_call_from_later_rules() {
    let mut run = Run::new(rules("guardrails", &format!("{SLOW}{LOOP}")));
    assert_eq!(run.action("a"), Action::Allow);
    for _ in 0..5 {
        assert_eq!(run.reason("a"), reason(Action::Throttle, "slow", "RATE_LIMITED"));
    }
    let mut run = Run::new(rules("guardrails", &format!("{DENY}{SLOW}")));
    assert_eq!(run.action("a"), Action::Allow);
    assert_eq!(run.reason("push"), reason(Action::Throttle, "slow", "RATE_LIMITED"));
}

#[test]
fn the_most_severe_of_several_breakers_decides() {
    let end = "- {rule_id: end, kind: breaker, effect: {breaker: {repeat_threshold: 4, repeat_window_ms: 1000, on_trip: TERMINATE_RUN}}}\n";
    let mut run = Run::new(rules("guardrails", &format!("{LOOP}{end}")));
    let actions = [(); 4].map(|()| run.action("a"));
    assert_eq!(actions, [Action::Allow, Action::Allow, Action::Block, Action::TerminateRun]);
    let decision = run.call("git", "a", &json!({})).record;
    assert_eq!(
        (decision.rule_id.as_deref(), decision.terminate.unwrap().terminate_code.as_str()),
        (Some("end"), "BREAKER_TRIPPED")
    );
}

#[test]
fn no_later_rule_replaces_the_end_of_the_run() {
    let end = "- {rule_id: end, kind: deny, match: {tool_name: {glob: [drop]}}, effect: {action: TERMINATE_RUN, message: Never}}\n";
    let mut run = Run::new(rules("guardrails", &format!("{end}{SLOW}")));
    assert_eq!(run.action("a"), Action::Allow);
    let decision = run.call("git", "drop", &json!({})).record;
    assert_eq!((decision.action, decision.explain.reason_code.as_str()), (Action::TerminateRun, "POLICY_TERMINATED"));
    assert_eq!(decision.terminate.unwrap().terminate_message, "Never");
}

#[test]
fn an_earlier_milder_breaker_does_not_replace_the_end_of_the_run() {
    let breaker = "- {rule_id: b, kind: breaker, effect: {breaker: {repeat_threshold: 2, repeat_window_ms: 1000, on_trip: THROTTLE}}}\n";
    let end = "- {rule_id: end, kind: deny, match: {tool_name: {glob: [drop]}}, effect: {action: TERMINATE_RUN}}\n";
    let mut run = Run::new(rules("guardrails", &format!("{breaker}{end}")));
    assert_eq!(run.action("get"), Action::Allow);
    assert_eq!(run.reason("get"), reason(Action::Throttle, "b", "BREAKER_TRIPPED"));
    assert_eq!(run.action("drop"), Action::TerminateRun);
    let decision = run.call("git", "drop", &json!({}));
    assert_eq!((decision.record.action, decision.record.rule_id.as_deref()), (Action::TerminateRun, Some("end")));
    assert_eq!(decision.breaker, None, "the breaker did not decide");
    let severe = breaker.replace("THROTTLE", "TERMINATE_RUN");
    let mut run = Run::new(rules("guardrails", &format!("{severe}{end}")));
    assert_eq!(run.reason("drop"), reason(Action::TerminateRun, "end", "POLICY_TERMINATED"));
    assert_eq!(run.reason("drop"), reason(Action::TerminateRun, "b", "BREAKER_TRIPPED"));
}

#[test]
fn a_refusal_names_the_allow_rule_that_could_not_be_decided() {
    let allow = "- {rule_id: a, kind: allow, match: {cel: 'call.args.x == 1'}}\n";
    let deny = "- {rule_id: d, kind: deny, effect: {message: No}}\n";
    let mut run = Run::new(rules("guardrails", &format!("{allow}{deny}")));
    let record = run.call("git", "get", &json!({})).record;
    assert_eq!((record.rule_id.as_deref(), record.explain.reason_code.as_str()), (Some("d"), "POLICY_BLOCK"));
    assert_eq!(record.explain.summary, "No (allow rule `a` could not be decided: `call.args.x` has no value)");
    assert_eq!(run.call("git", "get", &json!({"x": 2})).record.explain.summary, "No");
    assert_eq!(run.call("git", "get", &json!({"x": 1})).record.action, Action::Allow);
    let mut run = Run::new(rules("guardrails", &format!("{deny}{allow}")));
    assert_eq!(run.call("git", "get", &json!({})).record.explain.summary, "No", "the deny rule decided before");
    let mut run = Run::new(rules("guardrails", allow));
    assert_eq!(run.call("git", "get", &json!({})).record.explain.reason_code, "DEFAULT_ALLOW");
}

#[test]
fn the_summary_states_why_a_rule_could_not_be_decided_without_values_of_the_call() {
    let rule = "- {rule_id: d, kind: deny, match: {cel: 'int(call.args.n) > 5'}}\n";
    let summary =
        |mode: &str, args: Value| Run::new(rules(mode, rule)).call("git", "get", &args).record.explain.summary;
    let missing = "rule `d` could not be decided: `call.args.n` has no value";
    assert_eq!(summary("guardrails", json!({})), format!("Refused: {missing}"));
    assert_eq!(summary("observe", json!({})), format!("Allowed: the policy only observes ({missing})"));
    let secret = summary("guardrails", json!({"n": "hunter2"}));
    assert_eq!(secret, "Refused: rule `d` could not be decided: `int(call.args.n)` has no value");
}

#[test]
fn errors_of_a_tool_trip_its_breaker_until_they_leave_the_window() {
    let rule = "- {rule_id: failing, kind: breaker, effect: {breaker: {error_threshold: 2, window_ms: 1000}}}\n";
    let mut run = Run::new(rules("guardrails", rule));
    run.at(0).fail("a");
    assert_eq!(run.action("a"), Action::Allow);
    run.at(500).fail("a");
    let decision = run.call("git", "a", &json!({}));
    assert_eq!(decision.record.action, Action::Block);
    assert_eq!(decision.breaker.unwrap().trigger, "error");
    assert_eq!(run.action("b"), Action::Allow);
    assert_eq!(run.at(999).action("a"), Action::Block);
    assert_eq!(run.at(1000).action("a"), Action::Allow);
}

#[test]
fn budgets_count_cost_units_and_scopes() {
    let rule = |scope: &str| {
        format!(
            "- {{rule_id: b, kind: budget, effect: {{budget: {{scope: {scope}, limit_cost_units: 10, cost_units_per_call: 4}}}}}}\n"
        )
    };
    let mut run = Run::new(rules("guardrails", &rule("run")));
    assert_eq!(["a", "b", "c"].map(|tool| run.action(tool)), [Action::Allow, Action::Allow, Action::Block]);
    let mut run = Run::new(rules("guardrails", &rule("tool")));
    assert_eq!(
        ["a", "a", "b", "a"].map(|tool| run.action(tool)),
        [Action::Allow, Action::Allow, Action::Allow, Action::Block]
    );
    // The same tool name on another server shares the scope `tool`, and not `server_tool`.
    assert_eq!(run.call("other", "a", &json!({})).record.action, Action::Block);
    let mut run = Run::new(rules("guardrails", &rule("server_tool")));
    assert_eq!(["a", "a", "a"].map(|tool| run.action(tool)), [Action::Allow, Action::Allow, Action::Block]);
    assert_eq!(run.call("other", "a", &json!({})).record.action, Action::Allow);
}

#[test]
fn jumps_of_the_clock_refill_no_bucket_twice() {
    let mut run = Run::new(rules("guardrails", SLOW));
    assert_eq!(run.at(10_000).action("a"), Action::Allow);
    assert_eq!(run.at(0).action("a"), Action::Throttle);
    assert_eq!(run.at(10_500).action("a"), Action::Throttle);
    assert_eq!(run.at(11_000).action("a"), Action::Allow);
    assert_eq!(run.at(11_000_000).action("a"), Action::Allow);
    assert_eq!(run.action("a"), Action::Throttle);
}

#[test]
fn the_mode_control_replaces_a_block_by_a_hint() {
    let deny = "- {rule_id: d, kind: deny, match: {tool_name: {glob: [push]}}, effect: {message: Ask first}}\n";
    let mut run = Run::new(rules("control", &format!("{deny}{BUDGET}")));
    let decision = run.call("git", "push", &json!({})).record;
    assert_eq!((decision.action, decision.explain.reason_code.as_str()), (Action::RejectWithHint, "POLICY_BLOCK"));
    let hint = decision.hint.unwrap();
    assert_eq!((hint.hint_text.as_str(), hint.hint_kind), ("Ask first", HintKind::Other));
    run.action("a");
    run.action("a");
    assert_eq!(run.call("git", "a", &json!({})).record.hint.unwrap().hint_kind, HintKind::Budget);
}

#[test]
fn a_hint_with_arguments_is_one_about_arguments() {
    let rule = "- {rule_id: d, kind: deny, effect: {action: REJECT_WITH_HINT, hint_text: No force, suggested_args: {force: false}, retry_advice: Now}}\n";
    let hint = Run::new(rules("guardrails", rule)).call("git", "push", &json!({})).record.hint.unwrap();
    assert_eq!((hint.hint_kind, hint.suggested_args), (HintKind::ArgFix, Some(json!({"force": false}))));
    assert_eq!(hint.retry_advice.as_deref(), Some("Now"));
}

#[test]
fn an_undecided_deny_rule_follows_the_defaults() {
    let text = |defaults: &str| {
        format!(
            "policy_id: p\nversion: '1'\nmode: guardrails\ndefaults: {{{defaults}}}\nrules:\n\
             - {{rule_id: read, kind: tag, match: {{tool_name: {{glob: [get]}}}}, effect: {{tag: {{add_risk_class: [read_like]}}}}}}\n\
             - {{rule_id: d, kind: deny, match: {{args: {{has_keys: [x]}}}}, effect: {{action: TERMINATE_RUN}}}}\n"
        )
    };
    let decide = |defaults: &str, tool: &str| {
        let record = Run::new(policy(&text(defaults))).large_call("s", tool).record;
        (record.action, record.rule_id, record.explain.reason_code)
    };
    assert_eq!(decide("", "put"), reason(Action::Block, "d", "POLICY_ERROR"));
    assert_eq!(decide("decision_on_error: BLOCK", "get"), reason(Action::Block, "d", "POLICY_ERROR"));
    assert_eq!(decide("decision_on_error: ALLOW", "put"), reason(Action::Allow, "d", "POLICY_ERROR"));
    assert_eq!(decide("fail_open_read_tools: true", "get"), reason(Action::Allow, "d", "POLICY_ERROR"));
    assert_eq!(decide("fail_open_read_tools: true", "put"), reason(Action::Block, "d", "POLICY_ERROR"));
}

#[test]
fn a_failed_expression_is_undecided_and_another_condition_can_still_decide() {
    let rule = "- {rule_id: c, kind: deny, match: {tool_name: {glob: [put]}, cel: call.args.n > 5}}\n";
    let mut run = Run::new(rules("guardrails", rule));
    assert_eq!(run.call("s", "put", &json!({"n": 6})).record.explain.reason_code, "POLICY_BLOCK");
    assert_eq!(run.call("s", "put", &json!({"n": 5})).record.action, Action::Allow);
    assert_eq!(run.call("s", "put", &json!({})).record.explain.reason_code, "POLICY_ERROR");
    assert_eq!(run.call("s", "get", &json!({})).record.explain.reason_code, "DEFAULT_ALLOW");
}

#[test]
fn an_undecided_allow_rule_does_not_allow_if_errors_block() {
    let allow = "- {rule_id: a, kind: allow, match: {args: {has_keys: [x]}}}\n";
    let deny = "- {rule_id: d, kind: deny}\n";
    let mut run = Run::new(rules("guardrails", &format!("{allow}{deny}")));
    let record = run.large_call("s", "t").record;
    assert_eq!((record.action, record.rule_id.as_deref()), (Action::Block, Some("d")));
    let open = format!(
        "policy_id: p\nversion: '1'\nmode: guardrails\ndefaults: {{decision_on_error: ALLOW}}\nrules:\n{allow}{deny}"
    );
    let record = Run::new(policy(&open)).large_call("s", "t").record;
    assert_eq!((record.action, record.rule_id.as_deref()), (Action::Allow, Some("a")));
}

#[test]
fn an_undecided_tag_makes_rules_for_its_class_undecided() {
    let tag = "- {rule_id: t, kind: tag, match: {args: {has_keys: [x]}}, effect: {tag: {add_risk_class: [w]}}}\n";
    let deny = "- {rule_id: d, kind: deny, match: {risk_class: [w]}}\n- {rule_id: e, kind: deny, match: {risk_class: [other]}}\n";
    let decision = Run::new(rules("guardrails", &format!("{tag}{deny}"))).large_call("s", "t");
    assert_eq!(
        (decision.record.rule_id.as_deref(), decision.record.explain.reason_code.as_str()),
        (Some("d"), "POLICY_ERROR")
    );
    assert!(decision.tags.is_empty());
}

#[test]
fn names_that_are_too_long_are_undecided() {
    let mut run = Run::new(rules("guardrails", DENY));
    assert_eq!(run.reason(&"x".repeat(1024)), reason(Action::Allow, "", "DEFAULT_ALLOW"));
    assert_eq!(run.reason(&"x".repeat(1025)), reason(Action::Block, "no-push", "POLICY_ERROR"));
}

#[test]
fn a_policy_for_other_runs_allows_every_call() {
    let text = |selectors: &str| {
        format!("policy_id: p\nversion: '1'\nmode: guardrails\nselectors: {selectors}\nrules:\n{DENY}")
    };
    let reason_of = |selectors: &str, change: &dyn Fn(&mut counterproof_guard::identity::RunIdentity)| {
        let mut identity = identity();
        change(&mut identity);
        Run::with_identity(policy(&text(selectors)), &identity).reason("push").2
    };
    let (applies, other) = ("POLICY_BLOCK", "POLICY_NOT_APPLICABLE");
    for (selectors, expected) in [
        ("{env: [dev, CI], agent_id: [REVIEWER], client: [Claude]}", applies),
        ("{env: [ci], agent_id: [writer]}", other),
        ("{env: [prod]}", other),
        ("{workload: {repo: [shop]}}", other),
        ("{workload: {labels: {team: [x]}}}", other),
        ("{}", applies),
    ] {
        assert_eq!(reason_of(selectors, &|_| {}), expected, "{selectors}");
    }
    let with_job = |identity: &mut counterproof_guard::identity::RunIdentity| {
        let labels = [("Team".to_owned(), "Payments".to_owned())].into();
        let repo = Some("org/Shop".to_owned());
        identity.workload = Some(counterproof_ledger::event::Workload { repo, labels, ..Default::default() });
    };
    assert_eq!(reason_of("{workload: {repo: [org/shop], labels: {team: [x, payments]}}}", &with_job), applies);
    assert_eq!(reason_of("{workload: {repo: [org/shop], labels: {team: x}}}", &with_job), other);
}
