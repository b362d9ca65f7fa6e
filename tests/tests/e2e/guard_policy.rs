//! `counterproof guard policy` as a user runs it.

use counterproof_tests::{Finished, Sandbox};
use serde_json::{Value, json};

const POLICY: &str = "\
policy_id: shop
version: 1.0.0
mode: guardrails
rules:
- rule_id: no-force
  kind: deny
  match: {tool_name: {glob: [push]}, args: {key_equals: {force: true}}}
- rule_id: loop
  kind: breaker
  effect: {breaker: {repeat_threshold: 3, repeat_window_ms: 10000}}
";

fn sandbox() -> Sandbox {
    Sandbox::new().with_file("p.yaml", POLICY)
}

fn run(sandbox: &Sandbox, arguments: &[&str]) -> Finished {
    sandbox.run(["guard", "policy"].iter().chain(arguments))
}

#[test]
fn lint_reports_errors_with_1_and_warnings_only_with_strict() {
    let sandbox = sandbox()
        .with_file("warned.yaml", &POLICY.replace("glob: [push]", "regex: [push]"))
        .with_file("bad.json", "{\"policy_id\": \"p\", \"version\": \"1\", \"mode\": \"guard\", \"rule\": []}");
    let finished = run(&sandbox, &["lint", "p.yaml", "--strict"]);
    assert_eq!((finished.code, finished.stdout.as_str()), (Some(0), "0 errors and 0 warnings in 1 file\n"));
    let finished = run(&sandbox, &["lint", "warned.yaml"]);
    assert_eq!(finished.code, Some(0), "{finished}");
    assert!(
        finished.stdout.contains("warning[unanchored-regex]") && finished.stdout.contains("warned.yaml:7:31"),
        "{finished}"
    );
    assert_eq!(run(&sandbox, &["lint", "warned.yaml", "--strict"]).code, Some(1));
    let finished = run(&sandbox, &["lint", "bad.json", "warned.yaml", "--json"]);
    assert_eq!(finished.code, Some(1), "{finished}");
    let document: Value = serde_json::from_str(&finished.stdout).unwrap();
    let codes: Vec<&str> =
        document["findings"].as_array().unwrap().iter().map(|it| it["code"].as_str().unwrap()).collect();
    assert_eq!(codes, ["wrong-value", "unexpected-field", "unanchored-regex"]);
    assert_eq!(document["summary"]["errors"], 2);
    let finished = run(&sandbox, &["lint", "missing.yaml"]);
    assert_eq!(finished.code, Some(3), "{finished}");
}

