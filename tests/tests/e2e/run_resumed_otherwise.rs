//! `run --resume` with other protocols, programs, an abandoned agent, shards, retried failures, and moved folders.

use std::collections::HashMap;
use std::process::Stdio;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use counterproof_tests::{Agent, Finished, Reply, Sandbox, files_below, minimal_answer};
use serde_json::{Value, json};

use crate::run::assert_holds_to_the_contract;

/// The message of the user is the id, because the OpenAI protocols do not send the id of a case.
fn sandbox(cases: usize) -> Sandbox {
    let cases: Vec<_> =
        (0..cases).map(|n| json!({"id": format!("c{n}"), "input": {"user": format!("c{n}")}})).collect();
    Sandbox::new().with_file("cases.json", &Value::from(cases).to_string())
}

fn run(sandbox: &Sandbox, more: &[&str]) -> Finished {
    sandbox.run(["run", "--cases", "cases.json", "--side", "new", "--retries", "0"].iter().chain(more))
}

#[track_caller]
fn assert_done(finished: &Finished) {
    assert_eq!(finished.code, Some(0), "{finished}");
}

fn lose(sandbox: &Sandbox, artifact: &str) {
    std::fs::remove_file(sandbox.path(artifact)).unwrap();
}

/// An agent that fails every case while the switch is on.
fn agent(answer: &Value, status: u16) -> (Agent, Arc<AtomicBool>) {
    let (broken, answer) = (Arc::new(AtomicBool::new(true)), answer.clone());
    let switch = broken.clone();
    let agent = Agent::start(move |_| {
        if switch.load(Ordering::Relaxed) {
            return Reply::text(status, "text/plain", "no");
        }
        Reply::json(&answer).after(Duration::from_millis(3))
    });
    (agent, broken)
}

fn chat() -> Value {
    let call = json!({"id": "call_1", "type": "function", "function": {"name": "issue_refund", "arguments": "{}"}});
    json!({"id": "x", "created": 1, "model": "m", "choices": [
        {"index": 0, "finish_reason": "tool_calls", "message": {"role": "assistant", "content": null, "tool_calls": [call]}}]})
}

fn responses() -> Value {
    json!({"id": "x", "created_at": 1, "status": "completed", "model": "m", "output": [
        {"type": "function_call", "call_id": "call_1", "name": "issue_refund", "arguments": "{}"}]})
}

#[test]
fn a_run_with_an_openai_protocol_resumes_only_with_its_own_settings() {
    for (protocol, answer) in [("openai-chat", chat()), ("openai-responses", responses())] {
        let (agent, broken) = agent(&answer, 400);
        let configured = |prompt: &str, risk: &str| {
            format!("[agent]\nsystem_prompt = \"{prompt}\"\n[risk]\n\"issue_*\" = \"{risk}\"\n")
        };
        let sandbox = sandbox(3)
            .with_file("counterproof.toml", &configured("Be brief.", "high"))
            .with_file("prompt.toml", &configured("Be rude.", "high"))
            .with_file("risk.toml", &configured("Be brief.", "low"));
        let url = agent.base_url();
        let with =
            |more: &[&str]| run(&sandbox, &[&["--base-url", url.as_str(), "--protocol", protocol], more].concat());
        assert_eq!(with(&["--run-id", "r", "--model", "m"]).code, Some(1));
        broken.store(false, Ordering::Relaxed);
        lose(&sandbox, "runs/new/r/c2.json");

        for (more, named) in [
            (&["--model", "n"][..], "`model` changed from \"m\" to \"n\""),
            (&["--model", "m", "--config", "prompt.toml"], "`system_prompt_sha256` changed from"),
            (&["--model", "m", "--config", "risk.toml"], "`risk.issue_*` changed from \"high\" to \"low\""),
            (&["--model", "m", "--header", "x-team: a"], "`request_headers` changed from null to [\"x-team\"]"),
        ] {
            let refused = with(&[&["--resume", "r"], more].concat());
            assert!(refused.code == Some(2) && refused.stderr.contains(named), "{protocol}: {refused}");
        }
        let pace = ["--concurrency", "3", "--rate", "100/s", "--fail-fast", "2", "--no-keep-requests"];
        assert_done(&with(&[&["--resume", "r", "--model", "m", "--retry-errors"], &pace[..]].concat()));
        for id in ["c0", "c1", "c2"] {
            let case = sandbox.json(&format!("runs/new/r/{id}.json"));
            assert_eq!((&case["status"], &case["proposed_actions"][0]["risk_level"]), (&json!("ok"), &json!("high")));
        }
        assert_eq!(agent.requests().len(), 6, "three that failed, one of them lost, and three that went well");
        assert_done(&sandbox.run(["validate", "runs/new/r"]));
    }
}

