//! SIGKILL of a workflow, and of its resumes, at random moments: it reaches the result of a run that nothing interrupts.

use std::fs;
use std::process::Stdio;
use std::thread;
use std::time::Duration;

use counterproof_tests::ModelServer;
use counterproof_tests::workflow_model::{CODE, TARGET, TESTS, answer, mending};
use rustix::process::Signal;
use serde_json::Value;

use crate::attempt::{Attempt, Fault, Outcome, ensure};
use crate::process::{Ended, Running};

/// The mended file.
const MENDED: &str = "def add(a, b):\n    return a + b";

pub(crate) fn run(attempt: &mut Attempt) -> Outcome {
    let server = ModelServer::start(|_, request| answer(&mending(), request));
    let script = "git init -q -b main && git add -A && git -c user.name=a -c user.email=a@a commit -qm start";
    let repository = attempt.sandbox.path("repo");
    #[expect(clippy::disallowed_methods, reason = "the repository is what the attempt begins with")]
    let written = fs::create_dir(&repository)
        .and_then(|()| fs::write(repository.join("calc.py"), CODE))
        .and_then(|()| fs::write(repository.join("test_calc.py"), TESTS));
    written.map_err(|error| Fault::new(error.to_string()))?;
    let git = std::process::Command::new("sh").args(["-c", script]).current_dir(&repository).status();
    ensure!(git.is_ok_and(|status| status.success()), "the repository is not made");
    let url = format!("{}/v1", server.origin());
    let start = [
        "workflow",
        "run",
        "fix-failing-test",
        "--repo",
        "repo",
        "--test",
        TARGET,
        "--model",
        "m",
        "--model-url",
        &url,
        "--test-cmd",
        "python3 -m unittest -v {test}",
        "--suite-cmd",
        "python3 -m unittest -v",
    ];
    killed(attempt, &start)?;
    let Some(session) = session(attempt)? else { return Ok(()) };
    for _ in 0..attempt.random.u64(0..3) {
        killed(attempt, &["session", "resume", &session])?;
    }
    let ended = ended(attempt, &["session", "resume", &session])?;
    ended.has_code(0)?;
    check(attempt, &ended)
}

fn killed(attempt: &mut Attempt, arguments: &[&str]) -> Outcome {
    let mut command = attempt.sandbox.command(arguments.iter().chain(&["--ledger", "ledger.db", "--json"]));
    command.stdin(Stdio::null());
    let running = Running::start(command)?;
    thread::sleep(Duration::from_millis(attempt.random.u64(0..2500)));
    running.send(Signal::KILL);
    running.wait().map(drop)
}

fn ended(attempt: &Attempt, arguments: &[&str]) -> Result<Ended, Fault> {
    Running::start(attempt.sandbox.command(arguments.iter().chain(&["--ledger", "ledger.db", "--json"])))?.wait()
}

/// Returns the session; `None` if the run was killed before it was stored, or before its first checkpoint.
fn session(attempt: &Attempt) -> Result<Option<String>, Fault> {
    let listed = ended(attempt, &["session", "list"])?;
    let list: Value = serde_json::from_str(&listed.stdout).unwrap_or_default();
    let Some(session) = list["sessions"][0]["session_id"].as_str() else { return Ok(None) };
    let checkpoints = ended(attempt, &["session", "checkpoints", session])?;
    let page: Value = serde_json::from_str(&checkpoints.stdout).unwrap_or_default();
    Ok(page["checkpoints"].as_array().is_some_and(|list| !list.is_empty()).then(|| session.to_owned()))
}

fn check(attempt: &Attempt, ended: &Ended) -> Outcome {
    let result: Value =
        serde_json::from_str(&ended.stdout).map_err(|error| Fault::new(format!("{}: {error}", ended.line)))?;
    ensure!(result["status"] == "success", "the result is {result}");
    let url = result["pr_url"].as_str().unwrap_or_default();
    ensure!(url.ends_with("/pulls/1.json"), "the pull request is {url}");
    let path = url.trim_start_matches("file://");
    let pulls = camino::Utf8Path::new(path).parent().into_iter().flat_map(camino::Utf8Path::read_dir_utf8).flatten();
    let records = pulls.flatten().filter(|entry| entry.path().extension() == Some("json")).count();
    ensure!(records == 1, "{records} pull requests");
    let record: Value = fs::read(path).ok().and_then(|bytes| serde_json::from_slice(&bytes).ok()).unwrap_or_default();
    let show = |path: &str| {
        let object = format!("{}:{path}", record["head_commit"].as_str().unwrap_or_default());
        let repository = record["repository"].as_str().unwrap_or_default();
        let output = std::process::Command::new("git").args(["-C", repository, "show", &object]).output();
        output.map(|output| String::from_utf8_lossy(&output.stdout).into_owned()).unwrap_or_default()
    };
    ensure!(show("calc.py").starts_with(MENDED), "the file is {}", show("calc.py"));
    ensure!(show("test_calc.py") == TESTS, "the test is {}", show("test_calc.py"));
    let page = self::ended(
        attempt,
        &["session", "timeline", result["capture"]["session_id"].as_str().unwrap_or_default(), "--limit", "1000"],
    )?;
    let page: Value = serde_json::from_str(&page.stdout).unwrap_or_default();
    let events = page["events"].as_array().cloned().unwrap_or_default();
    let gap = events.iter().zip(1..).find(|(event, number)| event["seq"] != *number);
    ensure!(gap.is_none() && !events.is_empty(), "a number is missing: {gap:?}");
    Ok(())
}
