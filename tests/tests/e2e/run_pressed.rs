//! `counterproof run` under pressure: overloaded agents, its JSON Lines output, and `kill -9`.

use std::process::Stdio;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use camino::Utf8Path;
use counterproof_store::write::TEMPORARY_PREFIX;
use counterproof_tests::{Agent, Finished, Reply, Sandbox, files_below, minimal_answer};
use insta::assert_snapshot;
use serde_json::{Value, json};

use crate::run::assert_holds_to_the_contract;

fn run(sandbox: &Sandbox, agent: &Agent, more: &[&str]) -> Finished {
    let url = agent.base_url();
    let arguments = ["run", "--cases", "cases.json", "--side", "new", "--run-id", "r1", "--base-url", &url];
    sandbox.run(arguments.iter().chain(more)).redact(&url, "http://AGENT")
}

fn sandbox() -> Sandbox {
    let case = |id: &str| json!({"id": id, "input": {"user": "hello"}});
    Sandbox::new().with_file("cases.json", &json!(["c1", "c2", "c3", "c4"].map(case)).to_string())
}

/// An agent that answers `answers` requests and then refuses all others.
fn dying_after(answers: usize) -> Agent {
    let asked = AtomicUsize::new(0);
    Agent::start(move |_| {
        if asked.fetch_add(1, Ordering::Relaxed) < answers {
            Reply::json(&minimal_answer())
        } else {
            Reply::text(503, "text/plain", "")
        }
    })
}

fn lines(stdout: &str) -> Vec<Value> {
    stdout.lines().map(|line| serde_json::from_str(line).unwrap_or_else(|error| panic!("{line}: {error}"))).collect()
}

