//! A full disk ends a run with a clear message, and finished cases stay valid.

#![cfg(unix)]

use std::fmt::Write as _;
use std::process::Command;

use camino::Utf8Path;
use counterproof_tests::{Agent, Reply, Sandbox, UNSHARE, minimal_answer, program};
use counterproof_validation::{Code, validate_path};
use serde_json::{Value, json};

/// Answers of about 8 KiB each.
fn agent() -> Agent {
    Agent::start(|_| {
        let mut answer = minimal_answer();
        answer["final_output"]["content"] = json!("long ".repeat(1600));
        Reply::json(&answer)
    })
}

fn sandbox(answers: usize) -> Sandbox {
    let cases: Vec<_> = (0..answers).map(|index| json!({"id": format!("c{index}"), "input": {"user": "go"}})).collect();
    Sandbox::new().with_file("cases.json", &Value::from(cases).to_string())
}

/// Runs a shell script in the sandbox.
fn shell(sandbox: &Sandbox, agent: &Agent, mut wrapper: Command, script: &str) -> (Option<i32>, String) {
    let mut prepared = String::new();
    let _ = write!(
        prepared,
        "run() {{ {} run --cases cases.json --side new --base-url {} \"$@\"; }}\n{script}",
        program().display(),
        agent.base_url()
    );
    let output = wrapper.args(["sh", "-c", &prepared]).current_dir(sandbox.root()).output().unwrap();
    (output.status.code(), String::from_utf8_lossy(&output.stderr).into_owned())
}

/// Asserts that finished cases are valid: the only findings are missing cases.
#[track_caller]
fn assert_finished_is_valid(folder: &Utf8Path, at_least: usize) -> usize {
    let report = validate_path(folder).unwrap();
    let others: Vec<_> = report.findings.iter().filter(|it| it.code != Code::CaseFileMissing).collect();
    assert!(others.is_empty(), "{others:#?}");
    let run: Value = serde_json::from_slice(&std::fs::read(folder.join("run.json")).unwrap()).unwrap();
    let finished = run["selected_case_ids"].as_array().unwrap().len() - report.findings.len();
    assert!(finished >= at_least, "{finished} cases were finished");
    finished
}

#[test]
fn a_full_disk_ends_the_run_and_keeps_finished_cases() {
    let (agent, sandbox) = (agent(), sandbox(60));
    // The mount disappears with its process, so the folder is copied out first.
    let mut wrapper = Command::new("sh");
    wrapper.args(["-c", UNSHARE, "sh", "--mount", "--map-root-user"]);
    let script = "mkdir small out && mount -t tmpfs -o size=256k none small || exit 99\n\
        run --run-id r --out small; code=$?\n\
        cp -r small/. out/; exit $code";
    let (code, said) = shell(&sandbox, &agent, wrapper, script);
    if code == Some(99) || said.contains("unshare:") {
        println!("skipped: a file system may not be mounted here: {said}");
        return;
    }
    assert_eq!(code, Some(3), "{said}");
    assert!(said.contains("No space left on device") && said.contains("--resume r"), "{said}");
    let folder = sandbox.path("out/new/r");
    let finished = assert_finished_is_valid(&folder, 5);

    // With free space, the run resumes.
    let before = agent.requests().len();
    let line = ["run", "--cases", "cases.json", "--side", "new", "--base-url", &agent.base_url()];
    let resumed = sandbox.run(line.iter().chain(&["--resume", "r", "--out", "out"]));
    assert_eq!(resumed.code, Some(0), "{resumed}");
    assert_eq!(agent.requests().len() - before, 60 - finished);
    assert!(validate_path(&folder).unwrap().findings.is_empty());
}

/// Needs no mount: the system refuses files above a size limit.
#[test]
fn a_file_size_limit_ends_the_run_and_keeps_finished_cases() {
    let agent = Agent::start(|id| {
        let mut answer = minimal_answer();
        answer["final_output"]["content"] = json!("long ".repeat(if id == "c3" { 20_000 } else { 10 }));
        Reply::json(&answer)
    });
    let sandbox = sandbox(6);
    // In blocks of 512 bytes.
    let script = "ulimit -f 64; run --run-id r";
    let (code, said) = shell(&sandbox, &agent, Command::new("env"), script);
    assert_eq!(code, Some(3), "{said}");
    assert!(said.contains("c3.json`\n  caused by:") && said.contains("--resume r"), "{said}");
    // Later cases may have started while this one was being written.
    assert!((3..6).contains(&assert_finished_is_valid(&sandbox.path("runs/new/r"), 3)));
    assert!(!sandbox.path("runs/new/r/c3.json").exists());
}
