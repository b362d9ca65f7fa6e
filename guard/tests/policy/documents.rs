//! Policy files: formats, findings and hashes.

use camino::Utf8Path;
use counterproof_guard::policy::{DenyAs, OnError, Policy};
use counterproof_ledger::event::Mode;

use crate::kit::{findings, policy};

const JSON: &str = r#"{"policy_id": "p", "version": "1.0.0", "mode": "guardrails",
  "rules": [{"rule_id": "a", "kind": "deny", "match": {"tool_name": {"glob": ["x"]}}}]}"#;
const YAML: &str = "policy_id: p\nversion: 1.0.0\nmode: guardrails\nrules:\n- rule_id: a\n  kind: deny\n  match:\n    tool_name: {glob: [x]}\n";

#[test]
fn json_and_yaml_give_the_same_policy_and_hash() {
    let (json, yaml) = (policy(JSON), policy(YAML));
    assert_eq!(json.reference(), yaml.reference());
    assert_eq!(json.rules, yaml.rules);
    assert_eq!(json.mode, Mode::Guardrails);
    assert_eq!(json.defaults.decision_on_error, OnError::Block);
    assert_eq!(json.reference().policy_hash.len(), 64);
    let other = policy(&YAML.replace("[x]", "[y]")).reference();
    assert_ne!(other.policy_hash, yaml.reference().policy_hash);
    let commented = policy(&format!("# A comment.\ndescription: d\n{YAML}")).reference();
    assert_eq!(commented, yaml.reference());
}

