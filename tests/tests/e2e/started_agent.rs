//! `[side.*]` with `start`, `setup`, `ref`, `env` and `persistent`: the agent's process during `check` and `run`.

use std::net::TcpStream;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use counterproof_tests::{Sandbox, program};
use serde_json::{Value, json};

/// Cases that both versions of the demo agent answer alike, and one that the new version answers otherwise.
const CASES: [&str; 3] = ["stock_check_001", "loyalty_points_001", "refund_damaged_001"];

/// A folder with the demo agent behind a script. `side` are lines of `[side.new]`.
fn sandbox(script: &str, side: &str) -> Sandbox {
    let all: Value = serde_json::from_str(include_str!("../../../demo/data/cases.json")).unwrap();
    let wanted = |case: &&Value| CASES.iter().any(|id| case["id"] == *id);
    let cases: Vec<&Value> = all.as_array().unwrap().iter().filter(wanted).collect();
    Sandbox::new()
        .with_file("cases.json", &json!(cases).to_string())
        .with_file(
            "agent.sh",
            &script.replace("DEMO", &format!("{} demo-agent --listen 127.0.0.1:$1", program().display())),
        )
        .with_file("counterproof.toml", &format!("[run]\ncases = \"cases.json\"\n[side.new]\n{side}\n"))
}

const START: &str = "start = \"sh agent.sh {port}\"\nready = \"http://localhost:{port}/health\"";

fn sleeping(marker: &str) -> bool {
    let listed = Command::new("ps").args(["-eo", "args"]).output().unwrap();
    String::from_utf8_lossy(&listed.stdout).lines().any(|args| args == format!("sleep {marker}"))
}

fn wait_until(what: &str, is_so: impl Fn() -> bool) {
    let start = Instant::now();
    while !is_so() {
        assert!(start.elapsed() < Duration::from_secs(20), "{what}");
        std::thread::sleep(Duration::from_millis(10));
    }
}

#[test]
fn check_starts_the_agent_and_stops_all_of_its_processes() {
    let sandbox = sandbox(
        "setsid sleep 4751 &\necho key $KEY\nexec DEMO",
        &format!("{START}\nenv = {{ KEY = \"env:OUR_KEY\" }}"),
    )
    .with_variable("OUR_KEY", "s3cret-value");
    let finished = sandbox.run(["check"]);
    assert_eq!(finished.code, Some(0), "{finished}");
    assert!(!sleeping("4751"));
    let log = std::fs::read_to_string(sandbox.path("runs/agent-logs/new.log")).unwrap();
    assert!(log.starts_with("key [redacted]\n") && log.contains("listens on http://127.0.0.1:"), "{log}");
}

#[test]
fn an_agent_that_dies_ends_the_check_with_its_last_lines() {
    let sandbox = sandbox("seq 30\necho 'no module named app' >&2\nexit 3", START);
    let finished = sandbox.run(["check", "--format", "json"]);
    assert_eq!(finished.code, Some(3), "{finished}");
    let document: Value = serde_json::from_str(&finished.stdout).unwrap();
    assert_eq!((&document["outcome"], &document["exit_code"]), (&json!("error"), &json!(3)));
    let message = document["message"].as_str().unwrap();
    assert!(message.contains("the agent ended with exit code 3 before it was ready"), "{message}");
    assert!(message.contains("no module named app") && !message.contains("\n  11\n"), "{message}");
    assert!(!sandbox.path("runs/new").exists());
}

#[test]
fn an_agent_that_is_never_ready_ends_the_check() {
    let side = "start = \"sh agent.sh {port}\"\nready = \"startup complete\"\nready_timeout = \"400ms\"";
    let sandbox = sandbox("echo loading the model\nsleep 4752", side);
    let finished = sandbox.run(["check"]);
    assert_eq!(finished.code, Some(3), "{finished}");
    for part in ["within 400ms", "`startup complete`", "loading the model", "hint: correct `ready`"] {
        assert!(finished.stderr.contains(part), "{finished}");
    }
    assert!(!sleeping("4752"));
}

/// Starts a check whose agent listens and is never ready, ends it with a signal, and waits until nothing of it is left.
fn ended(marker: &str, signal: &str) -> Option<i32> {
    let script = format!("setsid sleep {marker} &\nexec DEMO");
    let sandbox = sandbox(&script, "start = \"sh agent.sh {port}\"\nready = \"never printed\"");
    let mut check = sandbox.command(["check"]).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    let log = sandbox.path("runs/agent-logs/new.log");
    let port = || -> Option<u16> {
        let text = std::fs::read_to_string(&log).ok()?;
        text.split_once("http://127.0.0.1:")?.1.lines().next().filter(|_| text.ends_with('\n'))?.parse().ok()
    };
    wait_until("the agent did not start", || sleeping(marker) && port().is_some());
    let port = port().unwrap();
    assert!(TcpStream::connect(("127.0.0.1", port)).is_ok());
    let sent = Command::new("kill").args([signal, &check.id().to_string()]).status().unwrap();
    assert!(sent.success());
    let ended = Instant::now();
    wait_until("a process or a port is left", || !sleeping(marker) && TcpStream::connect(("127.0.0.1", port)).is_err());
    assert!(ended.elapsed() < Duration::from_secs(3), "{:?}", ended.elapsed());
    check.wait().unwrap().code()
}

#[test]
fn an_interrupt_leaves_no_process_and_no_port() {
    assert_eq!(ended("4753", "-INT"), Some(4));
}

#[test]
fn a_killed_check_leaves_no_process_and_no_port() {
    assert_eq!(ended("4754", "-KILL"), None);
}

