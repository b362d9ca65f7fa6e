//! `counterproof run --agent-cmd`: programs as agents, and the end of their processes.

use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use counterproof_tests::{Sandbox, minimal_answer, program};
use serde_json::{Value, json};

const RUN: [&str; 9] =
    ["run", "--cases", "cases.json", "--side", "new", "--run-id", "r1", "--agent-cmd", "sh agent.sh"];

fn sandbox(cases: usize, agent: &str) -> Sandbox {
    let cases: Value = (0..cases).map(|index| json!({"id": format!("c{index}"), "input": {"user": "go"}})).collect();
    Sandbox::new().with_file("cases.json", &cases.to_string()).with_file("agent.sh", agent)
}

fn answering() -> String {
    format!("cat > /dev/null\necho '{}'\n", minimal_answer())
}

/// An agent in three process groups that never answers. Each process sleeps for `seconds`.
fn spreading(seconds: u32) -> String {
    format!("setsid sleep {seconds} &\nsh -c 'sleep {seconds}' &\necho up > up\nsleep {seconds}\n")
}

fn sleeping(seconds: u32) -> usize {
    let listed = Command::new("ps").args(["-eo", "args"]).output().unwrap();
    let line = format!("sleep {seconds}");
    String::from_utf8_lossy(&listed.stdout).lines().filter(|args| **args == line).count()
}

/// Waits until `is_so` returns true. Returns false after a time limit.
fn wait_until(is_so: impl Fn() -> bool) -> bool {
    let start = Instant::now();
    while start.elapsed() < Duration::from_secs(20) {
        if is_so() {
            return true;
        }
        std::thread::sleep(Duration::from_millis(20));
    }
    false
}

/// Starts a run whose agent never answers, ends it with `end`, and returns its exit code after all agent processes are gone.
fn ended(seconds: u32, end: impl Fn(&mut Child)) -> Option<i32> {
    let sandbox = sandbox(2, &spreading(seconds));
    let options = RUN.iter().copied().chain(["--timeout", "60s", "--concurrency", "1"]);
    let mut run = sandbox.command(options).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    assert!(wait_until(|| sleeping(seconds) == 3), "the agent did not start");
    end(&mut run);
    let code = run.wait().unwrap().code();
    assert!(wait_until(|| sleeping(seconds) == 0), "{} processes are left", sleeping(seconds));
    code
}

#[test]
fn no_agent_process_outlives_a_killed_run() {
    assert_eq!(ended(4721, |run| run.kill().unwrap()), None);
}

#[test]
fn no_agent_process_outlives_an_abandoned_run() {
    let code = ended(4722, |run| {
        let id = run.id().to_string();
        // The second signal abandons the run. Two signals at once can merge into one, so they are repeated until the run ends.
        assert!(wait_until(|| {
            let sent = Command::new("kill").args(["-INT", &id]).stderr(Stdio::null()).status();
            !sent.unwrap().success() || sleeping(4722) == 0
        }));
    });
    assert_eq!(code, Some(4));
}

#[test]
fn an_agent_that_stops_its_supervisor_is_killed_at_the_time_limit() {
    let sandbox = sandbox(1, "setsid sleep 4723 &\nkill -STOP $PPID\nsleep 4723\n");
    let finished = sandbox.run(RUN.iter().copied().chain(["--timeout", "500ms", "--retries", "0"]));
    assert!(finished.stderr.contains("1 failed (1 timeout)"), "{finished}");
    assert!(wait_until(|| sleeping(4723) == 0), "{} processes are left", sleeping(4723));
}

/// Returns the exit code and standard error of a run with another agent program.
fn run_with(sandbox: &Sandbox, program: &str) -> (Option<i32>, String) {
    let finished = sandbox.run(RUN[..8].iter().copied().chain([program]));
    (finished.code, finished.stderr)
}

#[test]
fn a_program_that_cannot_be_started_is_reported_with_the_reason() {
    for (program, reason) in [
        (
            "nosuchprog --key s3cret",
            "error: cmd:nosuchprog: the agent's program could not be started: No such file or directory",
        ),
        ("./agent.sh", "error: cmd:agent.sh: the agent's program could not be started: Permission denied"),
    ] {
        let sandbox = sandbox(2, "no program: nobody may execute it");
        let (code, stderr) = run_with(&sandbox, program);
        assert_eq!(code, Some(3), "{stderr}");
        assert!(
            stderr.contains(reason) && stderr.contains("hint: check that the first word of `--agent-cmd`"),
            "{stderr}"
        );
        assert!(!stderr.contains("s3cret"), "{stderr}");
    }
}

#[test]
fn the_standard_error_file_is_named_if_all_cases_fail_alike() {
    let sandbox = sandbox(2, "echo 'no key' >&2\nexit 3\n");
    let (code, stderr) = run_with(&sandbox, "sh agent.sh");
    assert_eq!(code, Some(1), "{stderr}");
    for line in [
        "  c0: agent_exit 3: no key\n  c1: agent_exit 3: no key\n",
        "hint: every case failed as `agent_exit`; see the standard error of c0: runs/new/r1/assets/c0.attempt1.stderr.txt\n",
    ] {
        assert!(stderr.contains(line), "{stderr}");
    }
    assert_eq!(std::fs::read(sandbox.path("runs/new/r1/assets/c0.attempt1.stderr.txt")).unwrap(), b"no key\n");
}

#[test]
fn a_signal_is_named_and_one_failed_case_of_two_gives_no_hint() {
    let sandbox = sandbox(2, &format!("grep -q c0 && kill -TERM $$\necho no >&2\necho '{}'\n", minimal_answer()));
    let (_, stderr) = run_with(&sandbox, "sh agent.sh");
    assert!(stderr.contains("  c0: agent_signal 15\n") && !stderr.contains("hint: "), "{stderr}");
}

#[test]
fn invalid_or_too_long_output_is_reported_with_a_remedy() {
    let (_, stderr) = run_with(&sandbox(1, "echo starting\n"), "sh agent.sh");
    assert!(stderr.contains("hint: an agent program must write only the answer to standard output"), "{stderr}");
    let sandbox = sandbox(1, &answering());
    let finished = sandbox.run(RUN.iter().copied().chain(["--max-answer-bytes", "9"]));
    assert!(
        finished.stderr.contains("hint: raise the size limits with `--max-body-bytes` and `--max-answer-bytes`"),
        "{finished}"
    );
}

/// Runs the program with a limit that a shell sets. Returns the exit code and standard error.
fn limited(sandbox: &Sandbox, limit: &str, more: &[&str]) -> (Option<i32>, String) {
    let script = format!("{limit}; exec \"$@\"");
    let mut shell = Command::new("sh");
    shell.current_dir(sandbox.root()).args(["-c", &script, "sh"]).arg(program()).args(RUN).args(more);
    let finished = shell.output().unwrap();
    (finished.status.code(), String::from_utf8(finished.stderr).unwrap())
}

#[test]
fn a_low_limit_of_open_files_is_raised_as_far_as_possible() {
    let sandbox = sandbox(40, &answering());
    let (code, stderr) = limited(&sandbox, "ulimit -Sn 60", &["--concurrency", "40"]);
    assert_eq!(code, Some(0), "{stderr}");
    assert!(stderr.contains("40 cases: 40 ok") && !stderr.contains("warning"), "{stderr}");
}
