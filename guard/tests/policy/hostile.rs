//! Arbitrary bytes as policies and calls, and policies that are expensive.

use std::sync::Arc;
use std::time::Duration;

use camino::Utf8Path;
use counterproof_artifact::Sha256Digest;
use counterproof_guard::policy::{Args, CallFacts, Engine, Policy};
use counterproof_ledger::event::{Action, Transport};
use proptest::prelude::*;
use serde_json::json;

use crate::kit::{Run, identity, rules};

#[path = "../../../fuzz/src/policy.rs"]
mod fuzz;

/// Words of policies, so that random texts are often valid.
const WORDS: [&str; 24] = [
    "policy_id: p\nversion: '1'\nmode: guardrails\nrules:\n",
    "policy_id: p\nversion: '1'\nmode: observe\nrules:\n",
    "- {rule_id: a, kind: deny, match: {tool_name: {glob: [w*]}}}\n",
    "- {rule_id: b, kind: allow, match: {cel: call.args.text == 'x'}}\n",
    "- {rule_id: c, kind: budget, effect: {budget: {limit_calls: 2}}}\n",
    "- {rule_id: d, kind: breaker, effect: {breaker: {error_threshold: 1, window_ms: 300}}}\n",
    "- {rule_id: e, kind: rate_limit, effect: {rate_limit: {capacity: 1, refill_tokens: 1, refill_period_ms: 200}}}\n",
    "- {rule_id: f, kind: dedupe, effect: {dedupe: {window_ms: 150}}}\n",
    "- {rule_id: g, kind: tag, effect: {tag: {add_risk_class: [w]}}}\n",
    "- {rule_id: h, kind: deny, match: {risk_class: [w], args: {has_keys: [text]}}, effect: {action: TERMINATE_RUN}}\n",
    "- {rule_id: i, kind: deny, match: {tool_name: {regex: ['^r']}}, effect: {action: THROTTLE}}\n",
    "defaults: {decision_on_error: ALLOW}\n",
    "selectors: {env: [ci]}\n",
    "{",
    "}",
    "[",
    "]",
    ":",
    ",",
    "\"",
    "&a",
    "*a",
    "- ",
    "\n",
];

proptest! {
    #[test]
    fn no_bytes_make_a_policy_panic(bytes in prop::collection::vec(any::<u8>(), 0..300)) {
        fuzz::policy(&bytes);
    }

    #[test]
    fn no_text_that_looks_like_a_policy_makes_it_panic(
        words in prop::collection::vec(prop::sample::select(WORDS.to_vec()), 0..12), args in "(\\{\"text\": \"x\"\\}|[a-z{}]{0,9})",
    ) {
        fuzz::policy(format!("{}\0{args}", words.concat()).as_bytes());
        let valid = WORDS[0].to_owned() + &words.iter().filter(|word| word.starts_with("- {")).copied().collect::<String>();
        fuzz::policy(format!("{valid}\0{args}").as_bytes());
    }
}

#[test]
fn deep_values_are_refused_in_policies_and_compared_in_calls() {
    let mut deep = json!(1);
    for _ in 0..200 {
        deep = json!([deep]);
    }
    let rule = json!([{"rule_id": "a", "kind": "deny", "match": {"args": {"key_equals": {"x": deep}}}}]);
    let policy = json!({"policy_id": "p", "version": "1", "mode": "guardrails", "rules": rule});
    let parsed = Policy::parse(Utf8Path::new("p"), policy.to_string().as_bytes());
    // The text is deeper than JSON may be.
    assert!(parsed.is_err());
    let mut run =
        Run::new(rules("guardrails", "- {rule_id: a, kind: deny, match: {args: {key_equals: {x: [[1]]}}}}\n"));
    assert_eq!(run.call("s", "t", &json!({"x": deep})).record.action, Action::Allow);
    assert_eq!(run.call("s", "t", &json!({"x": [[1.0]]})).record.action, Action::Block);
}

#[test]
fn many_different_calls_are_decided_and_the_newest_are_remembered() {
    let rules = rules(
        "guardrails",
        "\
- {rule_id: once, kind: dedupe, effect: {dedupe: {window_ms: 100000000}}}
- {rule_id: loop, kind: breaker, effect: {breaker: {repeat_threshold: 3, repeat_window_ms: 100000000}}}
- {rule_id: b, kind: budget, effect: {budget: {scope: tool, limit_calls: 1000000}}}
",
    );
    let mut engine = Engine::new(Arc::new(rules), &identity());
    let args = json!({});
    let mut decide = |number: u32| {
        let args_hash = Sha256Digest::from_bytes(&number.to_le_bytes());
        let tool_name = format!("tool-{}", number % 5000);
        let args = Args::Inspected(&args);
        let transport = Transport::McpStdio;
        let call =
            CallFacts { server_name: "s", tool_name: &tool_name, args, args_hash: &args_hash, bytes_in: 9, transport };
        engine.decide(&call, Duration::from_millis(u64::from(number))).record.action
    };
    // A number that takes a second or two without optimisation.
    for number in 0..150_000 {
        assert_eq!(decide(number), Action::Allow);
    }
    assert_eq!(decide(149_000), Action::Block);
    assert_eq!(decide(0), Action::Allow, "the oldest are forgotten");
}
