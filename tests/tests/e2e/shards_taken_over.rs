//! `run --take-over`: a shard that is started again while its first process still runs. Nothing is lost or counted twice.

use std::collections::HashMap;
use std::process::Stdio;
use std::sync::Mutex;
use std::time::Duration;

use counterproof_tests::{Agent, Finished, Reply, Sandbox, files_below, minimal_answer};
use serde_json::{Value, json};

const CASES: usize = 12;

/// How long the agent takes for the case at which the first process is thought to be dead.
const STUCK: Duration = Duration::from_secs(12);

fn sandbox() -> Sandbox {
    let cases: Vec<_> = (0..CASES).map(|index| json!({"id": format!("c{index}"), "input": {"user": "go"}})).collect();
    Sandbox::new().with_file("cases.json", &Value::from(cases).to_string())
}

/// An agent that answers the first request of one case late.
fn agent(stuck: &'static str) -> Agent {
    let asked = Mutex::new(HashMap::<String, usize>::new());
    Agent::start(move |case| {
        let mut asked = asked.lock().unwrap();
        let count = asked.entry(case.to_owned()).or_default();
        *count += 1;
        let reply = Reply::json(&minimal_answer());
        if case == stuck && *count == 1 { reply.after(STUCK) } else { reply }
    })
}

fn line(agent: &Agent, more: &[&str]) -> Vec<String> {
    let url = agent.base_url();
    let fixed = ["run", "--cases", "cases.json", "--side", "new", "--base-url", &url, "--run-id", "n"];
    fixed.iter().chain(more).map(|&word| word.to_owned()).collect()
}

fn taken_over(sandbox: &Sandbox, agent: &Agent, shard: &str) -> Finished {
    sandbox.run(line(agent, &["--shard", shard, "--take-over"]))
}

fn artifacts(sandbox: &Sandbox, folder: &str) -> Vec<String> {
    let exists = |id: &String| sandbox.path(&format!("runs/new/{folder}/{id}.json")).exists();
    (0..CASES).map(|index| format!("c{index}")).filter(exists).collect()
}

#[test]
fn the_process_that_was_believed_dead_stops_and_each_answer_is_counted_once() {
    let sandbox = sandbox();
    // The last case of the shard, so that the first process has finished some.
    let first_shard = sandbox.run(line(&agent("none"), &["--shard", "1/2", "--dry-run"])).stdout;
    let of_shard: Vec<_> = first_shard.lines().filter_map(|line| line.strip_prefix("  c")).collect();
    let stuck: &'static str = Box::leak(format!("c{}", of_shard.last().unwrap()).into_boxed_str());
    let agent = agent(stuck);
    let mut command = sandbox.command(line(&agent, &["--shard", "1/2", "--take-over", "--concurrency", "1"]));
    let first = command.stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap();
    for _ in 0..1000 {
        if artifacts(&sandbox, "n-s1of2").len() + 1 == of_shard.len() {
            break;
        }
        std::thread::sleep(Duration::from_millis(10));
    }
    assert_eq!(artifacts(&sandbox, "n-s1of2").len() + 1, of_shard.len(), "the first process waits for one answer");
    let second = taken_over(&sandbox, &agent, "1/2");
    assert_eq!(second.code, Some(0), "{second}");
    assert_eq!(artifacts(&sandbox, "n-s1of2-a2").len(), of_shard.len());
    let first = first.wait_with_output().unwrap();
    let said = String::from_utf8_lossy(&first.stderr);
    assert!(said.contains("another process has taken this run over, in `runs/new/n-s1of2-a2`"), "{said}");
    assert_eq!(first.status.code(), Some(3), "{said}");
    assert_eq!(artifacts(&sandbox, "n-s1of2").len() + 1, of_shard.len(), "the late answer is not written");
    // The copied cases were not sent again.
    let asked: Vec<_> =
        agent.requests().iter().map(|request| request["case_id"].as_str().unwrap().to_owned()).collect();
    assert_eq!(asked.len(), of_shard.len() + 1, "{asked:?}");

    let early = sandbox.run(["merge", "--shards", "2", "--out", "runs/new/n"]);
    assert_eq!(early.code, Some(2), "{early}");
    assert!(early.stderr.contains("1 of 2 shards are not complete: 2/2: not started"), "{early}");
    assert_eq!(taken_over(&sandbox, &agent, "2/2").code, Some(0));
    let merged = sandbox.run(["merge", "--shards", "2", "--wait", "1s", "--out", "runs/new/n"]);
    assert_eq!(merged.code, Some(0), "{merged}");
    assert!(merged.stderr.contains("left out `runs/new/n-s1of2`: another attempt at its shard"), "{merged}");
    assert_eq!(artifacts(&sandbox, "n").len(), CASES);
    let valid = sandbox.run(["validate", "runs/new/n"]);
    assert_eq!(valid.code, Some(0), "{valid}");

    // A run of one machine has the same files.
    let whole: Vec<_> =
        line(&agent, &[]).into_iter().map(|word| if word == "n" { "whole".to_owned() } else { word }).collect();
    assert_eq!(sandbox.run(whole).code, Some(0));
    let names =
        |folder: &str| -> Vec<_> { files_below(&sandbox.path(folder)).into_iter().map(|(path, _)| path).collect() };
    assert_eq!(names("runs/new/n"), names("runs/new/whole"));
}

#[test]
fn a_finished_shard_is_left_as_it_is() {
    let (sandbox, agent) = (sandbox(), agent("none"));
    assert_eq!(taken_over(&sandbox, &agent, "1/1").code, Some(0));
    let before = files_below(&sandbox.path("runs"));
    let again = taken_over(&sandbox, &agent, "1/1");
    assert_eq!(again.code, Some(0), "{again}");
    assert!(again.stderr.contains("`runs/new/n-s1of1` is complete"), "{again}");
    assert_eq!(files_below(&sandbox.path("runs")), before);
    assert_eq!(agent.requests().len(), CASES);
}

#[test]
fn a_shard_of_other_settings_is_not_continued() {
    let (sandbox, agent) = (sandbox(), agent("none"));
    assert_eq!(taken_over(&sandbox, &agent, "1/1").code, Some(0));
    std::fs::remove_file(sandbox.path("runs/new/n-s1of1/c3.json")).unwrap();
    let other = sandbox.run(line(&agent, &["--shard", "1/1", "--take-over", "--timeout", "9s"]));
    assert_eq!(other.code, Some(2), "{other}");
    assert!(other.stderr.contains("`timeout_ms` changed from 120000 to 9000"), "{other}");
    assert!(!sandbox.path("runs/new/n-s1of1-a2").exists(), "the earlier process would stop");
    // The next attempt with the right settings still has all that was finished.
    assert_eq!(taken_over(&sandbox, &agent, "1/1").code, Some(0));
    assert_eq!(agent.requests().len(), CASES + 1);
}

#[test]
fn a_rate_is_divided_among_the_shards() {
    let (sandbox, agent) = (sandbox(), agent("none"));
    assert_eq!(sandbox.run(line(&agent, &["--shard", "1/4", "--rate", "100/s"])).code, Some(0));
    assert_eq!(sandbox.json("runs/new/n-s1of4/run.json")["rate"], "25/s");
}
