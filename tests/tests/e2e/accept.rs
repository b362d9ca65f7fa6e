//! `accept`: a run becomes the baseline, completely or not at all, and only if other runs can be compared with it.

use camino::Utf8Path;
use counterproof_store::write::{Durability, write};
use counterproof_tests::{Agent, Finished, Reply, Sandbox, files_below, minimal_answer};
use serde_json::{Value, json};

const CASES: &str = r#"[{"id": "a", "input": {"user": "1"}}, {"id": "b", "input": {"user": "2"}}]"#;

fn sandbox() -> Sandbox {
    Sandbox::new().with_file("cases.json", CASES)
}

fn agent() -> Agent {
    Agent::start(|_case| Reply::json(&minimal_answer()))
}

#[track_caller]
fn ask(sandbox: &Sandbox, agent: &Agent, more: &[&str]) {
    let url = agent.base_url();
    let finished = sandbox.run([&["run", "--cases", "cases.json", "--base-url", &url], more].concat());
    assert_eq!(finished.code, Some(0), "{finished}");
}

fn accept(sandbox: &Sandbox, more: &[&str]) -> Finished {
    sandbox.run([&["accept", "--reason", "as decided"], more].concat())
}

fn edit(sandbox: &Sandbox, name: &str, change: impl Fn(&mut Value)) {
    let mut document = sandbox.json(name);
    change(&mut document);
    write(&sandbox.path(name), document.to_string().as_bytes(), Durability::Cached).unwrap();
}

#[track_caller]
fn assert_valid(sandbox: &Sandbox, path: &str) {
    let validated = sandbox.run(["validate", path]);
    assert_eq!(validated.code, Some(0), "{validated}");
}

