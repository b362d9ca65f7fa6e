//! Warnings about valid policies.

use camino::Utf8PathBuf;
use counterproof_guard::policy::{LintCode, LintReport, PolicyFile, lint};

fn linted(text: &str) -> LintReport {
    lint(&PolicyFile { path: Utf8PathBuf::from("p.yaml"), bytes: text.as_bytes().to_vec() })
}

fn warnings(text: &str) -> Vec<String> {
    let linted = linted(text);
    assert_eq!(linted.errors, []);
    lines(&linted)
}

fn lines(linted: &LintReport) -> Vec<String> {
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
- {rule_id: c, kind: deny, match: {cel: call.server_name == 'x'}}
- {rule_id: d, kind: allow, match: {tool_name: {regex: ['^.*$']}}}
- {rule_id: e, kind: deny}
";
    insta::assert_snapshot!(warnings(&format!("{}{text}", header("guardrails"))).join("\n"), @"
5:57 unanchored-regex the expression matches parts of names
6:57 unanchored-regex the expression matches parts of names
8:3 allows-everything rule `d` allows every call before the rules below it can decide
    ");
}

#[test]
fn arguments_that_a_call_may_not_have_are_reported_with_what_the_rule_does() {
    let rules = |defaults: &str| {
        format!(
            "{}{defaults}rules:\n\
             - {{rule_id: a, kind: deny, match: {{cel: \"run.env == 'ci' && call.args.path == 'x'\"}}}}\n\
             - {{rule_id: b, kind: allow, match: {{cel: 'call.args[\"a b\"] == 1'}}}}\n\
             - {{rule_id: c, kind: budget, match: {{cel: call.args.n > 1}}, effect: {{budget: {{limit_calls: 1}}}}}}\n\
             - {{rule_id: d, kind: tag, match: {{cel: call.args.n > 1}}, effect: {{tag: {{add_risk_class: [x]}}}}}}\n\
             - {{rule_id: e, kind: deny, match: {{args: {{has_keys: [path]}}, cel: call.args.path == 'x'}}}}\n\
             - {{rule_id: f, kind: deny, match: {{cel: has(call.args.path) && call.args.path == 'x'}}}}\n",
            header("guardrails")
        )
    };
    insta::assert_snapshot!(warnings(&rules("")).join("\n"), @"
    5:61 unguarded-argument the expression has no value for calls without the argument `path`: the rule refuses them
    6:43 unguarded-argument the expression has no value for calls without the argument `a b`: the rule does not allow them
    7:43 unguarded-argument the expression has no value for calls without the argument `n`: the rule counts them
    8:40 unguarded-argument the expression has no value for calls without the argument `n`: the rules for its risk classes are undecided
    ");
    insta::assert_snapshot!(warnings(&rules("defaults: {decision_on_error: ALLOW}\n")).join("\n"), @"
    6:61 unguarded-argument the expression has no value for calls without the argument `path`: the rule does not apply to them
    7:43 unguarded-argument the expression has no value for calls without the argument `a b`: the rule allows them
    8:43 unguarded-argument the expression has no value for calls without the argument `n`: the rule does not apply to them
    9:40 unguarded-argument the expression has no value for calls without the argument `n`: the rules for its risk classes are undecided
    ");
    let found = linted(&rules("")).warnings;
    assert_eq!(found[0].finding.expected, "`has(call.args.path) && …`");
    assert_eq!(found[1].finding.expected, "`'a b' in call.args && …`");
}

#[test]
fn rules_without_errors_have_warnings_beside_rules_with_errors() {
    let text = "\
rules:
- {rule_id: a, kind: deny, match: {tool_name: {regex: [read]}}}
- {rule_id: b, kind: denny, match: {tool_name: {regex: [read]}}}
- {rule_id: c, kind: allow, match: {tool_name: {regex: [list], cell: x}}}
- {rule_id: d, kind: deny, match: {cel: call.tool == 'x', tool_name: {regex: [list]}}}
- {rule_id: e, kind: deny, match: {risk_class: [added_above_perhaps], tool_name: {regex: [write]}}}
";
    let found = linted(&format!("{}{text}", header("guardrails")));
    assert_eq!(found.errors.len(), 3, "{:?}", found.errors);
    insta::assert_snapshot!(lines(&found).join("\n"), @"
    5:56 unanchored-regex the expression matches parts of names
    9:91 unanchored-regex the expression matches parts of names
    ");
    assert_eq!(linted("rules: [").warnings, []);
}

#[test]
fn the_docs_list_every_warning() {
    let docs = include_str!("../../../docs/policy.md");
    for code in LintCode::ALL {
        let row = format!("| `{}` | {} | {} |", code.as_str(), code.meaning(), code.remedy());
        assert!(docs.contains(&row), "{row}");
    }
}
