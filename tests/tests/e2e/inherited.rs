//! What the program inherits from its parent: ignored signals, the limit on file sizes, and a system without `/proc`.

use std::process::Command;

use counterproof_tests::{Sandbox, UNSHARE, minimal_answer, safe_run};
use serde_json::json;

const RUN: [&str; 9] =
    ["run", "--cases", "cases.json", "--side", "new", "--run-id", "r1", "--agent-cmd", "sh agent.sh"];

const IGNORE_CHLD: [&str; 2] = ["env", "--ignore-signal=CHLD"];

fn sandbox() -> Sandbox {
    let agent = format!("cat > /dev/null\necho '{}'\n", minimal_answer());
    Sandbox::new().with_file("cases.json", r#"[{"id": "c0", "input": {"user": "go"}}]"#).with_file("agent.sh", &agent)
}

#[test]
fn agent_programs_answer_where_the_parent_ignores_the_signals_of_children() {
    let sandbox = sandbox();
    let finished = sandbox.run_in(&IGNORE_CHLD, RUN.iter().chain(&["--timeout", "20s"]));
    assert_eq!(finished.code, Some(0), "{finished}");

    // Not from a shell, which changes its own actions.
    let more = ["--run-id", "r2", "--retries", "0", "--agent-cmd", "grep SigIgn /proc/self/status"];
    sandbox.run_in(&IGNORE_CHLD, RUN[..5].iter().chain(&more));
    let failure = sandbox.json("runs/new/r2/c0.json")["runner_failure"].clone();
    let mask = failure["body_snippet"].as_str().unwrap().trim().rsplit('\t').next().unwrap().to_owned();
    let mask = u64::from_str_radix(&mask, 16).unwrap();
    assert_ne!(mask & (1 << 16), 0, "the agent inherits what this program inherited");
}

#[test]
fn the_commit_is_recorded_where_the_parent_ignores_the_signals_of_children() {
    let sandbox = sandbox();
    let script = "git init -q . && git add cases.json && \
        git -c user.name=n -c user.email=e commit -qm m && echo ' ' >> cases.json && git rev-parse HEAD";
    let output = Command::new("sh").args(["-c", script]).current_dir(sandbox.root()).output().unwrap();
    let commit = String::from_utf8(output.stdout).unwrap();
    assert_eq!(sandbox.run_in(&IGNORE_CHLD, RUN).code, Some(0));
    let run = sandbox.json("runs/new/r1/run.json");
    assert_eq!((run["repo_commit"].as_str(), &run["dirty"]), (Some(commit.trim()), &json!(true)));
}

#[test]
fn conformance_reads_exit_codes_where_the_parent_ignores_the_signals_of_children() {
    let vectors = json!({
        "version": "1.0", "m0_contract_version": "v0.1.0", "description": "",
        "vectors": {"safe_run": [{
            "id": "run-1", "name": "A failure keeps its code", "m0_spec": [],
            "command": {"args_template": "print_and_exit", "exit_code": 7, "print_stdout": "OUT", "print_stderr": "ERR"},
            "expected": {"exit_code": 7},
        }]},
    });
    let sandbox = Sandbox::new().with_file("vectors.json", &vectors.to_string());
    let tool = safe_run().to_str().unwrap();
    let finished = sandbox.run_in(&IGNORE_CHLD, ["conformance", "--vectors", "vectors.json", "--tool", tool]);
    assert_eq!(finished.code, Some(0), "{finished}");
}

#[test]
fn a_file_size_limit_is_an_error_of_every_command_that_writes() {
    let sandbox = Sandbox::new();
    let demo = sandbox.run(["demo", "--out", "demo"]);
    assert!(demo.code.is_some_and(|code| code < 2), "{demo}");
    let small_files = ["sh", "-c", "ulimit -f 8; exec \"$@\"", "sh"];
    let runs = ["demo/runs/baseline", "demo/runs/new"].map(|side| {
        let folder = std::fs::read_dir(sandbox.path(side)).unwrap().next().unwrap().unwrap();
        folder.path().to_str().unwrap().to_owned()
    });
    let finished = sandbox.run_in(&small_files, ["compare", &runs[0], &runs[1], "--out", "small"]);
    assert_eq!(finished.code, Some(3), "{finished}");
    assert!(finished.stderr.contains("File too large (os error 27)"), "{finished}");
}

#[test]
fn an_agent_program_on_a_system_without_proc_is_not_started() {
    let sandbox = sandbox();
    let without_proc = "mount -t tmpfs none /proc || exit 99; exec \"$@\"";
    let wrapper = ["sh", "-c", UNSHARE, "sh", "--mount", "--map-root-user", "sh", "-c", without_proc, "sh"];
    let finished = sandbox.run_in(&wrapper, RUN);
    if finished.code == Some(99) || finished.stderr.contains("unshare:") {
        println!("skipped: a file system may not be mounted here: {finished}");
        return;
    }
    let failure = sandbox.json("runs/new/r1/c0.json");
    assert!(
        failure.to_string().contains("cannot supervise a command: /proc is not mounted"),
        "{failure:#}\n{finished}"
    );
}
