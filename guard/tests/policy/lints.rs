//! Warnings about valid policies.

use camino::Utf8PathBuf;
use counterproof_guard::policy::{LintCode, PolicyFile, lint};

fn warnings(text: &str) -> Vec<String> {
    let file = PolicyFile { path: Utf8PathBuf::from("p.yaml"), bytes: text.as_bytes().to_vec() };
    let linted = lint(&file).unwrap_or_else(|error| panic!("{error}"));
    let line = |warning: &counterproof_guard::policy::Warning| {
        let position = warning.finding.position.map(|at| format!("{}:{}", at.line, at.column)).unwrap_or_default();
        format!("{position} {} {}", warning.code.as_str(), warning.finding.message)
    };
    linted.warnings.iter().map(line).collect()
}

fn header(mode: &str) -> String {
    format!("policy_id: p\nversion: '1'\nmode: {mode}\n")
}

#[test]
fn a_policy_without_mistakes_has_no_warnings() {
    let rules = "\
rules:
- {rule_id: t, kind: tag, match: {tool_name: {glob: ['write_*']}}, effect: {tag: {add_risk_class: [write_like]}}}
- {rule_id: d, kind: deny, match: {risk_class: [Write_Like], args: {has_keys: [x]}}}
- {rule_id: e, kind: deny, match: {risk_class: [write_like], server_name: {regex: ['^prod-.*$']}}}
- {rule_id: b, kind: budget, effect: {budget: {limit_calls: 100}}}
- {rule_id: r, kind: rate_limit, effect: {rate_limit: {capacity: 2, refill_tokens: 1, refill_period_ms: 1, backoff_ms: 5}}}
- {rule_id: a, kind: allow}
";
    assert_eq!(warnings(&format!("{}{rules}", header("guardrails"))), [""; 0]);
}

#[test]
fn each_warning_is_reported_at_its_place() {
    let shadows = "\
policy_version: '2'
rules:
- {rule_id: a, kind: allow, match: {tool_name: {glob: ['git_*']}}}
- {rule_id: b, kind: deny, match: {tool_name: {glob: [git_push]}, args: {has_keys: [force]}}}
- {rule_id: c, kind: deny, match: {tool_name: {regex: [drop]}}, effect: {hint_text: no}}
- {rule_id: d, kind: deny, match: {risk_class: [w]}}
- {rule_id: off, kind: allow, enabled: false}
- {rule_id: e, kind: allow}
- {rule_id: f, kind: budget, effect: {budget: {limit_cost_units: 5, cost_units_per_call: 6}}}
- {rule_id: g, kind: deny}
";
    insta::assert_snapshot!(warnings(&format!("{}{shadows}", header("guardrails"))).join("\n"), @r##"
2:10 versions-differ `policy_version` "2" is used, and not `version` "1"
7:3 shadowed-rule rule `b` never decides, because rule `a` decides about all of its calls
8:56 unanchored-regex the expression matches parts of names
8:85 unused-field the action `BLOCK` does not use `hint_text`
9:49 unknown-risk-class no tag rule above adds the risk class `w`
11:3 allows-everything rule `e` allows every call before the rules below it can decide
12:90 never-allows one call costs 6, which is more than the limit of 5
    "##);
    insta::assert_snapshot!(warnings(&header("control")).join("\n"), @r##"
1:1 no-rules the policy allows every call: it has no rule that is enabled
    "##);
    insta::assert_snapshot!(warnings(&format!("{}rules: [{{rule_id: a, kind: deny}}]", header("observe"))).join("\n"), @r##"
3:7 only-observes the mode `observe` refuses no call; 1 rule would
    "##);
}

#[test]
fn allow_rules_that_reach_too_far_are_reported() {
    let text = "\
rules:
- {rule_id: a, kind: allow, match: {tool_name: {regex: ['^read|list$', '^(read|list)$']}}}
- {rule_id: b, kind: allow, match: {tool_name: {regex: ['a\\$|\\^b']}}}
- {rule_id: c, kind: deny, match: {cel: \"call.serverr == 'git' || run.nope == 1 || call.server_name == 'x'\"}}
- {rule_id: d, kind: allow, match: {tool_name: {regex: ['^.*$']}}}
- {rule_id: e, kind: deny}
";
    insta::assert_snapshot!(warnings(&format!("{}{text}", header("guardrails"))).join("\n"), @"
5:57 unanchored-regex the expression matches parts of names
6:57 unanchored-regex the expression matches parts of names
7:41 unknown-field `call` has no field `serverr`
7:41 unknown-field `run` has no field `nope`
8:3 allows-everything rule `d` allows every call before the rules below it can decide
    ");
}

#[test]
fn the_docs_list_every_warning() {
    let docs = include_str!("../../../docs/policy.md");
    for code in LintCode::ALL {
        let row = format!("| `{}` | {} | {} |", code.as_str(), code.meaning(), code.remedy());
        assert!(docs.contains(&row), "{row}");
    }
}