#[test]
fn paths_of_other_things_than_policies_are_explained() {
    let tests = "tests:\n- {name: n, calls: [{server: s, tool: t, expect: {action: ALLOW}}]}\n";
    let sandbox = sandbox().with_file("t.yaml", tests).with_file("package.json", "{\"name\": \"x\"}");
    insta::assert_snapshot!(run(&sandbox, &["lint", "."]), @r##"
    exit code: 3
    --- stderr
    error: cannot read the policy `.`
      caused by: it is a folder; a regular file is needed here
    hint: pass the policy file in the folder
    "##);
    let finished = run(&sandbox, &["test", "t.yaml", "p.yaml"]);
    assert_eq!(finished.code, Some(2), "{finished}");
    assert!(finished.stderr.contains("t.yaml:1:1: the document is a file of tests"), "{finished}");
    insta::assert_snapshot!(run(&sandbox, &["lint", "package.json"]).stdout, @r##"
error[missing-field]: the document is no policy: it has neither `policy_id` nor `mode` nor `rules`
 --> package.json:1:1
  |
1 | {"name": "x"}
  | ^^^^^^^^^^^^^ expected a policy, with `policy_id`, `version`, `mode` and `rules`
  |
  = help: pass the policy, or add the fields

1 error and 0 warnings in 1 file
    "##);
}

#[test]
fn explain_shows_each_rule_and_what_repetitions_change() {
    let sandbox = sandbox();
    let call =
        ["explain", "p.yaml", "--server", "git", "--tool", "push", "--args", "{\"force\": false}", "--repeat", "4"];
    let finished = run(&sandbox, &call);
    assert_eq!(finished.code, Some(0), "{finished}");
    insta::assert_snapshot!(finished.stdout, @r##"
Policy `shop`, version 1.0.0, mode guardrails: the rules decide.

Rules for call 4, in order:

   1  no-force  deny        no match: args.key_equals `force`: the call has false, and the rule needs true
   2  loop      breaker     matches every call: trips at 3 of 3 equal calls, and decides BLOCK

calls 1 to 2: ALLOW (DEFAULT_ALLOW): Allowed by default policy
calls 3 to 4: BLOCK by rule `loop` (BREAKER_TRIPPED): The breaker of rule `loop` tripped
    "##);
    let json = run(&sandbox, &[&call[..], &["--json"]].concat());
    let document: Value = serde_json::from_str(&json.stdout).unwrap();
    assert_eq!(document["rules"][0]["condition"], "match.args.key_equals `force`");
    assert_eq!(
        (&document["decisions"][1]["first"], &document["decisions"][1]["decision"]["action"]),
        (&3.into(), &"BLOCK".into())
    );
    let refused = run(&sandbox, &["explain", "p.yaml", "--server", "git", "--tool", "push", "--args", "[1]"]);
    assert_eq!(refused.code, Some(2), "{refused}");
    assert!(refused.stderr.contains("`--args` is not a JSON object"), "{refused}");
    let twice =
        run(&sandbox, &["explain", "p.yaml", "--server", "git", "--tool", "push", "--args", "{\"a\":1,\"a\":2}"]);
    assert!(
        twice.code == Some(2) && twice.stderr.contains("`--args`: the key `a` occurs twice in an object"),
        "{twice}"
    );
}

#[test]
fn explain_names_the_value_that_does_not_meet_a_condition() {
    let policy = "\
policy_id: all
version: '2'
mode: observe
selectors: {env: [ci]}
rules:
- {rule_id: server, kind: deny, match: {server_name: {glob: [files]}}}
- {rule_id: tool, kind: deny, match: {server_name: {glob: [git]}, tool_name: {regex: ['^read']}}}
- {rule_id: has, kind: deny, match: {args: {has_keys: [path]}}}
- {rule_id: in, kind: deny, match: {args: {key_in: {branch: [main, master]}}}}
- {rule_id: range, kind: deny, match: {args: {numeric_range: {amount: {min: 100}}}}}
- {rule_id: cel, kind: deny, match: {cel: \"call.args.branch == 'main'\"}}
- {rule_id: doubt, kind: allow, match: {cel: \"call.args.none == 1\"}}
- {rule_id: tag, kind: tag, match: {tool_name: {glob: [push]}}, effect: {tag: {add_risk_class: [write_like]}}}
- {rule_id: risk, kind: deny, match: {risk_class: [read_like]}}
- {rule_id: final, kind: deny, match: {risk_class: [write_like], args: {key_equals: {branch: dev}}}}
- {rule_id: budget, kind: budget, effect: {budget: {limit_calls: 5}}}
";
    let sandbox = sandbox().with_file("all.yaml", policy);
    let call = ["explain", "all.yaml", "--server", "git", "--tool", "push", "--args"];
    let args = "{\"branch\": \"dev\", \"amount\": \"120\"}";
    insta::assert_snapshot!(run(&sandbox, &[&call[..], &[args, "--env", "ci"]].concat()), @r##"
    exit code: 0
    --- stdout
    Policy `all`, version 2, mode observe: every call is allowed, and recorded with what the rules would decide.

    Rules for the call, in order:

       1  server  deny        no match: server_name: no pattern matches `git`
       2  tool    deny        no match: tool_name: no pattern matches `push`
       3  has     deny        no match: args.has_keys `path`: the call has no argument `path`
       4  in      deny        no match: args.key_in `branch`: the call has "dev", and the rule needs "main" or "master"
       5  range   deny        no match: args.numeric_range `amount`: the call has "120", and the rule needs a number of at least 100
       6  cel     deny        no match: cel: the expression is false
       7  doubt   allow       undecided: cel: missing field `none`; treated in the stricter way (see `defaults`): does not allow the call
       8  tag     tag         match (tool_name): adds write_like
       9  risk    deny        no match: risk_class: the call has `write_like`, and the rule needs `read_like`
      10  final   deny        match (risk_class, args.key_equals `branch`): decides BLOCK
      11  budget  budget      matches every call: 1 of 5 calls if this call is allowed

    decision: ALLOW (OBSERVE_MODE): Allowed: the policy only observes
      the rules would decide BLOCK by rule `final` (POLICY_BLOCK)
    "##);
    insta::assert_snapshot!(run(&sandbox, &[&call[..], &[args]].concat()).stdout, @r##"
    Policy `all`, version 2, mode observe: every call is allowed, and recorded with what the rules would decide.

    The policy is not for this run: selector `env` needs `ci`, and the run has `unknown`.
    Describe another run with `--client`, `--env`, `--agent` or `--workload`.

    decision: ALLOW (POLICY_NOT_APPLICABLE): Allowed: the policy is not for this run
    "##);
}

#[test]
fn diff_lists_changes_by_meaning_and_exits_as_git_does() {
    let other =
        POLICY.replace("mode: guardrails", "mode: control").replace("repeat_threshold: 3", "repeat_threshold: 4");
    let same = POLICY.replace("kind: deny", "kind: deny\n  enabled: true\n  effect: {action: BLOCK}");
    let sandbox = sandbox().with_file("other.yaml", &other).with_file("same.yaml", &same);
    let finished = run(&sandbox, &["diff", "p.yaml", "same.yaml", "--exit-code"]);
    assert_eq!((finished.code, finished.stdout.as_str()), (Some(0), "no differences\n"));
    let finished = run(&sandbox, &["diff", "p.yaml", "other.yaml"]);
    assert_eq!(finished.code, Some(0), "{finished}");
    insta::assert_snapshot!(finished.stdout, @r##"
mode
  - "guardrails"
  + "control"
rule `loop`: changed
  effect.breaker.repeat_threshold
    - 3
    + 4
    "##);
    assert_eq!(run(&sandbox, &["diff", "p.yaml", "other.yaml", "--exit-code"]).code, Some(1));
    let invalid = run(&sandbox.with_file("invalid.yaml", "a: 1\n"), &["diff", "p.yaml", "invalid.yaml"]);
    assert_eq!(invalid.code, Some(2), "{invalid}");
    assert!(invalid.stderr.contains("invalid.yaml:1:1") && invalid.stderr.contains("guard policy lint"), "{invalid}");
}

#[test]
fn test_points_at_the_expectation_that_failed() {
    let tests = "\
tests:
- name: force pushes are refused
  calls: [{server: git, tool: push, args: {force: true}, expect: {action: BLOCK, rule_id: no-force}}]
- name: pushes are refused
  calls:
  - {server: git, tool: push, expect: {action: BLOCK}}
";
    let sandbox = sandbox().with_file("p.test.yaml", tests);
    let finished = run(&sandbox, &["test", "p.yaml"]);
    assert_eq!(finished.code, Some(1), "{finished}");
    insta::assert_snapshot!(finished.stdout, @r##"
error[wrong-value]: the decision is ALLOW by default (DEFAULT_ALLOW)
 --> p.test.yaml:6:48
  |
5 |   calls:
6 |   - {server: git, tool: push, expect: {action: BLOCK}}
  |                                                ^^^^^ expected BLOCK
  |
  = pointer: /tests/1/calls/0/expect/action
  = help: correct the policy or the test; `guard policy explain` shows what each rule does

passed  force pushes are refused (1 call)
FAILED  pushes are refused (1 call)
1 passed, 1 failed
    "##);
    let nothing = "{\"tests\": [{\"name\": \"n\", \"calls\": [{\"server\": \"s\", \"tool\": \"t\"}]}]}";
    let finished = run(&sandbox.with_file("t.json", nothing), &["test", "p.yaml", "t.json"]);
    assert_eq!(finished.code, Some(1), "{finished}");
    assert!(finished.stdout.contains("t.json:1:35") && finished.stdout.contains("FAILED  n (1 call)"), "{finished}");
}

/// Returns the events of a call that a policy allowed, or observed with another decision.
fn recorded(call_id: &str, args: &Value, observed: Option<&str>) -> String {
    let event = |kind: &str, fields: &Value| {
        let mut event = json!({
            "v": "0.1.0", "type": kind, "ts": "2026-01-31T12:00:00.000Z", "run_id": "r", "agent_id": "a",
            "client": "codex", "env": "ci", "source": {"host_id": "h", "proc_id": "1", "shim_id": "s"},
        });
        for (name, value) in fields.as_object().unwrap() {
            event[name] = value.clone();
        }
        format!("{event}\n")
    };
    let hash = "a".repeat(64);
    let call = json!({"call_id": call_id, "server_name": "git", "tool_name": "push", "args_hash": hash});
    let mut start = call.clone();
    start["transport"] = json!("mcp_stdio");
    start["bytes_in"] = json!(90);
    start["seq"] = json!(1);
    start["preview"] = json!({"truncated": false, "args_preview": args.to_string()});
    let mut decision = json!({
        "action": "ALLOW", "rule_id": null, "severity": "info",
        "explain": {"summary": "s", "reason_code": "DEFAULT_ALLOW"},
        "policy": {"policy_id": "old", "policy_version": "1", "policy_hash": "none"},
    });
    if let Some(action) = observed {
        decision["observed"] = json!({"action": action, "rule_id": "old", "reason_code": "OLD"});
    }
    event("tool_call_start", &json!({"call": start}))
        + &event("tool_call_decision", &json!({"call": call, "decision": decision}))
}

#[test]
fn recorded_calls_of_the_mode_observe_are_counted_apart() {
    let forced = json!({"force": true});
    let events = [
        recorded("c1", &forced, None),
        recorded("c2", &forced, Some("ALLOW")),
        recorded("c3", &json!({}), Some("BLOCK")),
    ];
    let finished =
        run(&sandbox().with_file("events.jsonl", &events.concat()), &["test", "p.yaml", "--events", "events.jsonl"]);
    assert_eq!(finished.code, Some(1), "{finished}");
    insta::assert_snapshot!(finished.stdout, @r##"
1 call: recorded ALLOW (DEFAULT_ALLOW); this policy BLOCK by rule `no-force` (POLICY_BLOCK)
  2026-01-31T12:00:00Z  git/push  run r  call c1
1 call: recorded ALLOW by rule `old` (OLD); this policy BLOCK by rule `no-force` (POLICY_BLOCK)
  2026-01-31T12:00:00Z  git/push  run r  call c2
1 call: recorded BLOCK by rule `old` (OLD), allowed by the mode `observe`; this policy BLOCK by rule `loop` (BREAKER_TRIPPED)
  2026-01-31T12:00:00Z  git/push  run r  call c3
note: 2 calls were recorded in the mode `observe`, which refuses nothing; the recorded rules would have refused 1, and this policy would refuse 2
3 of 3 calls would be decided differently
    "##);
}

#[test]
fn a_file_without_calls_is_an_error() {
    let events = recorded("c1", &json!({}), None);
    let (start, _) = events.split_once('\n').unwrap();
    let sandbox =
        sandbox().with_file("empty.jsonl", "").with_file("start.jsonl", start).with_file("p2.txt", "policy\n");
    for (file, message) in [
        ("empty.jsonl", "error: `empty.jsonl` has no tool call\n"),
        ("start.jsonl", "error: `start.jsonl` has no decision about a tool call\n"),
        ("p2.txt", "error: `p2.txt` has no tool call; line 1 is not an event: "),
    ] {
        let finished = run(&sandbox, &["test", "p.yaml", "--events", file]);
        assert_eq!(finished.code, Some(2), "{finished}");
        assert!(finished.stderr.contains(message) && finished.stderr.contains("ledger export"), "{finished}");
    }
}

#[test]
fn a_condition_that_reads_an_argument_without_a_test_is_reported() {
    let policy = "\
policy_id: p
version: '1'
mode: guardrails
rules:
- rule_id: no-etc
  kind: deny
  match: {cel: \"call.args.path.startsWith('/etc')\"}
- rule_id: misspelt
  kind: deny
  match: {cel: call.tool == 'x'}
";
    let valid = policy.split("- rule_id: misspelt").next().unwrap();
    let sandbox = sandbox().with_file("both.yaml", policy).with_file("valid.yaml", valid);
    insta::assert_snapshot!(run(&sandbox, &["lint", "both.yaml"]), @r##"
exit code: 1
--- stdout
warning[unguarded-argument]: the expression has no value for calls without the argument `path`: the rule refuses them
 --> both.yaml:7:17
  |
6 |   kind: deny
7 |   match: {cel: "call.args.path.startsWith('/etc')"}
  |                 ^^^^^^^^^^^^^^ expected `has(call.args.path) && …`
  |
  = pointer: /rules/0/match/cel
  = help: test that the call has the argument, such as with `has(…) && …`

error[invalid-expression]: `call` has no field `tool`
 --> both.yaml:10:21
   |
 9 |   kind: deny
10 |   match: {cel: call.tool == 'x'}
   |                     ^^^^ expected a CEL condition
   |
   = pointer: /rules/1/match/cel
   = help: use one of `server_name`, `tool_name`, `args`, `bytes_in`, `transport`, `risk_class`

1 error and 1 warning in 1 file
    "##);
    insta::assert_snapshot!(run(&sandbox, &["explain", "valid.yaml", "--server", "s", "--tool", "t"]).stdout, @r##"
Policy `p`, version 1, mode guardrails: the rules decide.

Rules for the call, in order:

   1  no-etc  deny        undecided: cel: missing field `path`; treated in the stricter way (see `defaults`): decides BLOCK

decision: BLOCK by rule `no-etc` (POLICY_ERROR): Refused: rule `no-etc` could not be decided: `call.args.path` has no value
    "##);
}
