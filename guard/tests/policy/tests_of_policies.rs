//! Files of tests for policies.

use std::sync::Arc;

use camino::Utf8Path;
use counterproof_guard::policy::test;

use crate::kit::{policy, read_request, rules};

const POLICY: &str = "\
- {rule_id: w, kind: tag, match: {tool_name: {glob: ['put_*']}}, effect: {tag: {add_risk_class: [Write]}}}
- {rule_id: one, kind: rate_limit, match: {risk_class: [write]}, effect: {rate_limit: {capacity: 1, refill_tokens: 1, refill_period_ms: 1000}}}
- {rule_id: failing, kind: breaker, effect: {breaker: {error_threshold: 1, window_ms: 500}}}
- {rule_id: large, kind: deny, match: {tool_name: {glob: [up]}, args: {has_keys: [x]}}}
";

fn run(mode: &str, tests: &str) -> (Vec<(String, bool)>, Vec<String>) {
    let policy = Arc::new(rules(mode, POLICY));
    let report = test(&policy, Utf8Path::new("t.yaml"), tests.as_bytes(), &read_request);
    let line = |finding: &counterproof_validation::Finding| {
        let position = finding.position.map(|at| format!("{}:{}", at.line, at.column)).unwrap_or_default();
        format!("{position} {}; expected {}", finding.message, finding.expected)
    };
    (report.tests.into_iter().map(|it| (it.name, it.passed)).collect(), report.findings.iter().map(line).collect())
}

#[test]
fn sequences_with_times_and_outcomes_are_checked() {
    let tests = "\
tests:
- name: writes are limited
  calls:
  - {server: s, tool: put_a, expect: {action: ALLOW, rule_id: null, reason_code: DEFAULT_ALLOW, tags: [WRITE]}}
  - {server: s, tool: put_b, repeat: 3, expect: {action: THROTTLE, rule_id: one}}
  - {server: s, tool: put_b, at_ms: 1000, expect: {action: ALLOW}}
- name: failures
  run: {env: ci}
  calls:
  - {server: s, tool: get, outcome: error}
  - {server: s, tool: get, at_ms: 499, expect: {action: BLOCK, rule_id: failing, reason_code: BREAKER_TRIPPED}}
  - {server: s, tool: get, at_ms: 500, expect: {action: ALLOW}}
- name: large
  calls:
  - {server: s, tool: up, large_args: true, expect: {action: BLOCK, rule_id: large, reason_code: POLICY_ERROR}}
";
    let passed = |names: &[&str]| names.iter().map(|name| ((*name).to_owned(), true)).collect::<Vec<_>>();
    for mode in ["guardrails", "observe"] {
        let (tests, findings) = run(mode, tests);
        assert_eq!(findings, [""; 0], "{mode}");
        assert_eq!(tests, passed(&["writes are limited", "failures", "large"]));
    }
}

#[test]
fn calls_are_read_as_the_shim_reads_requests() {
    let text = "- {rule_id: big, kind: deny, match: {cel: call.bytes_in > 90}}\n\
                - {rule_id: huge, kind: deny, match: {args: {has_keys: [x]}}}\n";
    let large = "x".repeat(1 << 20);
    let tests = format!(
        "tests:\n\
         - name: sizes\n  calls:\n  \
         - {{server: s, tool: t, expect: {{action: ALLOW}}}}\n  \
         - {{server: s, tool: t, args: {{a: bbbbbbbbbbbbbbbbb}}, expect: {{action: BLOCK, rule_id: big}}}}\n  \
         - {{server: s, tool: t, args: {{a: {large}}}, bytes_in: 1, expect: {{reason_code: POLICY_ERROR, rule_id: huge}}}}\n  \
         - {{server: s, tool: t, large_args: true, expect: {{rule_id: big}}}}\n"
    );
    let report = test(&Arc::new(rules("guardrails", text)), Utf8Path::new("t.yaml"), tests.as_bytes(), &read_request);
    assert_eq!(report.findings, []);
}

#[test]
fn each_difference_points_at_the_expected_value() {
    let tests = "\
tests:
- name: wrong
  calls:
  - {server: s, tool: put_a, expect: {action: BLOCK}}
  - {server: s, tool: put_a, expect: {rule_id: null}}
  - {server: s, tool: get, at_ms: 5, expect: {reason_code: X}}
  - {server: s, tool: get, at_ms: 4, expect: {tags: [write]}}
- name: right
  calls: [{server: s, tool: get, expect: {action: ALLOW}}]
- name: misspelt
  calls: [{server: s, tool: get, expects: {action: ALLOW}}]
";
    let (results, findings) = run("guardrails", tests);
    assert_eq!(results, [("wrong".to_owned(), false), ("right".to_owned(), true)]);
    insta::assert_snapshot!(findings.join("\n"), @r##"
4:47 the decision is ALLOW by default (DEFAULT_ALLOW); expected BLOCK
5:48 the decision is THROTTLE by rule `one` (RATE_LIMITED); expected no rule
6:60 the decision is ALLOW by default (DEFAULT_ALLOW); expected X
7:35 the call is before the call above it; expected at least 5 ms
7:53 the decision is ALLOW by default (DEFAULT_ALLOW), with the tags (none); expected the tags write
11:43 the field `expects` is unknown; did you mean `expect`?; expected one of `server`, `tool`, `args`, `large_args`, `bytes_in`, `at_ms`, `repeat`, `outcome`, `expect`
    "##);
}

#[test]
fn tests_that_check_nothing_fail() {
    let tests = "\
tests:
- name: nothing
  calls:
  - {server: s, tool: t}
  - {server: s, tool: t, at_ms: 5}
- name: first call is a preparation
  calls:
  - {server: s, tool: t, outcome: error}
  - {server: s, tool: t, expect: {action: BLOCK}}
";
    let (results, findings) = run("guardrails", tests);
    assert_eq!(results, [("nothing".to_owned(), false), ("first call is a preparation".to_owned(), true)]);
    assert_eq!(
        findings,
        ["4:5 no call of the test has an `expect`, so the test checks nothing; expected a call with `expect`"]
    );
    for empty in [
        "tests: []",
        "tests: [{name: n, calls: []}]",
        "{}",
        "tests: [{name: n, calls: [{server: s, tool: t, expect: {}}]}]",
    ] {
        assert_ne!(run("guardrails", empty).1, [""; 0], "{empty}");
    }
}

#[test]
fn the_run_of_a_test_decides_whether_the_policy_applies() {
    let text =
        "policy_id: p\nversion: '1'\nmode: guardrails\nselectors: {env: [prod]}\nrules: [{rule_id: d, kind: deny}]\n";
    let tests = "\
tests:
- {name: prod, run: {env: prod}, calls: [{server: s, tool: t, expect: {action: BLOCK}}]}
- {name: dev, run: {env: dev}, calls: [{server: s, tool: t, expect: {reason_code: POLICY_NOT_APPLICABLE}}]}
";
    let report = test(&Arc::new(policy(text)), Utf8Path::new("t.yaml"), tests.as_bytes(), &read_request);
    assert_eq!(report.findings, []);
}
