//! Secrets that the configuration names are in no file of a run, in whatever encoding the agent returns them.

use counterproof_tests::{Agent, Reply, Sandbox, files_below, minimal_answer};
use serde_json::json;

const SECRET: &str = "n4med-s3cret/value+1";

/// A program that prints its environment, its arguments and the request.
#[cfg(unix)]
const TELLS: &str = r#"request=$(cat); env; echo "$@" "$request" | tee /dev/stderr; env >&2; exit 3"#;

#[track_caller]
fn assert_clean(sandbox: &Sandbox) {
    for (path, bytes) in files_below(&sandbox.path("runs")) {
        let text = String::from_utf8_lossy(&bytes);
        assert!(!text.contains("s3cret"), "{path}: {text}");
    }
}

#[cfg(unix)]
#[test]
fn the_output_of_a_program_is_stored_without_the_configured_secrets() {
    let cases = json!([{"id": "c1", "input": {"user": format!("my key is {SECRET}")}}]).to_string();
    let sandbox = Sandbox::new()
        .with_file("cases.json", &cases)
        .with_file("staging.toml", "[secrets]\nenv = [\"AGENT_KEY\", \"NOT_SET\"]\n")
        .with_variable("AGENT_KEY", SECRET);
    let command = format!("sh -c '{TELLS}' agent --key {SECRET}");
    let fixed = ["run", "--cases", "cases.json", "--side", "new", "--run-id", "r", "--retries", "0"];
    let run = sandbox.run(fixed.iter().chain(&["--config", "staging.toml", "--agent-cmd", command.as_str()]));
    assert_eq!(run.code, Some(1), "{run}");
    let failure = sandbox.json("runs/new/r/c1.json")["runner_failure"].clone();
    assert_eq!(
        (&failure["error_name"], &failure["redactions_applied"]),
        (&json!("agent_exit"), &json!(["configured_secret"]))
    );
    assert!(failure["body_snippet"].as_str().unwrap().contains("AGENT_KEY=[redacted]"), "{failure:#}");
    assert_clean(&sandbox);
    assert!(!run.to_string().contains("s3cret"), "{run}");
}

#[test]
fn a_killed_and_resumed_run_has_no_secrets() {
    let page = format!("<p>{SECRET}</p>").repeat(2000);
    let agent = Agent::start(move |id| {
        if id == "c0" {
            return Reply::text(400, "text/html", &page);
        }
        let mut answer = minimal_answer();
        answer["events"] = json!([
            {"type": "tool_call", "ts": 1, "call_id": "c1", "tool": "lookup", "args": {}},
            {"type": "tool_result", "ts": 2, "call_id": "c1", "status": "ok", "latency_ms": 1, "payload_summary": page}
        ]);
        Reply::json(&answer).after(std::time::Duration::from_millis(if id == "c2" { 2000 } else { 0 }))
    });
    let cases = json!([0, 1, 2].map(|n| json!({"id": format!("c{n}"), "input": {"user": SECRET}}))).to_string();
    let sandbox = Sandbox::new().with_file("cases.json", &cases).with_variable("AGENT_KEY", SECRET);
    let url = agent.base_url();
    let line = |id: [&str; 2]| {
        let fixed = ["run", "--cases", "cases.json", "--side", "new", "--secret", "env:AGENT_KEY", "--base-url", &url];
        fixed.iter().chain(&id).map(|&word| word.to_owned()).collect::<Vec<_>>()
    };
    let mut child = sandbox.command(line(["--run-id", "r"])).spawn().unwrap();
    while !sandbox.path("runs/new/r/c1.json").exists() {
        std::thread::sleep(std::time::Duration::from_millis(5));
    }
    child.kill().unwrap();
    child.wait().unwrap();
    let resumed = sandbox.run(line(["--resume", "r"]));
    assert_eq!(resumed.code, Some(0), "{resumed}");
    assert_clean(&sandbox);
    let manifest = sandbox.json("runs/new/r/assets/manifest.json");
    let hrefs: Vec<_> =
        manifest["items"].as_array().unwrap().iter().map(|item| item["href"].as_str().unwrap()).collect();
    for salvaged in ["assets/c0.attempt1.body.txt", "assets/c0.request.json", "assets/full_payload_new_c1_e1.json"] {
        assert!(hrefs.contains(&salvaged), "{hrefs:?}");
    }
    let valid = sandbox.run(["validate", "runs/new/r"]);
    assert_eq!(valid.code, Some(0), "{valid}");
}

#[cfg(unix)]
#[test]
fn arguments_of_a_program_that_look_like_secrets_are_redacted_in_its_output() {
    let cases = json!([{"id": "c1", "input": {"user": "go"}}]).to_string();
    let sandbox = Sandbox::new().with_file("cases.json", &cases);
    let arguments =
        "--api-key k-s3cret --password=p-s3cret --db postgres://me:u-s3cret@db/x --model small-1 aB3s3cretE5gH7jK9mN1";
    let command = format!("sh -c 'cat > /dev/null; echo \"$@\" | tee /dev/stderr; exit 3' agent {arguments}");
    let fixed = ["run", "--cases", "cases.json", "--side", "new", "--run-id", "r", "--retries", "0"];
    let run = sandbox.run(fixed.iter().chain(&["--agent-cmd", command.as_str()]));
    assert_eq!(run.code, Some(1), "{run}");
    assert_clean(&sandbox);
    let failure = sandbox.json("runs/new/r/c1.json")["runner_failure"].clone();
    let snippet = failure["body_snippet"].as_str().unwrap();
    assert!(snippet.contains("--api-key [redacted] --password=[redacted]"), "{snippet}");
    assert!(snippet.contains("--model small-1"), "ordinary arguments stay readable: {snippet}");
}

#[cfg(unix)]
#[test]
fn a_secret_that_is_not_text_is_reported_as_such() {
    use std::ffi::OsStr;
    use std::os::unix::ffi::OsStrExt as _;

    let cases = json!([{"id": "c1", "input": {"user": "go"}}]).to_string();
    let config = "[secrets]\nenv = [\"BINARY\"]\n";
    let sandbox = Sandbox::new().with_file("cases.json", &cases).with_file("secrets.toml", config);
    for (more, message) in [
        (["--secret", "env:BINARY"], "the value of the environment variable `BINARY` is not valid UTF-8"),
        (["--config", "secrets.toml"], "the value of the environment variable `BINARY` is not valid UTF-8"),
        (
            ["--header", "x-key:env:BINARY"],
            "header `x-key` reads the environment variable `BINARY`, whose value is not valid UTF-8",
        ),
    ] {
        let mut command = sandbox.command(["run", "--cases", "cases.json", "--side", "new"].iter().chain(&more));
        let output = command.env("BINARY", OsStr::from_bytes(b"\xff\xfe\xfd\xfc\xfb")).output().unwrap();
        let stderr = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(2), "{stderr}");
        assert!(stderr.contains(message), "{stderr}");
    }
}