#[cfg(unix)]
#[test]
fn a_run_of_a_program_resumes() {
    let sandbox = sandbox(3);
    let answers = format!("sh -c 'cat >> asked.txt; echo \"$1\"' agent '{}'", minimal_answer());
    let command = ["--agent-cmd", answers.as_str()];
    assert_done(&run(&sandbox, &[&["--run-id", "r"], &command[..]].concat()));
    lose(&sandbox, "runs/new/r/c1.json");
    assert_done(&run(&sandbox, &[&["--resume", "r"], &command[..]].concat()));
    let asked = std::fs::read_to_string(sandbox.path("asked.txt")).unwrap();
    let asked = ["c0", "c1", "c2"].map(|id| asked.matches(&format!("\"case_id\":\"{id}\"")).count());
    assert_eq!(asked, [1, 2, 1]);
    assert_done(&sandbox.run(["validate", "runs/new/r"]));
    let other = run(&sandbox, &["--resume", "r", "--agent-cmd", "other-agent"]);
    assert!(other.code == Some(2) && other.stderr.contains("`base_url` changed from \"cmd:sh\""), "{other}");
}

#[test]
fn a_resumed_run_runs_missing_cases_and_not_failed_ones() {
    let (agent, broken) = agent(&minimal_answer(), 503);
    let (sandbox, url) = (sandbox(4), agent.base_url());
    let given_up = run(&sandbox, &["--base-url", &url, "--run-id", "r", "--fail-fast", "2", "--concurrency", "1"]);
    assert_eq!(given_up.code, Some(3), "{given_up}");
    broken.store(false, Ordering::Relaxed);
    assert_done(&run(&sandbox, &["--base-url", &url, "--resume", "r", "--concurrency", "1"]));
    let names = ["c0", "c1", "c2", "c3"]
        .map(|id| sandbox.json(&format!("runs/new/r/{id}.json"))["runner_failure"]["error_name"].clone());
    assert_eq!(names, [json!("server_error"), json!("server_error"), Value::Null, Value::Null]);
    assert_eq!(agent.requests().len(), 4);
    let stats = &sandbox.json("runs/new/r/run.json")["stats"];
    assert_eq!((&stats["cases_failed"], stats.get("cases_not_run")), (&json!(2), None), "{stats:#}");
    assert_done(&sandbox.run(["validate", "runs/new/r"]));
}

#[test]
fn retried_failures_survive_kills() {
    const CASES: usize = 12;
    let (agent, broken) = agent(&minimal_answer(), 400);
    let (sandbox, url) = (sandbox(CASES), agent.base_url());
    assert_eq!(run(&sandbox, &["--base-url", &url, "--run-id", "r"]).code, Some(1));
    broken.store(false, Ordering::Relaxed);
    let ok = || (0..CASES).filter(|n| is_ok(&sandbox, &format!("c{n}"))).count();
    let line = [
        "run",
        "--cases",
        "cases.json",
        "--side",
        "new",
        "--retries",
        "0",
        "--base-url",
        &url,
        "--resume",
        "r",
        "--concurrency",
        "1",
    ];
    for until in [2, 5, 8] {
        let mut child = sandbox.command(line.iter().chain(&["--retry-errors"]));
        let mut child = child.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
        while ok() < until && child.try_wait().unwrap().is_none() {
            std::thread::sleep(Duration::from_millis(1));
        }
        child.kill().unwrap();
        child.wait().unwrap();
    }
    assert_done(&sandbox.run(line.iter().chain(&["--retry-errors"])));
    assert_eq!(ok(), CASES);
    assert_done(&sandbox.run(["validate", "runs/new/r"]));
    assert_eq!(sandbox.json("runs/new/r/run.json")["stats"]["cases_failed"], 0);
    let mut asked = HashMap::<String, usize>::new();
    for request in agent.requests() {
        *asked.entry(request["case_id"].as_str().unwrap().to_owned()).or_default() += 1;
    }
    // One failed and one successful request; only requests in flight at a kill are repeated.
    assert!(asked.len() == CASES && asked.values().sum::<usize>() <= 2 * CASES + 3, "{asked:?}");
}

