//! `run --resume`: an interrupted run continues where it stopped.

use std::collections::HashMap;
use std::process::{Command, Stdio};
use std::time::Duration;

use counterproof_store::write::TEMPORARY_PREFIX;
use counterproof_tests::{Agent, Finished, Reply, Sandbox, files_below, minimal_answer};
use insta::assert_snapshot;
use proptest::prelude::*;
use proptest::test_runner::{Config, TestRunner};
use serde_json::{Value, json};

const CASES: usize = 16;

fn cases_file(count: usize) -> String {
    let cases: Vec<_> = (0..count).map(|index| json!({"id": format!("c{index}"), "input": {"user": "go"}})).collect();
    Value::from(cases).to_string()
}

/// Every kind of file of a case: bodies of failures and attempts, payloads, plain answers.
fn reply(case_id: &str, request: usize) -> Reply {
    let number: usize = case_id[1..].parse().unwrap_or(0);
    let reply = match number % 4 {
        3 if request.is_multiple_of(2) => Reply::text(503, "text/plain", "busy"),
        3 => Reply::json(&minimal_answer()),
        kind => Reply::of_every_kind(kind),
    };
    reply.after(Duration::from_millis(3))
}

/// An agent that counts the requests of each case.
fn agent() -> Agent {
    let counts = std::sync::Mutex::new(HashMap::<String, usize>::new());
    Agent::start(move |case_id| {
        let mut counts = counts.lock().unwrap();
        let count = counts.entry(case_id.to_owned()).or_default();
        *count += 1;
        reply(case_id, *count - 1)
    })
}

fn requests(agent: &Agent) -> HashMap<String, usize> {
    let mut counts = HashMap::new();
    for request in agent.requests() {
        *counts.entry(request["case_id"].as_str().unwrap().to_owned()).or_default() += 1;
    }
    counts
}

fn line(url: &str, id: [&str; 2], more: &[&str]) -> Vec<String> {
    let fixed = ["run", "--cases", "cases.json", "--side", "new", "--base-url", url];
    fixed.iter().chain(&id).chain(more).map(|&word| word.to_owned()).collect()
}

#[track_caller]
fn assert_valid(sandbox: &Sandbox, folder: &str) {
    let valid = sandbox.run(["validate", folder]);
    assert_eq!(valid.code, Some(0), "{valid}");
}

/// Kills the runner at each moment, a share of the duration of a complete run, and resumes it after each kill.
fn killed_and_resumed(moments: &[f64], whole: Duration) -> usize {
    let agent = agent();
    let url = agent.base_url();
    let sandbox = Sandbox::new().with_file("cases.json", &cases_file(CASES));
    let more = ["--concurrency", "3"];
    let artifacts = || -> Vec<String> {
        let ids = (0..CASES).map(|index| format!("c{index}"));
        ids.filter(|id| sandbox.path(&format!("runs/new/r/{id}.json")).exists()).collect()
    };
    let (mut asked_when_complete, mut struck) = (HashMap::<String, usize>::new(), 0);
    for moment in moments {
        let id = if sandbox.path("runs/new/r").exists() { ["--resume", "r"] } else { ["--run-id", "r"] };
        let mut command = sandbox.command(line(&url, id, &more));
        let mut child = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
        std::thread::sleep(whole.mul_f64(*moment));
        child.kill().unwrap();
        child.wait().unwrap();
        // A request in flight at the kill is counted later.
        std::thread::sleep(Duration::from_millis(20));
        let (complete, counts) = (artifacts(), requests(&agent));
        struck += usize::from((1..CASES).contains(&complete.len()));
        for (id, asked) in &asked_when_complete {
            assert_eq!(counts[id], *asked, "{id} was asked again after it was complete");
        }
        for id in complete {
            asked_when_complete.entry(id.clone()).or_insert_with(|| counts[&id]);
        }
    }
    let id = if sandbox.path("runs/new/r").exists() { ["--resume", "r"] } else { ["--run-id", "r"] };
    let finished = sandbox.run(line(&url, id, &more));
    assert_eq!(finished.code, Some(0), "{finished}");
    let counts = requests(&agent);
    for (id, asked) in &asked_when_complete {
        assert_eq!(counts[id], *asked, "{id} was asked again after it was complete");
    }

    assert_eq!(artifacts().len(), CASES);
    assert_valid(&sandbox, "runs/new/r");
    let files = files_below(&sandbox.path("runs/new/r"));
    let names: Vec<_> = files.iter().map(|(path, _)| path.as_str()).collect();
    let stray = |name: &&&str| name.contains(TEMPORARY_PREFIX) || **name == ".lock";
    assert_eq!(names.iter().find(stray), None);
    let run = sandbox.json("runs/new/r/run.json");
    assert_eq!(run["stats"]["cases_total"], CASES);
    assert_eq!(run["stats"]["cases_failed"], CASES / 4);
    struck
}