#[test]
fn an_agent_that_is_down_is_abandoned_and_no_case_is_missing() {
    let sandbox = sandbox();
    let finished = run(&sandbox, &dying_after(1), &["--retries", "0", "--fail-fast", "2", "--concurrency", "1"]);
    assert_snapshot!(finished, @"
    exit code: 3
    --- stdout
    run folder: runs/new/r1
    --- stderr
    4 cases: 1 ok, 3 failed (2 http_error, 1 other), 0 retried
      c2: server_error 503
      c3: server_error 503
      c4: not_run: the case was not run: the agent looks down after 2 consecutive failures
    error: the agent at http://AGENT looks down; skipped 1 case
    hint: the artifacts in the run folder contain the details of each attempt
    hint: run the skipped cases: counterproof run --resume r1 --cases cases.json --base-url http://AGENT --concurrency 1 --retries 0 --fail-fast 2 --side new
    ");
    assert_holds_to_the_contract(&sandbox.path("runs/new/r1"));
    assert_eq!(sandbox.json("runs/new/r1/c4.json")["runner_failure"]["error_name"], "not_run");
}

#[test]
fn with_jsonl_standard_output_has_only_events() {
    let sandbox = sandbox();
    let options =
        ["--retries", "1", "--retry-budget", "1", "--fail-fast", "2", "--concurrency", "1", "--reporter", "jsonl"];
    let finished = run(&sandbox, &dying_after(1), &options);
    let lines = lines(&finished.stdout);
    // The first case is written while the next one runs, so its end event can come at any time in between.
    let is_first_end = |line: &&Value| line["type"] == "case_finished" && line["case_id"] == "c1";
    assert_eq!(lines.iter().filter(is_first_end).count(), 1);
    let others = lines.iter().filter(|line| !is_first_end(line));
    let types: Vec<_> = others.map(|line| line["type"].as_str().unwrap()).collect();
    let expected = [
        "run_started",
        "case_started",
        "case_started",
        "attempt_failed",
        "case_finished",
        "case_started",
        "case_finished",
        "agent_given_up",
        "case_finished",
        "run_finished",
    ];
    assert_eq!(types, expected);
    let times: Vec<_> = lines.iter().map(|line| line["elapsed_ms"].as_u64().unwrap()).collect();
    assert!(times.is_sorted(), "{times:?}");
    assert!(lines.iter().zip(1..).all(|(line, seq)| line["seq"] == seq && line["run_id"] == "r1"));
    let folder = lines[0]["folder"].as_str().unwrap();
    assert_holds_to_the_contract(&sandbox.path("").join(Utf8Path::new(folder)));
    let counts = &lines.last().unwrap()["counts"];
    assert_eq!((&counts["answered"], &counts["failed"], &counts["not_asked"]), (&json!(1), &json!(3), &json!(1)));
    assert_eq!(counts["over_budget"], 1);
}

#[test]
fn plain_lines_go_to_standard_error() {
    let sandbox = sandbox();
    let finished =
        run(&sandbox, &dying_after(4), &["--reporter", "plain", "--rate", "1000/s", "--concurrency", "auto:2"]);
    assert_eq!(finished.stdout, "run folder: runs/new/r1\n", "{finished}");
    for text in [
        "s  run r1 of side new started: cases 4, folder runs/new/r1",
        "s  c3: ok at attempt 1",
        "s  run finished: 4 ok",
    ] {
        assert!(finished.stderr.contains(text), "{text}: {finished}");
    }
}

#[test]
fn an_invalid_rate_limit_is_a_usage_error() {
    let (sandbox, agent) = (sandbox(), dying_after(0));
    for option in [["--rate", "5"], ["--concurrency", "0"], ["--retry-budget", "some"], ["--fail-fast", "0"]] {
        let finished = run(&sandbox, &agent, &option);
        assert_eq!(finished.code, Some(2), "{option:?}: {finished}");
    }
    assert!(agent.requests().is_empty());
}

const KILLS: u32 = 30;
const CASES: usize = 30;

#[test]
fn no_moment_of_a_run_leaves_a_torn_file() {
    let agent = Agent::start(|case_id| Reply::of_every_kind(case_id.len()));
    let cases: Vec<_> = (0..CASES)
        .map(|index| json!({"id": format!("{}{index}", "c".repeat(index % 5 + 1)), "input": {"user": "go"}}))
        .collect();
    let sandbox = Sandbox::new().with_file("cases.json", &Value::from(cases).to_string());
    let url = agent.base_url();
    let arguments = |run_id: String| {
        let fixed = ["run", "--cases", "cases.json", "--side", "new", "--concurrency", "4", "--base-url", &url];
        fixed.map(str::to_owned).into_iter().chain(["--run-id".to_owned(), run_id]).collect::<Vec<_>>()
    };
    let start = Instant::now();
    assert_eq!(sandbox.run(arguments("whole".to_owned())).code, Some(0));
    let whole = start.elapsed().min(Duration::from_secs(1));

    let mut artifacts = Vec::new();
    for kill in 0..KILLS {
        let mut child = sandbox
            .command(arguments(format!("killed-{kill}")))
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        // The golden ratio spreads the moments over the length of the run without large gaps.
        std::thread::sleep(whole.mul_f64((f64::from(kill) * 0.618_033_988_75).fract()));
        child.kill().unwrap();
        child.wait().unwrap();
        artifacts.push(whole_files(&sandbox, &format!("runs/new/killed-{kill}")));
    }
    assert!(artifacts.iter().any(|count| (1..CASES).contains(count)), "no kill struck within a run: {artifacts:?}");
}

/// Parses every JSON file and returns the number of artifacts.
fn whole_files(sandbox: &Sandbox, folder: &str) -> usize {
    let folder = sandbox.path(folder);
    if !folder.exists() {
        return 0;
    }
    let mut artifacts = 0;
    for (path, bytes) in files_below(&folder) {
        if path.extension() != Some("json") || path.file_name().unwrap().starts_with(TEMPORARY_PREFIX) {
            continue;
        }
        let document: Value = serde_json::from_slice(&bytes).unwrap_or_else(|error| panic!("{folder}/{path}: {error}"));
        artifacts += usize::from(document["schema_version"] == "case.v1");
    }
    artifacts
}