fn git(sandbox: &Sandbox, arguments: &[&str]) -> String {
    let identity = ["-c", "user.name=a", "-c", "user.email=a@example.com"];
    let output = Command::new("git").args(identity).args(arguments).current_dir(sandbox.root()).output().unwrap();
    assert!(output.status.success(), "{arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

#[test]
fn the_baseline_is_built_and_run_at_its_commit() {
    let side = format!("{START}\n[side.baseline]\nref = \"first\"\nsetup = \"sh build.sh\"");
    let sandbox = sandbox("test -e built && exec DEMO", &side)
        .with_file("build.sh", "echo building\ntouch built\n")
        .with_file(".gitignore", "/runs\n/report\n");
    git(&sandbox, &["init", "--quiet"]);
    git(&sandbox, &["add", "."]);
    git(&sandbox, &["commit", "--quiet", "--message", "one"]);
    git(&sandbox, &["tag", "first"]);
    let new = format!("exec {} demo-agent --variant new --listen 127.0.0.1:$1", program().display());
    let sandbox = sandbox.with_file("agent.sh", &new);
    let state = || (git(&sandbox, &["worktree", "list"]), git(&sandbox, &["status", "--porcelain"]));
    let before = state();
    let finished = sandbox.run(["check"]);
    assert_eq!(finished.code, Some(1), "{finished}");
    assert!(finished.stdout.contains("refund_damaged_001"), "{finished}");
    assert_eq!(std::fs::read(sandbox.path("runs/agent-logs/baseline.setup.log")).unwrap(), b"building\n");
    assert_eq!(state(), before);
    assert!(!sandbox.path("built").exists());
    // The stored baseline is used until the reference moves.
    let again = sandbox.run(["check"]);
    assert!(!again.stderr.contains("running the baseline"), "{again}");
    git(&sandbox, &["commit", "--quiet", "--allow-empty", "--message", "two"]);
    git(&sandbox, &["tag", "--force", "first"]);
    let moved = sandbox.run(["check"]);
    assert!(moved.stderr.contains("and `first` is now ") && moved.stderr.contains("running the baseline"), "{moved}");
}

#[test]
fn an_unknown_commit_and_a_failed_setup_end_the_check() {
    let sandbox = sandbox("exec DEMO", &format!("{START}\nref = \"no-such-tag\""));
    git(&sandbox, &["init", "--quiet"]);
    let finished = sandbox.run(["check"]);
    assert_eq!(finished.code, Some(2), "{finished}");
    assert!(finished.stderr.contains("the repository has no commit `no-such-tag`"), "{finished}");

    let config =
        format!("[run]\ncases = \"cases.json\"\n[side.new]\n{START}\nsetup = \"sh -c 'echo no compiler; exit 9'\"\n");
    let finished = sandbox.with_file("counterproof.toml", &config).run(["check"]);
    assert_eq!(finished.code, Some(3), "{finished}");
    assert!(finished.stderr.contains("`setup` ended with exit code 9") && finished.stderr.contains("\n  no compiler"));
}

#[test]
fn a_persistent_command_answers_all_cases_in_one_process_with_its_variables() {
    let script = r#"echo started >> starts
while read -r line; do
  echo '{"proposed_actions": [], "events": [], "final_output": {"content_type": "text", "content": "'$MODE'"}}'
done"#;
    let side = "command = \"sh agent.sh\"\npersistent = true\nenv = { MODE = \"fast\" }";
    let sandbox = sandbox(script, side);
    let finished = sandbox.run(["run", "--side", "new", "--run-id", "r1", "--concurrency", "1"]);
    assert_eq!(finished.code, Some(0), "{finished}");
    assert_eq!(std::fs::read(sandbox.path("starts")).unwrap(), b"started\n");
    assert_eq!(sandbox.json(&format!("runs/new/r1/{}.json", CASES[0]))["final_output"]["content"], "fast");
}

#[test]
fn a_program_that_prints_text_gets_the_text_alone() {
    let sandbox = sandbox("echo \"[$(cat)]\"; echo last", "command = \"sh agent.sh\"\nprotocol = \"text\"");
    let cases = json!([{"id": "c1", "input": {"user": "one\ntwo"}}]).to_string();
    let sandbox = sandbox.with_file("cases.json", &cases);
    let finished = sandbox.run(["run", "--side", "new", "--run-id", "r1"]);
    assert_eq!(finished.code, Some(0), "{finished}");
    assert_eq!(sandbox.json("runs/new/r1/c1.json")["final_output"]["content"], "[one\ntwo]\nlast");

    let config =
        "[run]\ncases = \"cases.json\"\n[side.new]\ncommand = \"cat\"\nprotocol = \"text\"\npersistent = true\n";
    let finished = sandbox.with_file("counterproof.toml", config).run(["check"]);
    assert_eq!(finished.code, Some(2), "{finished}");
    assert!(finished.stderr.contains("`persistent = true` needs a protocol"), "{finished}");
}

#[test]
fn wrong_keys_of_a_side_are_reported_with_their_place() {
    for (side, part) in [
        ("ready = \"\"", "counterproof.toml:4:"),
        ("start = \"sh 'x\"", "counterproof.toml:4:"),
        ("base_url = \"localhost:{port}\"", "counterproof.toml:4:"),
        ("start = \"true\"\nenv = { A = \"env:NOT_SET_ANYWHERE\" }", "`NOT_SET_ANYWHERE`, which is not set"),
    ] {
        let finished = sandbox("exec DEMO", side).run(["check"]);
        assert_eq!(finished.code, Some(2), "{finished}");
        assert!(finished.stderr.contains(part), "{finished}");
    }
}