#[test]
fn after_a_kill_at_any_moment_each_case_ends_as_one_artifact_and_no_finished_case_runs_twice() {
    let sandbox = Sandbox::new().with_file("cases.json", &cases_file(CASES));
    let agent = agent();
    let start = std::time::Instant::now();
    let whole = sandbox.run(line(&agent.base_url(), ["--run-id", "whole"], &["--concurrency", "3"]));
    assert_eq!(whole.code, Some(0), "{whole}");
    let whole = start.elapsed().min(Duration::from_secs(2));

    let mut runner = TestRunner::new(Config { cases: 4, max_shrink_iters: 4, ..Config::default() });
    let struck = std::cell::Cell::new(0);
    let moments = prop::collection::vec(0.0..1.0_f64, 2..5);
    runner
        .run(&moments, |moments| {
            struck.set(struck.get() + killed_and_resumed(&moments, whole));
            Ok(())
        })
        .unwrap();
    assert!(struck.get() > 0, "no kill struck within a run");
}

#[test]
fn cases_reported_as_finished_are_complete_and_survive_a_kill() {
    let agent = agent();
    let url = agent.base_url();
    let cases = 400;
    let sandbox = Sandbox::new().with_file("cases.json", &cases_file(cases));
    let more = ["--concurrency", "4", "--reporter", "jsonl"];
    let mut command = sandbox.command(line(&url, ["--run-id", "r"], &more));
    let mut child = command.stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
    let said = std::io::BufReader::new(child.stdout.take().unwrap());
    let finished_case = |line: std::io::Result<String>| -> Option<String> {
        let event: Value = serde_json::from_str(&line.unwrap()).unwrap();
        let id = (event["type"] == "case_finished").then(|| event["case_id"].as_str().unwrap().to_owned())?;
        // The artifact has its name before the case is reported.
        assert_eq!(sandbox.json(&format!("runs/new/r/{id}.json"))["case_id"], id);
        Some(id)
    };
    let reported: Vec<_> = std::io::BufRead::lines(said).filter_map(finished_case).take(40).collect();
    child.kill().unwrap();
    child.wait().unwrap();
    let before = requests(&agent);

    let resumed = sandbox.run(line(&url, ["--resume", "r"], &["--concurrency", "4"]));
    assert_eq!(resumed.code, Some(0), "{resumed}");
    let after = requests(&agent);
    for id in &reported {
        assert_eq!(after[id], before[id], "{id} was reported as finished, and asked again");
    }
    assert_valid(&sandbox, "runs/new/r");
    assert_eq!(sandbox.json("runs/new/r/run.json")["stats"]["cases_total"], cases);
}

fn stopped(sandbox: &Sandbox, agent: &Agent) -> Finished {
    let url = agent.base_url();
    let child = sandbox
        .command(line(&url, ["--run-id", "r"], &["--timeout", "5m", "--header", "x-key:s3cret-value"]))
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    while !sandbox.path("runs/new/r/c0.json").exists() {
        std::thread::sleep(Duration::from_millis(10));
    }
    // Two signals: the second one does not wait for requests in flight.
    for _ in 0..2 {
        assert!(Command::new("kill").args(["-TERM", &child.id().to_string()]).status().unwrap().success());
        std::thread::sleep(Duration::from_millis(300));
    }
    let output = child.wait_with_output().unwrap();
    let text = |bytes| String::from_utf8(bytes).unwrap();
    Finished { code: output.status.code(), stdout: text(output.stdout), stderr: text(output.stderr) }
}