#[test]
fn every_mistake_is_reported_with_its_position() {
    let text = "\
policy_id: p
version: 1
mode: enforce
selectors: {env: [production]}
rules:
- rule_id: a
  kind: deny
  macth: {tool_name: {glob: [x]}}
- rule_id: a
  kind: budget
- rule_id: c
  kind: allow
  match:
    tool_name: {glob: ['a[', ''], regex: ['', 'a(']}
    args: {numeric_range: {n: {min: 2, max: 1}}}
    cel: call.args.x ==
- rule_id: d
  kind: budget
  effect: {budget: {limit_calls: 0}}
- rule_id: e
  kind: rate_limit
  effect: {budget: {limit_calls: 1}}
- rule_id: f
  kind: allow
  effect: {action: BLOCK}
";
    insta::assert_snapshot!(findings(text).join("\n"), @r##"
2:10 /version the value is 1
3:7 /mode the value is the string `enforce`
4:19 /selectors/env/0 no run has this value
8:10 /rules/0/macth the field `macth` is unknown; did you mean `match`?
9:3 /rules/1 the field `effect` is missing
9:12 /rules/1/rule_id the rule id `a` is already used by rule 1
14:24 /rules/2/match/tool_name/glob/0 the class that starts with `[` at character 2 has no end
14:30 /rules/2/match/tool_name/glob/1 the value is an empty string
14:43 /rules/2/match/tool_name/regex/0 the value is an empty string
14:47 /rules/2/match/tool_name/regex/1 invalid regular expression: unclosed group
15:31 /rules/2/match/args/numeric_range/n `min` is larger than `max`, so no number is in the range
16:24 /rules/2/match/cel syntax error: expected a value, found the end
19:34 /rules/3/effect/budget/limit_calls the value is 0
22:11 /rules/4/effect the field `rate_limit` is missing
22:20 /rules/4/effect/budget the field `budget` is unknown
25:20 /rules/5/effect/action the value is the string `BLOCK`
    "##);
}

#[test]
fn a_policy_that_is_not_a_document_has_one_finding() {
    insta::assert_snapshot!(findings("{\"policy_id\": }").join("\n"), @r##"
1:15  expected value
    "##);
    insta::assert_snapshot!(findings("a: [1\nb: 2").join("\n"), @r##"
2:2  invalid YAML: illegal placement of ':' indicator
    "##);
    insta::assert_snapshot!(findings("").join("\n"), @r##"
  the file is empty
    "##);
    insta::assert_snapshot!(findings("- a").join("\n"), @r##"
1:1  the value is an array of 1
    "##);
    insta::assert_snapshot!(findings("{\"policy_id\": \"p\", \"policy_id\": \"q\", \"version\": \"1\", \"mode\": \"observe\"}").join("\n"), @r##"
1:20 /policy_id the key `policy_id` appears twice in its object
    "##);
}

#[test]
fn responses_change_no_hash_and_have_distinct_codes() {
    let plain = policy(YAML);
    assert_eq!(plain.responses.codes.blocked, -32081);
    let other = policy(&format!("{YAML}responses: {{deny_as: tool_result, codes: {{hint: -31000}}}}\n"));
    assert_eq!(other.reference(), plain.reference());
    assert_eq!((other.responses.deny_as, other.responses.codes.hint), (DenyAs::ToolResult, -31000));
    let text = format!("{YAML}responses: {{codes: {{hint: -32081, terminated: -32603}}}}\n");
    insta::assert_snapshot!(findings(&text).join("\n"), @"
    9:27 /responses/codes/hint the code -32081 of `hint` is also the code of `blocked`
    9:47 /responses/codes/terminated JSON-RPC defines the code -32603
    ");
}

#[test]
fn missing_and_empty_parts_are_named() {
    let text = "\
policy_id: ''
mode: observe
rules:
- rule_id: a
  kind: budget
  effect: {budget: {}}
- rule_id: b
  kind: breaker
  effect: {breaker: {repeat_threshold: 5}}
- rule_id: c
  kind: allow
  match: {tool_name: {}, risk_class: []}
- rule_id: ' '
  kind: tag
  effect: {tag: {}}
";
    insta::assert_snapshot!(findings(text).join("\n"), @r##"
1:1  one of the fields `version`, `policy_version` is missing
1:12 /policy_id the value is an empty string
6:20 /rules/0/effect/budget one of the fields `limit_calls`, `limit_cost_units` is missing
9:21 /rules/1/effect/breaker the field `repeat_window_ms` is missing
12:22 /rules/2/match/tool_name the object is empty
12:38 /rules/2/match/risk_class the value is an array of 0
13:12 /rules/3/rule_id the rule id is blank
15:17 /rules/3/effect/tag the field `add_risk_class` is missing
    "##);
}

#[test]
fn hostile_files_are_refused() {
    let deep = format!("{{\"a\": {}", "[".repeat(100_000));
    assert_eq!(findings(&deep).len(), 1);
    let deep = format!("a: {}", "[".repeat(100_000));
    assert_eq!(findings(&deep).len(), 1);
    let large = format!("{{\"a\": \"{}\"}}", "x".repeat(10 << 20));
    assert!(findings(&large)[0].contains("the policy has 10485769 bytes"), "{:?}", findings(&large));
    let bomb = YAML.replace("glob: [x]", "regex: ['(\\w{200}){200}']");
    assert!(findings(&bomb)[0].contains("too large when compiled"), "{:?}", findings(&bomb));
}

#[test]
fn the_policy_without_a_file_observes() {
    let default = Policy::observe_only();
    assert_eq!(default.mode, Mode::Observe);
    let reference = default.reference();
    assert_eq!((reference.policy_id.as_str(), reference.policy_hash.as_str()), ("default", "none"));
    assert!(Policy::load(Utf8Path::new("/nonexistent/policy.yaml")).is_err());
}

#[test]
fn remedies_name_what_to_write() {
    let text = "\
policy_id: p
version: 1.0
mode: guardrail
selectors: {env: [prd], client: claude}
rules:
- {rule_id: a, kind: denny}
- {rule_id: a, kind: deny, effect: {action: block}, match: {tool_name: {glob: push}, risk_class: []}}
- {rule_id: b, kind: budget, effect: {budget: {limit_calls: '5'}}}
- {rule_id: c, kind: budget, effect: {budget: {limit_calls: -1}}}
";
    let remedies = |text: &str| -> Vec<String> {
        let error = Policy::parse(Utf8Path::new("p.yaml"), text.as_bytes()).unwrap_err();
        error.findings.iter().map(|it| format!("{} {} ({})", it.pointer, it.message, it.remedy)).collect()
    };
    insta::assert_snapshot!(remedies(text).join("\n"), @r##"
/version the value is 1.0 (put the value in quotes)
/mode the value is the string `guardrail`; did you mean `guardrails`? (write `guardrails`)
/selectors/env/0 no run has this value; did you mean `prod`? (write `prod`)
/selectors/client the value is the string `claude` (put the value in a list: `[…]`)
/rules/0/kind the value is the string `denny`; did you mean `deny`? (write `deny`)
/rules/1/rule_id the rule id `a` is already used by rule 1 (rename one of the two rules)
/rules/1/effect/action the value is the string `block`; did you mean `BLOCK`? (write `BLOCK`)
/rules/1/match/tool_name/glob the value is the string `push` (put the value in a list: `[…]`)
/rules/1/match/risk_class the value is an array of 0 (add an element, or remove an optional field)
/rules/2/effect/budget/limit_calls the value is the string `5` (remove the quotes)
/rules/3/effect/budget/limit_calls the value is -1 (write a number within the limit)
    "##);
    assert_eq!(remedies(""), [" the file is empty (write the document, or name another file)"]);
}