fn is_ok(sandbox: &Sandbox, id: &str) -> bool {
    std::fs::read(sandbox.path(&format!("runs/new/r/{id}.json")))
        .is_ok_and(|bytes| serde_json::from_slice::<Value>(&bytes).unwrap()["status"] == "ok")
}

#[test]
fn a_shard_that_lost_cases_resumes_and_is_merged() {
    let (agent, broken) = agent(&minimal_answer(), 400);
    broken.store(false, Ordering::Relaxed);
    let (sandbox, url) = (sandbox(8), agent.base_url());
    for shard in ["1/2", "2/2"] {
        assert_done(&run(&sandbox, &["--base-url", &url, "--run-id", "n", "--shard", shard]));
    }
    let ids = (0..8).map(|n| format!("c{n}"));
    let lost: Vec<_> = ids.filter(|id| sandbox.path(&format!("runs/new/n-s1of2/{id}.json")).exists()).collect();
    lose(&sandbox, &format!("runs/new/n-s1of2/{}.json", lost[0]));
    let merge = ["merge", "runs/new/n-s1of2", "runs/new/n-s2of2", "--out", "runs/new/n"];
    assert_eq!(sandbox.run(merge).code, Some(2), "a shard is not complete");
    let other = run(&sandbox, &["--base-url", &url, "--resume", "n", "--shard", "1/3"]);
    assert_eq!(other.code, Some(2), "{other}");
    assert_done(&run(&sandbox, &["--base-url", &url, "--resume", "n", "--shard", "1/2"]));
    assert_eq!(agent.requests().len(), 9);
    assert_done(&sandbox.run(merge));
    assert_done(&sandbox.run(["validate", "runs/new/n"]));
}

#[test]
fn a_moved_run_folder_is_valid_and_contains_no_absolute_path() {
    let agent = Agent::start(|id| match id {
        "fails" => Reply::text(500, "text/plain", "oops"),
        _ => Reply::json(&minimal_answer()),
    });
    let cases = json!([{"id": "answers", "input": {"user": "a"}}, {"id": "fails", "input": {"user": "b"}}]).to_string();
    let elsewhere = Sandbox::new();
    // The program gets absolute paths, one of them with `..`.
    for (run_id, cases_path) in [("r1", "deep/cases.json".to_owned()), ("r2", "deep/../deep/cases.json".to_owned())] {
        let sandbox = Sandbox::new().with_file("deep/cases.json", &cases);
        let (absolute, out) = (sandbox.path(&cases_path).into_string(), sandbox.path("out").into_string());
        let arguments =
            ["run", "--side", "new", "--retries", "1", "--run-id", run_id, "--cases", &absolute, "--out", &out];
        let finished = sandbox.run(arguments.into_iter().chain(["--base-url", &agent.base_url()]));
        assert_eq!(finished.code, Some(0), "{finished}");

        let moved = elsewhere.path("new").join(run_id);
        std::fs::create_dir_all(moved.parent().unwrap()).unwrap();
        #[allow(clippy::disallowed_methods, reason = "this is what a user's `mv` does")]
        std::fs::rename(sandbox.path("out/new").join(run_id), &moved).unwrap();
        assert_holds_to_the_contract(&moved);
        for (path, bytes) in files_below(&moved) {
            let text = String::from_utf8_lossy(&bytes);
            for place in [sandbox.root().as_str(), env!("CARGO_MANIFEST_DIR"), "/home/", "/tmp/", "\"/"] {
                assert!(!text.contains(place), "{path} holds {place}: {text}");
            }
        }
        assert_eq!(elsewhere.json(&format!("new/{run_id}/run.json"))["cases_path"], "../../../deep/cases.json");
    }
}