#[cfg(unix)]
#[test]
fn an_interrupted_run_prints_its_resume_command_and_resumes() {
    let agent = Agent::start(|id| match id {
        "c0" => Reply::json(&minimal_answer()),
        _ => Reply::json(&minimal_answer()).after(Duration::from_secs(2)),
    });
    let sandbox = Sandbox::new().with_file("cases.json", &cases_file(3));
    assert_snapshot!(stopped(&sandbox, &agent).redact(&agent.base_url(), "[agent]"), @"
    exit code: 4
    --- stdout
    run folder: runs/new/r
    --- stderr
    3 cases: 1 ok, 0 failed, 0 retried, 2 not run
    interrupted; resume with: counterproof run --resume r --cases cases.json --base-url [agent] --timeout 5m --header x-key:… --side new
    ");

    let url = agent.base_url();
    let more = ["--timeout", "5m", "--header", "x-key:s3cret-value"];
    assert_snapshot!(sandbox.run(line(&url, ["--resume", "r"], &more)), @"
    exit code: 0
    --- stdout
    run folder: runs/new/r
    --- stderr
    3 cases: 3 ok, 0 failed, 0 retried; 1 completed earlier
    next: counterproof validate runs/new/r
          counterproof run --side baseline …, then counterproof compare
    ");
    assert_valid(&sandbox, "runs/new/r");
    let run = sandbox.json("runs/new/r/run.json");
    assert!(run.get("interrupted").is_none() && run["resumes"].as_array().unwrap().len() == 1, "{run:#}");
    assert_eq!(requests(&agent)["c0"], 1);
}

#[test]
fn failed_cases_run_again_on_request() {
    let broken = std::sync::Arc::new(std::sync::atomic::AtomicBool::new(true));
    let switch = broken.clone();
    let agent = Agent::start(move |id| {
        if id == "c1" && switch.load(std::sync::atomic::Ordering::Relaxed) {
            return Reply::text(400, "text/plain", "no");
        }
        Reply::json(&minimal_answer())
    });
    let sandbox = Sandbox::new().with_file("cases.json", &cases_file(3));
    let url = agent.base_url();
    assert_eq!(sandbox.run(line(&url, ["--run-id", "r"], &[])).code, Some(0));
    assert!(sandbox.path("runs/new/r/assets/c1.attempt1.body.txt").exists());

    let nothing = sandbox.run(line(&url, ["--resume", "r"], &[]));
    assert!(nothing.code == Some(0) && nothing.stderr.contains("3 completed earlier"), "{nothing}");
    assert_eq!(agent.requests().len(), 3, "a failure is complete too");

    broken.store(false, std::sync::atomic::Ordering::Relaxed);
    let again = sandbox.run(line(&url, ["--resume", "r"], &["--retry-errors"]));
    assert_eq!(again.code, Some(0), "{again}");
    assert_eq!((agent.requests().len(), requests(&agent)["c1"]), (4, 2));
    assert_eq!(sandbox.json("runs/new/r/c1.json")["status"], "ok");
    assert!(!sandbox.path("runs/new/r/assets/c1.attempt1.body.txt").exists(), "nothing is left of the failure");
    assert_eq!(sandbox.json("runs/new/r/run.json")["stats"]["cases_failed"], 0);
    assert_valid(&sandbox, "runs/new/r");
}

#[test]
fn changed_cases_or_settings_are_refused_by_name() {
    let agent = agent();
    let url = agent.base_url();
    let sandbox = Sandbox::new().with_file("cases.json", &cases_file(2));
    assert_eq!(sandbox.run(line(&url, ["--run-id", "r"], &["--only", "c1"])).code, Some(0));
    assert_snapshot!(sandbox.run(line(&url, ["--resume", "r"], &["--timeout", "1s", "--header", "a:b"])), @r#"
    exit code: 2
    --- stderr
    error: the run `r` was started with other cases or settings: the case `c0` was added; `timeout_ms` changed from 120000 to 1000; `request_headers` changed from null to ["a"]
    hint: resume with the cases and settings that the run was started with, or start a new run
    "#);
    assert_snapshot!(sandbox.run(line(&url, ["--resume", "s"], &[])), @"
    exit code: 2
    --- stderr
    error: there is no run folder `runs/new/s`
    hint: to start the run, replace `--resume` with `--run-id`
    ");
    assert_eq!(agent.requests().len(), 1);
}

#[test]
fn a_second_runner_on_the_same_folder_is_refused() {
    let agent = Agent::start(|_| Reply::json(&minimal_answer()).after(Duration::from_secs(2)));
    let url = agent.base_url();
    let sandbox = Sandbox::new().with_file("cases.json", &cases_file(1));
    let first = line(&url, ["--run-id", "r"], &[]);
    let mut first = sandbox.command(first).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    while !sandbox.path("runs/new/r/run.json").exists() {
        std::thread::sleep(Duration::from_millis(5));
    }
    assert_snapshot!(sandbox.run(line(&url, ["--resume", "r"], &[])), @"
    exit code: 2
    --- stderr
    error: another runner is writing to `runs/new/r`
    hint: wait until the other process ends, or stop it
    ");
    assert_eq!(first.wait().unwrap().code(), Some(0));
    assert_eq!(agent.requests().len(), 1);
    assert_valid(&sandbox, "runs/new/r");
}
