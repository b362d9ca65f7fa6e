//! `compare` on the sample runs and on the latest runs: output, written files and exit codes.

use std::fs;

use counterproof_store::write::{Durability, write};
use counterproof_tests::{Agent, Finished, Reply, Sandbox, files_below, minimal_answer};
use serde_json::{Value, json};

const CASES: &str = "sample-runs/cases.json";

/// A sandbox with the checked-in sample in `runs/`, the default of `compare`.
fn sample() -> Sandbox {
    Sandbox::new().with_sample_runs("sample-runs")
}

fn args<'a>(more: &[&'a str]) -> Vec<&'a str> {
    [&["compare", "--runs", "sample-runs/runs", "--cases", CASES][..], more].concat()
}

const BASELINE: &str = "sample-runs/runs/baseline/sample-baseline";
const NEW: &str = "sample-runs/runs/new/sample-new";

#[test]
fn the_latest_run_of_each_side_is_compared_and_a_worse_one_fails() {
    let sandbox = sample();
    let finished = sandbox.run(args(&[]));
    insta::assert_snapshot!(finished, @"
    exit code: 1
    --- stdout
    Gate failed: 3 cases regressed, 3 cases have no answer, 3 cases changed a high-risk action or lost a write and 1 more rule violated
      refund_damaged_001  regressed: must_include no longer met: “50 EUR” missing
      stock_check_001     broken: runner error on new: http_error 500 (server_error), after 2 attempts
      gift_advice_001     broken: runner error on new: timeout (response_timeout) of 3000 ms, after 2 attempts
      loyalty_points_001  broken: runner error on new: invalid_json 200 (not_json), the body is not JSON: EOF while parsing a string at line 1 column 405
      address_change_001  regressed: evidence_required_for_actions no longer met: missing or unresolved evidence for update_address (a1)
      cancel_order_001    regressed: cancel_order: risk low → high without evidence
      invoice_email_001   changed: lost write: result of send_email: failed, but succeeded on baseline

    Review:
      refund_damaged_001  high-risk action: refund_order A-1001: amount 50 → 500
      cancel_order_001  high-risk action: cancel_order A-1002: risk low → high without evidence (and 1 more)
      invoice_email_001  lost write: result of send_email: failed, but succeeded on baseline

    Other changes:
      return_policy_001  changed: output: “Yes. You can send it back within 30 days of delivery, unused…” → “Of course! As long as it is unused and still in its packagin…”
      delivery_slot_001  recovered: runner error on baseline: http_error 503 (server_error), after 2 attempts

                baseline        new             change
      solved    9 of 10 (90 %)  4 of 10 (40 %)  −50 points
      duration  3 ms            3 ms            unchanged
      steps     2.33            2               −14 %

    10 cases: 3 regressed · 3 broken · 2 changed · 1 recovered · 1 unchanged
    9 of 10 cases differ; new does not meet the expectations of 2 of 7 judged cases
    new sample-new compared with baseline sample-baseline; one run per side; the agent is declared deterministic

      ✗ regressed             3   at most 0
      ✗ broken                3   at most 0
      ✗ high risk changed     3   at most 0
      ✗ compared              6   at least 8 (80 % of 10)
      15 other rules are met

    report: report/index.html
    ");
    let evaluation = sandbox.json("report/evaluation.json");
    assert_eq!(evaluation["schema_version"], "evaluation.v1");
    assert_eq!(evaluation["counts"]["regressed"], 3);
    assert_eq!(evaluation["gate"]["passed"], false);
    assert!(sandbox.path("report/index.html").is_file());
}

#[test]
fn the_chosen_baseline_is_printed_if_there_are_several() {
    let mut sandbox = sample();
    let run = sandbox.json(&format!("{BASELINE}/run.json"));
    for (id, group) in [("older", None), ("oldest", None), ("twin", Some("sample"))] {
        let mut other = run.clone();
        (other["run_id"], other["generated_at"]) = (json!(id), json!("2020-01-01T00:00:00Z"));
        if let Some(group) = group {
            other["group_id"] = json!(group);
        }
        sandbox = sandbox.with_file(&format!("sample-runs/runs/baseline/{id}/run.json"), &other.to_string());
    }
    insta::assert_snapshot!(sandbox.run(args(&[])).stderr, @"note: using the latest baseline in `sample-runs/runs/baseline`, `sample-runs/runs/baseline/sample-baseline`; ignoring 3 others. Select others with `--baseline DIR…`");
    let mut grouped = run;
    grouped["group_id"] = json!("sample");
    let sandbox = sandbox.with_file(&format!("{BASELINE}/run.json"), &grouped.to_string());
    insta::assert_snapshot!(sandbox.run(args(&[])).stderr, @"note: using the latest baseline in `sample-runs/runs/baseline`, `sample-runs/runs/baseline/sample-baseline` with its 1 repeat; ignoring 2 others. Select others with `--baseline DIR…`");
    assert_eq!(sandbox.run(args(&["--baseline", BASELINE])).stderr, "");
}

#[test]
fn a_run_compared_with_itself_passes() {
    let sandbox = sample();
    fs::remove_file(sandbox.path(CASES)).unwrap();
    let finished = sandbox.run(["compare", BASELINE, BASELINE]);
    assert_eq!(finished.code, Some(0), "{finished}");
    let said: Vec<_> = finished.stdout.lines().take(3).collect();
    insta::assert_snapshot!(said.join("\n"), @"
    the run `sample-baseline` is compared with itself, so that nothing can differ
    Gate passed: no case got worse
    No expectations were judged; the gate only compares new with baseline
    ");
}

#[test]
fn each_run_folder_gets_the_evaluation_unless_disabled() {
    let sandbox = sample();
    let before = files_below(&sandbox.path("sample-runs"));
    sandbox.run(args(&["--no-write-back"]));
    assert_eq!(files_below(&sandbox.path("sample-runs")), before);

    sandbox.run(args(&[]));
    let report = sandbox.json("report/evaluation.json");
    for folder in [BASELINE, NEW] {
        assert_eq!(sandbox.json(&format!("{folder}/evaluation.json")), report);
    }
    let validated = sandbox.run(["validate", BASELINE, "report/evaluation.json"]);
    assert_eq!(validated.code, Some(0), "{validated}");
}

#[test]
fn the_same_runs_give_the_same_bytes_in_any_folder() {
    let (here, there) = (sample(), sample());
    for sandbox in [&here, &there] {
        sandbox.run(args(&["--out", "a/report"]));
        // The second report replaces the first one completely.
        sandbox.run(args(&["--out", "a/report"]));
    }
    let report = files_below(&here.path("a/report"));
    assert_eq!(report, files_below(&there.path("a/report")));
    for (path, bytes) in report {
        let text = String::from_utf8_lossy(&bytes);
        assert!(!text.contains(here.root().as_str()), "{path} names the folder it was made in");
    }
}

#[test]
fn a_case_on_one_side_only_fails_unless_allowed() {
    let sandbox = sample();
    let run = sandbox.json(&format!("{BASELINE}/run.json"));
    let mut less = run.clone();
    less["run_id"] = json!("less");
    less["selected_case_ids"] = json!(["order_history_001"]);
    less["stats"] = json!({});
    let order = std::fs::read_to_string(sandbox.path(&format!("{BASELINE}/order_history_001.json"))).unwrap();
    let asset = order.split("\"payload_asset_href\": \"").nth(1).and_then(|rest| rest.split('"').next()).unwrap();
    let payload = std::fs::read_to_string(sandbox.path(&format!("{BASELINE}/{asset}"))).unwrap();
    let sandbox = sandbox
        .with_file("less/run.json", &less.to_string())
        .with_file("less/order_history_001.json", &order)
        .with_file(&format!("less/{asset}"), &payload);

    let strict = sandbox.run(["compare", BASELINE, "less"]);
    assert_eq!(strict.code, Some(1), "{strict}");
    assert!(strict.stdout.contains("✗ unpaired"), "{strict}");
    let lenient = sandbox.run(["compare", BASELINE, "less", "--allow-unpaired"]);
    assert_eq!(lenient.code, Some(0), "{lenient}");
}

#[test]
fn gate_rules_come_from_the_configuration() {
    let lenient = "[gate]\nregressed = 3\nbroken = \"none\"\nhigh_risk_changed = \"none\"\nmin_compared = 6\n";
    let sandbox = sample().with_file("counterproof.toml", lenient).with_file("strict.toml", "[gate]\nchanged = 0\n");
    assert_eq!(sandbox.run(args(&[])).code, Some(0));
    let strict = sandbox.run(args(&["--config", "strict.toml"]));
    assert_eq!(strict.code, Some(1));
    assert!(strict.stdout.contains("✗ changed"), "{strict}");
}

#[test]
fn shares_and_limits_of_selected_cases_are_separate_rules() {
    let limits = "[gate]\nregressed = \"50 %\"\nbroken = \"30 %\"\n[gate.risk.high]\nregressed = 0\n\
                  [gate.suite.robustness]\nbroken = 3\n[gate.tag.mony]\nregressed = 0\n";
    let sandbox = sample().with_file("counterproof.toml", limits);
    let finished = sandbox.run(args(&["--verbose"]));
    let rules = |line: &&str| line.starts_with("  ✓") || line.starts_with("  ✗") || line.starts_with("    ");
    let said: Vec<_> = finished.stdout.lines().skip_while(|line| !line.starts_with("10 cases")).filter(rules).collect();
    insta::assert_snapshot!(said.join("\n"), @"
    ✓ regressed                        3   at most 3 (50 % of 6)
    ✓ broken                           3   at most 3 (30 % of 10)
      unconfirmed                      0   no limit
      still broken                     0   no limit
    ✓ invalid                          0   at most 0
    ✓ unpaired                         0   at most 0
      changed                          2   no limit
    ✓ unmet                            2   no more than baseline, or by chance (2 worse, 0 better)
    ✓ must                             0   at most 0
    ✗ high risk changed                3   at most 0
    ✓ fabricated                       0   at most 0
    ✓ failed evidence                  0   at most 0
    ✓ repeated call                    0   at most 0
    ✓ signals                          0   at most 0
    ✓ behaviour changed                0   at most 0
    ✓ text faults                      0   at most 0
    ✓ secret leaked                    0   at most 0
    ✓ suite fell                       0   at most 0
    ✓ suite fell, suite actions        0   at most 0
    ✓ suite fell, suite answers        0   at most 0
    ✓ suite fell, suite robustness     0   at most 0
      slower                           0   no limit
      costlier                         0   no limit; not reported
      longer                           0   no limit
    ✗ compared                         6   at least 8 (80 % of 10)
    ✗ regressed, risk high             2   at most 0
    ✓ broken, suite robustness         3   at most 3
    ✓ regressed, tag mony              0   at most 0; no case is in this scope
    ");
    insta::assert_snapshot!(finished.stderr, @"warning: the rules of `[gate.tag.mony]` are always met: no case of the cases file has this tag; the tags are advice, delivery, email, json, loyalty, money, order, orders, policy, privacy, refund, retrieval and 1 more");
    let rules = sandbox.json("report/evaluation.json")["gate"]["rules"].clone();
    let rule = json!({"code": "broken", "scope": {"kind": "suite", "name": "robustness"}, "bound": "at_most", "limit": 3,
                      "actual": 3, "of": 4, "passed": true});
    assert!(rules.as_array().unwrap().contains(&rule), "{rules:#}");
    assert_eq!((&rules[0]["share"], &rules[0]["of"], &rules[0]["limit"]), (&json!(0.5), &json!(6), &json!(3)));
    let valid = sandbox.run(["validate", "report/evaluation.json"]);
    assert_eq!(valid.code, Some(0), "{valid}");
    fs::remove_file(sandbox.path(CASES)).unwrap();
    let unknown = sandbox.run(["compare", BASELINE, NEW]);
    insta::assert_snapshot!(unknown, @"
    exit code: 2
    --- stderr
    error: the gate has rules for the suite robustness, which require the cases
    hint: pass the cases of the runs with `--cases`
    ");
}

#[test]
fn a_misspelt_rule_is_an_error_with_its_line() {
    let sandbox = sample().with_file("counterproof.toml", "[gate]\nregresed = 3\n");
    insta::assert_snapshot!(sandbox.run(args(&[])), @"
    exit code: 2
    --- stderr
    error: counterproof.toml:2:1: unknown key `regresed`; did you mean `regressed`?
      |
    1 | [gate]
    2 | regresed = 3
      | ^^^^^^^^
    hint: see docs/configuration.md for all settings
    ");
    let sandbox = sample().with_file("counterproof.toml", "[gate]\nregressed = -1\n");
    insta::assert_snapshot!(sandbox.run(args(&[])), @r#"
    exit code: 2
    --- stderr
    error: counterproof.toml:2:13: `gate.regressed`: expected a whole number of zero or more, a share such as "2 %" or 0.02, or "none"
      |
    1 | [gate]
    2 | regressed = -1
      |             ^^
    hint: see docs/configuration.md for all settings
    "#);
}

#[test]
fn missing_runs_are_reported_with_a_remedy() {
    let sandbox = Sandbox::new();
    insta::assert_snapshot!(sandbox.run(["compare"]), @"
    exit code: 2
    --- stderr
    error: no run of side `baseline` under `runs`
    hint: create one with `counterproof run --side baseline …`, or pass the run folders explicitly
    ");
    insta::assert_snapshot!(sandbox.run(["compare", "here", "there"]), @"
    exit code: 3
    --- stderr
    error: failed to read `here/run.json`
      caused by: No such file or directory (os error 2)
    hint: `here` does not exist; a run folder has the path RUNS/SIDE/RUN_ID, such as runs/new/build-1234
    ");
    let sandbox = sandbox.with_file("empty/notes.txt", "");
    insta::assert_snapshot!(sandbox.run(["compare", "empty", "there"]), @"
    exit code: 3
    --- stderr
    error: failed to read `empty/run.json`
      caused by: No such file or directory (os error 2)
    hint: `empty` is not a run folder: it contains no run.json
    ");
    insta::assert_snapshot!(sandbox.run(["compare", "empty/notes.txt", "there"]), @"
    exit code: 3
    --- stderr
    error: failed to read `empty/notes.txt/run.json`
      caused by: Not a directory (os error 20)
    hint: `empty/notes.txt` is a file; pass the run folder that contains it
    ");
    insta::assert_snapshot!(sandbox.run(["compare", "here"]), @r"
    exit code: 2
    --- stderr
    error: the following required arguments were not provided:
      <NEW>

    Usage: counterproof compare <BASELINE> <NEW>

    For more information, try '--help'.
    ");
}

#[test]
fn a_folder_that_is_not_a_report_is_left_unchanged() {
    let sandbox = sample().with_file("mine/notes.txt", "mine");
    let finished = sandbox.run(args(&["--out", "mine"]));
    assert_eq!(finished.code, Some(2), "{finished}");
    assert_eq!(files_below(&sandbox.path("mine")).len(), 1);
}

#[test]
fn the_cases_file_of_the_run_is_used_if_it_is_unchanged_and_named_if_not() {
    let sandbox = sample();
    let judged =
        |sandbox: &Sandbox| sandbox.json("report/evaluation.json")["cases"].to_string().contains("must_include");
    let used = sandbox.run(["compare", BASELINE, NEW]);
    let note = "note: expectations are checked with `sample-runs/cases.json`, which is unchanged since the run\n";
    assert!(used.stderr.contains(note) && judged(&sandbox), "{used}");
    assert_eq!(used.stdout, sandbox.run(["compare", BASELINE, NEW, "--cases", CASES]).stdout);
    // Another title or another order asks and expects the same; another expectation does not.
    let cases = fs::read_to_string(sandbox.path(CASES)).unwrap();
    let sandbox = sandbox.with_file(CASES, &cases.replacen("\"title\": \"", "\"title\": \"My ", 1));
    assert!(sandbox.run(["compare", BASELINE, NEW]).stderr.contains(note));
    let sandbox = sandbox.with_file(CASES, &cases.replace("50 EUR", "60 EUR"));
    let changed = sandbox.run(["compare", BASELINE, NEW]);
    let note = "note: expectations are not checked: its cases file changed since the run; to check them, pass `--cases \
                sample-runs/cases.json`\n";
    assert!(changed.stderr.contains(note) && !judged(&sandbox), "{changed}");
    fs::remove_file(sandbox.path(CASES)).unwrap();
    assert!(!sandbox.run(["compare", BASELINE, NEW]).stderr.contains("expectations"));
}

#[test]
fn an_edited_case_is_not_compared_with_its_old_input() {
    let case = |text: &str| json!([{"id": "a", "input": {"user": text}}, {"id": "b", "input": {"user": "Hello"}}]);
    let agent = Agent::start(|_| Reply::json(&minimal_answer()));
    let sandbox = Sandbox::new().with_file("cases.json", &case("Cancel order 1").to_string());
    let run = |sandbox: &Sandbox, side: &str| {
        let url = agent.base_url();
        let finished = sandbox.run(["run", "--cases", "cases.json", "--base-url", &url, "--side", side]);
        assert_eq!(finished.code, Some(0), "{finished}");
    };
    run(&sandbox, "baseline");
    let sandbox = sandbox.with_file("cases.json", &case("Cancel order 2").to_string());
    run(&sandbox, "new");
    let compared = sandbox.run(["compare", "--cases", "cases.json"]);
    assert_eq!(compared.code, Some(1), "half of the cases are not compared: {compared}");
    let lines: Vec<_> = compared.stdout.lines().take(2).collect();
    let expected =
        ["input changed in 1 of 2 cases (a): it is not compared", "Gate undecided: only 1 of 2 cases can be compared"];
    assert_eq!(lines, expected, "{compared}");
    let row = &sandbox.json("report/evaluation.json")["cases"][0];
    let reason = "the two sides received different input: user \"Cancel order 1\" → \"Cancel order 2\"";
    assert_eq!((&row["verdict"], &row["reasons"][0]["message"]), (&json!("not_comparable"), &json!(reason)));
    let valid = sandbox.run(["validate", "runs", "report/evaluation.json"]);
    assert_eq!(valid.code, Some(0), "{valid}");
}

#[test]
fn only_the_same_run_is_reported_as_compared_with_itself() {
    let copied = |sandbox: Sandbox, from: &str, to: &str, change: fn(&str) -> String| {
        files_below(&sandbox.path(from)).into_iter().fold(sandbox, |sandbox, (path, bytes)| {
            sandbox.with_file(&format!("{to}/{path}"), &change(&String::from_utf8(bytes).unwrap()))
        })
    };
    let same_id = |text: &str| text.replace("sample-baseline", "sample-new");
    let other_answer = |text: &str| text.replace("\"amount\": 500", "\"amount\": 501");
    let sandbox = copied(sample(), NEW, "copies/same", str::to_owned);
    let sandbox = copied(sandbox, BASELINE, "copies/same-id", same_id);
    let sandbox = copied(sandbox, NEW, "copies/other-answer", other_answer);
    let accepted =
        sandbox.run(["accept", NEW, "--reason", "ok", "--run-id", "mine", "--runs", "accepted", "--allow-failures"]);
    assert_eq!(accepted.code, Some(0), "{accepted}");
    let lines = |baseline: &str| {
        let compared = sandbox.run(["compare", baseline, NEW, "--no-write-back"]);
        let all = compared.stdout.lines().chain(compared.stderr.lines());
        let lines = all.filter(|line| line.contains("itself") || line.contains("same id"));
        lines.map(str::to_owned).collect::<Vec<_>>()
    };
    let itself = "the run `sample-new` is compared with itself, so that nothing can differ";
    for path in [NEW, "sample-runs/../sample-runs/runs/new/sample-new"] {
        assert_eq!(lines(path).join("\n"), itself);
    }
    for copy in ["copies/same", "accepted/baseline/mine"] {
        let warning = format!("warning: `{NEW}` is compared with itself: `{copy}` is a copy of the same run");
        assert_eq!(lines(copy), [warning]);
    }
    for other in ["copies/same-id", "copies/other-answer"] {
        let note = format!("note: `{other}` and `{NEW}` are different runs with the same id, `sample-new`");
        assert_eq!(lines(other), [note]);
    }
    assert_eq!(lines(BASELINE), Vec::<String>::new());

    let twice = |other: &str| sandbox.run(["compare", "--baseline", BASELINE, "--new", NEW, other, "--no-write-back"]);
    for (other, said) in
        [("copies/same", "are copies of the same run"), ("copies/other-answer", "are different runs with the same id")]
    {
        let refused = twice(other);
        assert!(refused.code == Some(2) && refused.stderr.contains(said), "{refused}");
    }
}

fn sandbox() -> Sandbox {
    Sandbox::new().with_file("cases.json", r#"[{"id": "one", "input": {"user": "go"}}]"#)
}

fn agent() -> Agent {
    Agent::start(|_case_id| Reply::json(&minimal_answer()))
}

fn run(sandbox: &Sandbox, url: &str, line: &str) -> Finished {
    sandbox.run(["run", "--cases", "cases.json", "--base-url", url].into_iter().chain(line.split(' ')))
}

/// Makes a run of an agent that answers.
#[track_caller]
fn answered(sandbox: &Sandbox, agent: &Agent, line: &str) -> Finished {
    let finished = run(sandbox, &agent.base_url(), line);
    assert_eq!(finished.code, Some(0), "{finished}");
    finished
}

/// Makes a run of an agent that is down.
#[track_caller]
fn unanswered(sandbox: &Sandbox, line: &str) {
    let finished = run(sandbox, "http://127.0.0.1:1", line);
    assert_eq!(finished.code, Some(3), "{finished}");
}

/// Changes the run.json of a baseline.
fn change_run(sandbox: &Sandbox, id: &str, change: impl Fn(&mut Value)) {
    let name = format!("runs/baseline/{id}/run.json");
    let mut run = sandbox.json(&name);
    change(&mut run);
    write(&sandbox.path(&name), run.to_string().as_bytes(), Durability::Cached).unwrap();
}

/// Compares without naming a run, and returns the id of the baseline that was used, or of its first repeat.
fn compared_baseline(sandbox: &Sandbox) -> String {
    let compared = sandbox.run(["compare", "--cases", "cases.json"]);
    assert!(sandbox.path("report/evaluation.json").is_file(), "{compared}");
    sandbox.json("report/evaluation.json")["baseline"]["run_id"].as_str().unwrap().to_owned()
}

fn notes(finished: &Finished) -> String {
    let is_note = |line: &&str| line.starts_with("note: ") || line.starts_with("warning: ");
    finished.stderr.lines().filter(is_note).collect::<Vec<_>>().join("\n")
}

#[test]
fn each_command_names_its_own_option_to_select_another_baseline() {
    let (sandbox, agent) = (sandbox(), agent());
    for id in ["a", "b"] {
        answered(&sandbox, &agent, &format!("--side baseline --run-id {id}"));
    }
    let confirmed = answered(&sandbox, &agent, "--side new --run-id n --confirm 2");
    insta::assert_snapshot!(notes(&confirmed), @"note: using the latest baseline in `runs/baseline`, `runs/baseline/b`; ignoring 1 other. Select others with `--against DIR…`");
    insta::assert_snapshot!(notes(&sandbox.run(["compare", "--cases", "cases.json"])), @"note: using the latest baseline in `runs/baseline`, `runs/baseline/b`; ignoring 1 other. Select others with `--baseline DIR…`");
}

#[test]
fn a_newer_baseline_without_answers_is_skipped_by_every_command_and_named() {
    let (sandbox, agent) = (sandbox(), agent());
    answered(&sandbox, &agent, "--side baseline --run-id good");
    unanswered(&sandbox, "--side baseline --run-id down");
    let note =
        "note: skipping the newer baseline `runs/baseline/down`: no case has an answer. You can remove the folder";

    let confirmed = answered(&sandbox, &agent, "--side new --run-id n --confirm 2");
    assert_eq!(notes(&confirmed), note, "{confirmed}");
    let compared = sandbox.run(["compare", "--cases", "cases.json"]);
    assert_eq!(notes(&compared), note, "{compared}");
    assert_eq!(sandbox.json("report/evaluation.json")["baseline"]["run_id"], "good");

    let appended = sandbox.run(["accept", "--append", "--reason", "more"]);
    assert!(appended.stderr.contains(note), "{appended}");
    assert_eq!(sandbox.json("runs/baseline/n/run.json")["group_id"], "good");
}

#[test]
fn a_stopped_baseline_is_skipped_if_none_of_its_artifacts_has_an_answer() {
    let (sandbox, agent) = (sandbox(), agent());
    answered(&sandbox, &agent, "--side baseline --run-id good");
    answered(&sandbox, &agent, "--side new --run-id n");
    for (id, chosen) in [("down", "good"), ("up", "up")] {
        let line = format!("--side baseline --run-id {id}");
        if id == "up" {
            answered(&sandbox, &agent, &line);
        } else {
            unanswered(&sandbox, &line);
        }
        change_run(&sandbox, id, |run| drop(run.as_object_mut().unwrap().remove("stats")));
        assert_eq!(compared_baseline(&sandbox), chosen);
    }
}

#[test]
fn a_group_of_repeats_is_skipped_only_if_no_repeat_has_an_answer() {
    let (sandbox, agent) = (sandbox(), agent());
    answered(&sandbox, &agent, "--side baseline --run-id good");
    answered(&sandbox, &agent, "--side baseline --run-id half --repeat 2");
    answered(&sandbox, &agent, "--side new --run-id n");
    for (id, chosen) in [("half-r2", "half-r1"), ("half-r1", "good")] {
        change_run(&sandbox, id, |run| run["stats"]["cases_completed"] = 0.into());
        assert_eq!(compared_baseline(&sandbox), chosen);
    }
}

#[test]
fn a_baseline_that_failed_is_never_used() {
    let (sandbox, agent) = (sandbox(), agent());
    unanswered(&sandbox, "--side baseline --run-id down");
    let confirmed = answered(&sandbox, &agent, "--side new --run-id n --confirm 2");
    let failed = "no usable run of side `baseline` under `runs`: found only runs that were stopped or failed, such as `runs/baseline/down`";
    assert_eq!(notes(&confirmed), format!("note: {failed}; no case is confirmed"), "{confirmed}");
    let compared = sandbox.run(["compare", "--cases", "cases.json"]);
    assert_eq!(compared.code, Some(2), "{compared}");
    assert!(compared.stderr.contains(failed), "{compared}");
}

#[test]
fn shards_in_processes_of_their_own_give_the_report_of_one_process() {
    let sandbox = sample();
    let one = sandbox.run(args(&["--no-write-back", "--out", "one"]));
    for shard in ["1/3", "2/3"] {
        let facts = sandbox.run(args(&["--shard", shard, "--facts", "facts"]));
        assert_eq!((facts.code, facts.stdout.lines().count()), (Some(0), 1), "{facts}");
    }
    let early = sandbox.run(args(&["--from-facts", "facts"]));
    insta::assert_snapshot!(early, @r"
    exit code: 2
    --- stderr
    error: 1 of 3 shards have no facts: 3
    hint: write them with `counterproof compare --shard K/N --facts DIR`, with the same runs and options
    ");
    assert!(!sandbox.path("report").exists());
    sandbox.run(args(&["--shard", "3/3", "--facts", "facts"]));
    let all = sandbox.run(args(&["--no-write-back", "--from-facts", "facts", "--out", "all"]));
    assert_eq!((all.code, all.stdout.replace("all/index", "one/index")), (one.code, one.stdout));
    assert_eq!(files_below(&sandbox.path("all")), files_below(&sandbox.path("one")));
    let sandbox = sandbox.with_file("counterproof.toml", "[[compare.rule]]\npath = \"/events/*/ts\"\nignore = true\n");
    let other = sandbox.run(args(&["--from-facts", "facts"]));
    assert_eq!(other.code, Some(2), "{other}");
}