#[test]
fn an_accepted_run_is_what_the_next_one_is_compared_with() {
    let (sandbox, agent) = (sandbox(), agent());
    ask(&sandbox, &agent, &["--side", "new", "--run-id", "good"]);
    // The accepted run becomes the latest baseline, even if another one started later.
    ask(&sandbox, &agent, &["--side", "baseline", "--run-id", "zzz"]);
    let before = files_below(&sandbox.path("runs/new"));
    insta::assert_snapshot!(accept(&sandbox, &["--by", "Kim"]), @"
    exit code: 0
    --- stdout
    baseline: runs/baseline/good (2 cases)
    --- stderr
    note: a baseline of one run confirms 2 or more of 2 cases that fail together, and no single case; add runs with `counterproof accept --append`, or create a baseline of five with `counterproof run --side baseline --repeat 5`
    next: counterproof check compares the next run with this baseline
    ");
    assert_eq!(files_below(&sandbox.path("runs/new")), before);
    assert_valid(&sandbox, "runs");
    let run = sandbox.json("runs/baseline/good/run.json");
    let accepted = &run["accepted"];
    assert_eq!((&run["version"], &run["run_id"]), (&json!("baseline"), &json!("good")));
    assert_eq!(
        (&accepted["reason"], &accepted["from_run_id"], &accepted["by"]),
        (&json!("as decided"), &json!("good"), &json!("Kim"))
    );
    assert_eq!(sandbox.json("runs/baseline/good/a.json")["version"], "baseline");

    ask(&sandbox, &agent, &["--side", "new", "--run-id", "next"]);
    let compared = sandbox.run(["compare"]);
    assert_eq!(compared.code, Some(0), "{compared}");
    assert_eq!(sandbox.json("report/evaluation.json")["baseline"]["run_id"], "good");
    let page = std::fs::read_to_string(sandbox.path("report/index.html")).unwrap();
    assert!(page.contains("as decided"), "the report says why");

    let again = accept(&sandbox, &["runs/new/good"]);
    insta::assert_snapshot!(again, @"
    exit code: 2
    --- stderr
    error: the baseline `runs/baseline/good` already exists
    hint: choose another ID with `--run-id`
    ");
    assert_eq!(accept(&sandbox, &["runs/new/good", "--run-id", "better"]).code, Some(0));
    assert_eq!(sandbox.json("runs/baseline/better/run.json")["accepted"]["from_run_id"], "good");
    assert_valid(&sandbox, "runs");
}

#[test]
fn files_without_a_side_are_copied_byte_for_byte() {
    let checked_in = Utf8Path::new(env!("CARGO_MANIFEST_DIR")).join("../sample-runs");
    let mut sandbox = Sandbox::new();
    for (path, bytes) in files_below(&checked_in) {
        sandbox = sandbox.with_file(path.as_str(), &String::from_utf8(bytes).unwrap());
    }
    let finished = accept(&sandbox, &["runs/new/sample-new", "--allow-failures", "--run-id", "copy"]);
    assert_eq!(finished.code, Some(0), "{finished}");
    let (old, new) =
        (files_below(&sandbox.path("runs/new/sample-new")), files_below(&sandbox.path("runs/baseline/copy")));
    assert_eq!(old.len(), new.len());
    let mut copied = 0;
    for ((path, old), (copy, new)) in old.iter().zip(&new) {
        assert_eq!(path, copy);
        let (old, new) = (String::from_utf8_lossy(old), String::from_utf8_lossy(new));
        if path != "run.json" && path != "assets/manifest.json" {
            let other_side = |text: &str| text.replacen("\"version\": \"new\"", "\"version\": \"baseline\"", 1);
            let expected = if path.as_str().ends_with(".request.json") { old.to_string() } else { other_side(&old) };
            assert_eq!(new, expected, "{path}");
            copied += usize::from(new == old);
        }
    }
    assert!(copied > 0, "the sample has assets that name no side");
    // The sample has unresolved evidence, which comes from the agent.
    let findings = sandbox.run(["validate", "runs/baseline/copy", "--format", "json"]).stdout;
    let findings: Value = serde_json::from_str(&findings).unwrap();
    let codes = findings["findings"].as_array().unwrap().iter().map(|finding| finding["code"].as_str().unwrap());
    assert!(codes.clone().all(|code| code == "evidence-unresolved"), "{findings:#}");
}

#[test]
fn a_run_that_cannot_be_a_baseline_is_refused_and_leaves_no_files() {
    let sandbox = sandbox();
    let broken =
        Agent::start(
            |case| {
                if case == "a" { Reply::text(400, "text/plain", "no") } else { Reply::json(&minimal_answer()) }
            },
        );
    ask(&sandbox, &broken, &["--side", "new", "--run-id", "failed"]);
    let good = agent();
    for id in ["stopped", "lacking", "torn", "foreign"] {
        ask(&sandbox, &good, &["--side", "new", "--run-id", id]);
    }
    ask(&sandbox, &good, &["--side", "new", "--run-id", "part", "--shard", "1/1"]);
    ask(&sandbox, &good, &["--side", "baseline", "--run-id", "old"]);
    edit(&sandbox, "runs/new/stopped/run.json", |run| {
        run.as_object_mut().unwrap().remove("stats");
    });
    std::fs::remove_file(sandbox.path("runs/new/lacking/b.json")).unwrap();
    edit(&sandbox, "runs/new/torn/b.json", |case| case["events"] = json!(7));
    edit(&sandbox, "runs/new/foreign/b.json", |case| case["version"] = json!("baseline"));
    let before = files_below(&sandbox.path("runs"));
    for (run, code, said, remedy) in [
        ("new/failed", 1, "no answer for 1 of 2 cases", "--resume failed --retry-errors"),
        ("new/stopped", 1, "stopped before its end", "--resume stopped"),
        ("new/lacking", 1, "1 of 2 cases have no artifact, such as `b`", "--resume lacking"),
        ("new/torn", 1, "b.json: ", "counterproof validate runs/new/torn"),
        ("new/foreign", 1, "(side-differs)", "counterproof validate"),
        ("new/part-s1of1", 1, "is a shard", "counterproof merge"),
        ("baseline/old", 2, "of side `baseline` already", "latest baseline"),
        ("new/nothing", 2, "failed to read", "does not exist"),
    ] {
        let finished = accept(&sandbox, &[&format!("runs/{run}")]);
        assert_eq!(finished.code, Some(code), "{run}: {finished}");
        assert!(finished.stderr.contains(said) && finished.stderr.contains(remedy), "{run}: {finished}");
    }
    assert_eq!(files_below(&sandbox.path("runs")), before);
    let allowed = accept(&sandbox, &["runs/new/failed", "--allow-failures"]);
    assert_eq!(allowed.code, Some(0), "{allowed}");
    assert_valid(&sandbox, "runs/baseline");
}

#[test]
fn a_reason_is_required() {
    let sandbox = sandbox();
    assert_eq!(sandbox.run(["accept"]).code, Some(2));
    let blank = sandbox.run(["accept", "--reason", " "]);
    assert_eq!(blank.code, Some(2));
    assert!(blank.stderr.contains("the reason is empty"), "{blank}");
    insta::assert_snapshot!(accept(&sandbox, &[]), @"
    exit code: 2
    --- stderr
    error: no run of side `new` under `runs`
    hint: create one with `counterproof run --side new …`, or pass the run folders explicitly
    ");
}

#[test]
fn the_repeats_of_a_group_are_accepted_together() {
    let (sandbox, agent) = (sandbox(), agent());
    ask(&sandbox, &agent, &["--side", "new", "--run-id", "n", "--repeat", "3"]);
    let second = sandbox.path("runs/new/n-r2");
    let aside = sandbox.path("n-r2");
    std::process::Command::new("mv").arg(&second).arg(&aside).status().unwrap();
    let lacking = accept(&sandbox, &["runs/new/n-r3"]);
    assert_eq!(lacking.code, Some(1), "{lacking}");
    assert!(lacking.stderr.contains("missing in `runs/new`: 2"), "{lacking}");
    std::process::Command::new("mv").arg(&aside).arg(&second).status().unwrap();

    let accepted = accept(&sandbox, &["runs/new/n-r3", "--run-id", "base"]);
    assert_eq!(accepted.code, Some(0), "{accepted}");
    for number in 1..=3 {
        let run = sandbox.json(&format!("runs/baseline/base-r{number}/run.json"));
        assert_eq!((&run["group_id"], &run["repeat"]), (&json!("base"), &json!(number)));
    }
    assert_valid(&sandbox, "runs");

    // The state after a crash between two copies.
    std::fs::remove_dir_all(sandbox.path("runs/baseline/base-r2")).unwrap();
    assert_eq!(accept(&sandbox, &["runs/new/n-r1", "--run-id", "base"]).code, Some(0));
    assert!(sandbox.path("runs/baseline/base-r2/run.json").is_file());
    assert_eq!(accept(&sandbox, &["runs/new/n-r1", "--run-id", "base"]).code, Some(2));
}

#[test]
fn a_payload_that_resembles_body_metadata_is_copied_unchanged() {
    let agent = Agent::start(|_case| {
        let mut answer = minimal_answer();
        let payload = json!({"schema_version": "failure-meta.v1", "version": "new", "filler": "x".repeat(100_000)});
        answer["events"] = json!([
            {"type": "tool_call", "ts": 1, "call_id": "c", "tool": "look", "args": {}},
            {"type": "tool_result", "ts": 2, "call_id": "c", "status": "ok", "latency_ms": 1, "payload_summary": payload},
        ]);
        Reply::json(&answer)
    });
    let sandbox = sandbox();
    ask(&sandbox, &agent, &["--side", "new", "--run-id", "good"]);
    let files = files_below(&sandbox.path("runs/new/good"));
    assert!(files.iter().any(|(path, _)| path.as_str().contains("full_payload")), "{files:?}");
    assert_eq!(accept(&sandbox, &[]).code, Some(0));
    assert_valid(&sandbox, "runs/baseline/good");
}

#[test]
fn a_run_that_does_not_exist_is_a_usage_error() {
    insta::assert_snapshot!(accept(&sandbox(), &["runs/new/missing"]), @"
    exit code: 2
    --- stderr
    error: failed to read `runs/new/missing/run.json`
      caused by: No such file or directory (os error 2)
    hint: `runs/new/missing` does not exist; a run folder has the path RUNS/SIDE/RUN_ID, such as runs/new/build-1234
    ");
    // A run.json that exists but is not a run is a failed read, not a wrong name.
    let sandbox = sandbox().with_file("runs/new/broken/run.json", "[]");
    insta::assert_snapshot!(accept(&sandbox, &["runs/new/broken"]), @"
    exit code: 3
    --- stderr
    error: `runs/new/broken/run.json` is not a valid document
      caused by: invalid type: sequence, expected an object with the fields of a run at line 1 column 0
    ");
}

/// An agent that proposes a refund in the case `refund`, with a note and a ticket that differ in each answer.
fn refunding_agent() -> Agent {
    let asked = std::sync::atomic::AtomicUsize::new(0);
    Agent::start(move |case| {
        let number = asked.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
        let mut answer = minimal_answer();
        if case == "refund" {
            answer["proposed_actions"] = json!([{
                "action_id": "a1", "action_type": "refund", "tool_name": "refund_order", "risk_level": "high", "risk_tags": [],
                "evidence_refs": [], "params": {"order_id": "A-1", "amount": 50, "note": format!("run {number}")}
            }]);
            answer["final_output"]["content"] = json!(format!("I refund 50 EUR. Ticket {number}."));
        }
        Reply::json(&answer)
    })
}

#[test]
fn expectations_are_drafted_from_what_all_runs_of_the_baseline_share() {
    let agent = refunding_agent();
    let cases = json!([{"id": "refund", "input": {"user": "go"}}, {"id": "hello", "input": {"user": "go"}}]);
    let sandbox = Sandbox::new().with_file("cases.json", &cases.to_string());
    let url = agent.base_url();
    let line = ["run", "--cases", "cases.json", "--side", "new", "--base-url", &url, "--run-id", "n", "--repeat", "3"];
    assert_eq!(sandbox.run(line).code, Some(0));
    let accept = ["accept", "--reason", "good", "--expect", "--cases", "cases.json"];
    let accepted = sandbox.run(accept);
    let said = "drafts: cases.draft.json (3 expectations for 2 cases, from 3 runs)";
    assert!(accepted.code == Some(0) && accepted.stdout.contains(said), "{accepted}");
    let drafts = sandbox.json("cases.draft.json");
    let exprs = [
        "proposed_actions.exists(a, a.tool_name == 'refund_order' && a.params.amount == 50 && a.params.order_id == 'A-1')",
        "final_output.content.matches('(^|[^0-9A-Za-z.,-])50($|[^0-9A-Za-z.,-]|[.,-]($|[^0-9A-Za-z]))')",
    ];
    for (index, expr) in exprs.into_iter().enumerate() {
        let draft = &drafts[0]["expected"]["expect"][index];
        assert_eq!((&draft["expr"], &draft["draft"]), (&json!(expr), &json!(true)));
    }
    assert_eq!(drafts[1]["expected"]["expect"][0]["name"], json!("never uses refund_order"));
    // A file that a person may be editing is not replaced, and nothing is accepted then.
    let again = sandbox.run(accept.into_iter().chain(["--run-id", "other"]));
    assert!(again.code == Some(2) && again.stderr.contains("`cases.draft.json` already exists"), "{again}");
    assert!(!sandbox.path("runs/baseline/other-r1").exists());

    // As copied, the drafts are valid but not evaluated; without the mark they are, and the baseline meets them.
    let with = |is_draft: bool| {
        let mut cases = cases.clone();
        for (case, draft) in cases.as_array_mut().unwrap().iter_mut().zip(drafts.as_array().unwrap()) {
            case["expected"] = draft["expected"].clone();
            for entry in case["expected"]["expect"].as_array_mut().unwrap() {
                entry["draft"] = json!(is_draft);
            }
        }
        cases.to_string()
    };
    let sandbox = sandbox.with_file("drafts.json", &with(true)).with_file("read.json", &with(false));
    let compare = |cases: &str| {
        let compared = sandbox.run(["compare", "--cases", cases]);
        let evaluation = sandbox.json("report/evaluation.json");
        let judged = evaluation["cases"].as_array().unwrap().iter();
        let results = judged.map(|case| case["expectations"].as_array().map_or(0, Vec::len)).sum::<usize>();
        let mut rules = evaluation["gate"]["rules"].as_array().unwrap().iter();
        let unmet = rules.find(|rule| rule["code"] == "unmet").map(|rule| rule["actual"].clone());
        (results, unmet, compared)
    };
    let (results, _, compared) = compare("drafts.json");
    assert!(
        results == 0 && compared.stderr.contains("note: 3 draft expectations in `drafts.json` not checked"),
        "{compared}"
    );
    let (results, unmet, compared) = compare("read.json");
    assert_eq!((results, unmet), (3, Some(json!(0))), "{compared}");
}

#[test]
fn an_appended_run_makes_the_baseline_longer() {
    let (sandbox, agent) = (sandbox(), agent());
    for (id, more) in [("one", &["--append"][..]), ("two", &["--append"]), ("three", &["--append"])] {
        ask(&sandbox, &agent, &["--side", "new", "--run-id", id]);
        let accepted = accept(&sandbox, more);
        assert_eq!(accepted.code, Some(0), "{accepted}");
    }
    ask(&sandbox, &agent, &["--side", "new", "--run-id", "next"]);
    let compared = sandbox.run(["compare"]);
    assert_eq!(compared.code, Some(0), "{compared}");
    let evaluation = sandbox.json("report/evaluation.json");
    let runs = evaluation["repeats"]["baseline"].as_array().unwrap();
    let ids: Vec<_> = runs.iter().map(|run| run["run_id"].as_str().unwrap()).collect();
    assert_eq!(ids, ["one", "two", "three"]);
    assert_valid(&sandbox, "runs");
}

#[test]
fn a_run_that_another_process_writes_is_refused_as_by_run() {
    let (sandbox, agent) = (sandbox(), agent());
    ask(&sandbox, &agent, &["--side", "new", "--run-id", "r1"]);
    let lock = counterproof_store::lock_run_folder(&sandbox.path("runs/new/r1")).unwrap();
    let url = agent.base_url();
    let resumed = sandbox.run(["run", "--cases", "cases.json", "--base-url", &url, "--side", "new", "--resume", "r1"]);
    let accepted = accept(&sandbox, &[]);
    drop(lock);
    for finished in [resumed, accepted] {
        assert_eq!(finished.code, Some(2), "{finished}");
        assert!(finished.stderr.contains("hint: wait until the other process ends, or stop it"), "{finished}");
    }
}

#[test]
fn labels_are_stored_with_the_baseline_and_rank_what_it_failed_below() {
    let agent = Agent::start(|_case| Reply::json(&minimal_answer()));
    let sandbox = sandbox().with_file("truth.json", "{\"a\": true, \"b\": 0}");
    ask(&sandbox, &agent, &["--side", "new", "--run-id", "good"]);
    let accepted = accept(&sandbox, &["--labels", "truth.json"]);
    assert_eq!(accepted.code, Some(0), "{accepted}");
    let labels = json!({"schema_version": "labels.v1", "solved": {"a": true, "b": false}});
    assert_eq!(sandbox.json("runs/baseline/good/labels.json"), labels);
    assert!(!sandbox.path("runs/new/good/labels.json").exists(), "the run does not change");
    assert_valid(&sandbox, "runs");
    assert_valid(&sandbox, "runs/baseline/good/labels.json");

    let changed = Agent::start(|_case| {
        let mut answer = minimal_answer();
        answer["final_output"]["content"] = json!("You get 5000.");
        Reply::json(&answer)
    });
    ask(&sandbox, &changed, &["--side", "new", "--run-id", "next"]);
    let compared = sandbox.run(["compare"]);
    assert!(!compared.stderr.contains("labels"), "{compared}");
    let evaluation = sandbox.json("report/evaluation.json");
    assert_eq!(evaluation["cases"].as_array().unwrap().len(), 2, "the labels are no case");
    let score = |index: usize| evaluation["cases"][index]["severity"]["score"].as_f64().unwrap();
    assert!(score(0) > 10.0 * score(1), "{} {}", score(0), score(1));

    // Labels that cannot be read are named, and the comparison goes on without them.
    edit(&sandbox, "runs/baseline/good/labels.json", |labels| labels["solved"]["a"] = json!("yes"));
    let compared = sandbox.run(["compare"]);
    assert!(compared.stderr.contains("so the labels of its run are not used"), "{compared}");
    assert_eq!(sandbox.run(["validate", "runs"]).code, Some(1));
}

#[test]
fn labels_that_do_not_fit_the_run_are_refused_with_their_place() {
    let (sandbox, agent) = (sandbox(), agent());
    ask(&sandbox, &agent, &["--side", "new", "--run-id", "good"]);
    let refused = |labels: &str| {
        write(&sandbox.path("truth.json"), labels.as_bytes(), Durability::Cached).unwrap();
        accept(&sandbox, &["--labels", "truth.json"])
    };
    for (labels, message) in [
        ("{\"a\": true,\n \"c\": false}", "error: truth.json:2:7: the run has no case `c`"),
        ("{\"a\": 0.5}", "error: truth.json:1:7: the label of `a` is 0.5, not true, false, 1 or 0"),
        ("{\"a\": 1", "EOF while parsing an object at line 1 column 7"),
        ("{}", "error: `truth.json` is not an object with a label for each case"),
    ] {
        let finished = refused(labels);
        assert!(finished.code == Some(2) && finished.stderr.contains(message), "{labels}: {finished}");
    }
    let absent = accept(&sandbox, &["--labels", "absent.json"]);
    assert!(absent.code == Some(3) && absent.stderr.contains("failed to read `absent.json`"), "{absent}");
    assert!(!sandbox.path("runs/baseline").exists());
}

fn review(marks: &[(&str, &str)]) -> String {
    let marks: Vec<_> = marks.iter().map(|(case, mark)| json!({"case_id": case, "mark": mark})).collect();
    json!({"schema_version": "review.v1", "marks": marks}).to_string()
}

#[test]
fn a_review_is_stored_with_the_reason_and_shown_by_later_comparisons() {
    let (sandbox, agent) = (sandbox().with_file("review.json", &review(&[("a", "wrong"), ("b", "known")])), agent());
    ask(&sandbox, &agent, &["--side", "new", "--run-id", "good"]);
    let accepted = accept(&sandbox, &["--review", "review.json"]);
    assert_eq!(accepted.code, Some(0), "{accepted}");
    assert!(accepted.stdout.contains("review: 0 right, 1 wrong, 1 known\n"), "{accepted}");
    let note = "note: marked as wrong, and part of this baseline: `a`; comparisons will not report the same behaviour";
    assert!(accepted.stderr.contains(note), "{accepted}");
    let stored = sandbox.json("runs/baseline/good/run.json");
    assert_eq!(stored["accepted"]["review"], sandbox.json("review.json"));
    assert_eq!(stored["accepted"]["reason"], "as decided");
    assert_valid(&sandbox, "runs");

    ask(&sandbox, &agent, &["--side", "new", "--run-id", "next"]);
    let compared = sandbox.run(["compare"]);
    assert_eq!(compared.code, Some(0), "{compared}");
    assert!(
        std::fs::read_to_string(sandbox.path("report/cases/a.html"))
            .unwrap()
            .contains("<dt>baseline marked as</dt><dd><bdi>wrong</bdi></dd>")
    );
    assert!(
        std::fs::read_to_string(sandbox.path("report/index.html"))
            .unwrap()
            .contains("as decided (0 right, 1 wrong, 1 known)")
    );
}

#[test]
fn a_review_that_does_not_fit_is_refused_with_its_place_and_nothing_is_accepted() {
    let (sandbox, agent) = (sandbox(), agent());
    ask(&sandbox, &agent, &["--side", "new", "--run-id", "good"]);
    for (review, message) in [
        (review(&[("a", "right"), ("c", "wrong")]), "marks[1]: the run has no case `c`"),
        (review(&[("a", "good")]), "marks[0]: unknown variant `good`, expected one of `right`, `wrong`, `known`"),
        (review(&[("a", "right"), ("a", "wrong")]), "marks[1]: the case `a` has a mark already, marks[0]"),
        (review(&[]).replace("v1", "v2"), "`marked.json` has the schema_version `review.v2`, not `review.v1`"),
        ("{\"a\": true}".to_owned(), "missing field `schema_version`"),
    ] {
        write(&sandbox.path("marked.json"), review.as_bytes(), Durability::Cached).unwrap();
        let finished = accept(&sandbox, &["--review", "marked.json"]);
        let is_named = finished.stderr.contains(message) && finished.stderr.contains("marked.json");
        assert!(finished.code == Some(2) && is_named, "{review}: {finished}");
    }
    let absent = accept(&sandbox, &["--review", "absent.json"]);
    assert!(absent.code == Some(3) && absent.stderr.contains("failed to read `absent.json`"), "{absent}");
    let without_reason = sandbox.run(["accept", "--review", "marked.json"]);
    assert!(without_reason.code == Some(2) && without_reason.stderr.contains("--reason <TEXT>"), "{without_reason}");
    assert!(!sandbox.path("runs/baseline").exists());
}
