//! The start and end of a run: the run document, interruption, reproducible bytes, and write errors.

use std::sync::Arc;
use std::time::{Duration, Instant};

use counterproof_runner::{
    Environment, EventKind, Jitter, ResolveRule, RunError, Settings, Silent, Spending, Start, SteppingClock, run,
};
use serde_json::json;

use crate::kit::{Agent, Events, Finished, Reaction, answer, cases, ok, response, run_in, run_with, supervisor};

#[test]
fn the_run_document_records_settings_and_statistics() {
    let run = run_with(&Agent::sending(ok(&answer())).url(), &cases(["c1"]), |_| {});
    let document = run.json("run.json");
    assert_eq!(document["schema_version"], "run.v1");
    assert_eq!((&document["run_id"], &document["version"]), (&json!("r1"), &json!("new")));
    assert_eq!((&document["cases_path"], &document["out_dir"]), (&json!("../../../cases.json"), &json!("../..")));
    assert_eq!((&document["timeout_ms"], &document["retries"]), (&json!(10_000), &json!(2)));
    // The kit passes an absolute path.
    assert!(document.get("cases_path_as_passed").is_none(), "{document}");
    assert_eq!(document["retry_policy"]["classes"][4], "http_5xx");
    assert_eq!(document["limits"]["max_payload_inline_bytes"], 8192);
    assert_eq!(document["stats"]["cases_total"], 1);
    assert!(document.get("repo_commit").is_none() && document.get("node_version").is_none());
    assert!(matches!(run.events.first(), Some(EventKind::RunStarted { cases: 1, .. })));
    assert!(matches!(run.events.last(), Some(EventKind::RunFinished { .. })));
}

#[test]
fn events_cover_a_case_from_start_to_end() {
    let agent = Agent::new([Reaction::Send(response("500 Oops", "", b"")), Reaction::Send(ok(&answer()))]);
    let run = run_with(&agent.url(), &cases(["c1"]), |_| {});
    let kinds: Vec<_> = run
        .events
        .iter()
        .map(|kind| match kind {
            EventKind::RunStarted { .. } => "run started",
            EventKind::CaseStarted { .. } => "case started",
            EventKind::AttemptFailed { attempt: 1, .. } => "attempt failed",
            EventKind::CaseFinished { attempts: 2, failure: None, .. } => "case finished",
            EventKind::RunFinished { .. } => "run finished",
            _ => "something else",
        })
        .collect();
    assert_eq!(kinds, ["run started", "case started", "attempt failed", "case finished", "run finished"]);
}

#[test]
fn a_limit_on_tokens_counts_the_stored_answers_of_a_resumed_run_and_earlier_runs() {
    let mut used = answer();
    used["usage"] = json!({"input_tokens": 5, "output_tokens": 1});
    let agent = Agent::sending(ok(&used));
    let folder = tempfile::tempdir().unwrap();
    let out = camino::Utf8Path::from_path(folder.path()).unwrap();
    let run = |run_id: &str, start: Start, tokens: u64, spending: &Spending| {
        let environment = Environment { spending: spending.clone(), ..Environment::from_system() };
        let finished = run_in(&agent.url(), &cases(["c1", "c2", "c3"]), environment, |settings| {
            settings.run_id = run_id.parse().unwrap();
            settings.out = out.to_owned();
            settings.start = start;
            settings.usage_limits.tokens = Some(tokens);
        });
        (agent.requests().len(), finished.summary.limit)
    };
    let reached = |sum: u64| Some(format!("the answers used {sum} tokens, and the limit is 12"));
    let resume = Start::Resume { retry_errors: false, or_create: false };
    assert_eq!(run("r1", Start::New, 12, &Spending::default()), (2, reached(12)));
    assert_eq!(run("r1", resume, 12, &Spending::default()), (0, reached(12)));
    let spending = Spending::default();
    // The last case reaches the limit, and nothing is left to skip.
    assert_eq!(run("r1", resume, 18, &spending), (1, None));
    assert_eq!(run("r2", Start::New, 12, &spending), (0, reached(18)));
}

fn deterministic(agent: &Agent) -> Finished {
    let start = "2026-01-05T09:00:00Z".parse().unwrap();
    let environment = Environment {
        clock: Arc::new(SteppingClock::new(start, Duration::from_millis(7))),
        jitter: Jitter::from_seed(1),
        ..Environment::from_system()
    };
    run_in("http://agent.example", &cases(["c1", "c2", "c3", "c4", "c5"]), environment, |settings| {
        settings.resolve.push(ResolveRule::new("agent.example", agent.address));
        settings.timeout = Duration::from_millis(300);
        settings.retry.retries = 1;
    })
}

#[test]
fn with_a_stepping_clock_the_same_run_writes_the_same_bytes() {
    let script = || {
        Agent::new([
            Reaction::Send(ok(&answer())),
            Reaction::Send(response("500 Oops", "date: now\r\n", b"trace")),
            Reaction::Send(ok(&answer())),
            Reaction::Stall(Vec::new()),
            Reaction::Stall(Vec::new()),
            Reaction::Reset(Vec::new()),
            Reaction::Send(response("200 OK", "", b"<html>")),
            Reaction::Send(ok(&json!({}))),
        ])
    };
    let (first, second) = (deterministic(&script()), deterministic(&script()));
    assert_eq!(first.json("c3.json")["runner_failure"]["error_name"], "response_timeout");
    assert_eq!(first.json("c3.json")["runner_failure"]["latency_ms"], 307);
    let names = |run: &Finished| run.files().into_iter().map(|(name, _)| name).collect::<Vec<_>>();
    assert_eq!(names(&first), names(&second));
    for ((name, first), (_, second)) in first.files().iter().zip(second.files()) {
        assert_eq!(String::from_utf8_lossy(first), String::from_utf8_lossy(&second), "{name}");
    }
}

#[test]
fn an_interrupted_run_ends_soon_and_is_marked_as_interrupted() {
    let environment = Environment::from_system();
    let interrupt = environment.interrupt.clone();
    let agent = Agent::new([Reaction::Send(ok(&answer())), Reaction::Stall(Vec::new())]);
    let stopper = std::thread::spawn(move || {
        std::thread::sleep(Duration::from_millis(500));
        interrupt.trigger();
    });
    let start = Instant::now();
    let run = run_in(&agent.url(), &cases(["c1", "c2", "c3"]), environment, |settings| {
        settings.timeout = Duration::from_mins(1);
        settings.grace = Duration::from_millis(200);
    });
    stopper.join().unwrap();
    assert!(start.elapsed() < Duration::from_secs(10));
    assert!(run.summary.interrupted);
    assert_eq!((run.summary.counts.answered, run.summary.counts.not_run()), (1, 2));
    assert_eq!(run.json("run.json")["interrupted"], true);
    assert!(run.path("c1.json").exists() && !run.path("c2.json").exists() && !run.path("c3.json").exists());
    assert!(run.events.iter().any(|kind| matches!(kind, EventKind::RunInterrupted { in_flight: 1 })));
}

/// Returns the settings of a run in this folder.
fn below(agent: &Agent, runs: &camino::Utf8Path) -> Settings {
    let (id, url) = ("r1".parse().unwrap(), agent.url().parse().unwrap());
    Settings::new(id, counterproof_artifact::Side::New, url, "cases.json".into(), runs.to_owned())
}

#[test]
fn an_existing_run_is_never_overwritten() {
    let folder = tempfile::tempdir().unwrap();
    let out = camino::Utf8Path::from_path(folder.path()).unwrap();
    let agent = Agent::sending(ok(&answer()));
    let settings = below(&agent, out);
    run(&settings, &cases(["c1"]), Environment::from_system(), &mut Silent).unwrap();
    let again = run(&settings, &cases(["c1"]), Environment::from_system(), &mut Silent);
    assert!(matches!(again, Err(RunError::Create(_))), "{again:?}");
    assert_eq!(agent.requests().len(), 1, "nothing is asked before the folder is there");
}

#[cfg(unix)]
#[test]
fn a_write_error_ends_the_run() {
    let folder = tempfile::tempdir().unwrap();
    let file = camino::Utf8Path::from_path(folder.path()).unwrap().join("runs");
    counterproof_store::write::write(&file, b"", counterproof_store::write::Durability::Cached).unwrap();
    let agent = Agent::sending(ok(&answer()));
    let settings = below(&agent, &file);
    let error = run(&settings, &cases(["c1"]), Environment::from_system(), &mut Silent).unwrap_err();
    assert!(error.to_string().contains(file.as_str()), "{error}");
}

#[cfg(unix)]
#[test]
fn no_case_is_complete_after_a_file_that_cannot_be_written() {
    let rows = json!({"rows": vec!["a row of the table"; 1000]});
    let mut response = answer();
    response["events"] = json!([
        {"type": "tool_call", "ts": 1, "call_id": "x", "tool": "t", "action_id": "x", "args": {}},
        {"type": "tool_result", "ts": 2, "call_id": "x", "status": "ok", "latency_ms": 1, "payload_summary": rows},
    ]);
    for blocked in ["c1.json", "assets/full_payload_new_c1_e1.json"] {
        let folder = tempfile::tempdir().unwrap();
        let out = camino::Utf8Path::from_path(folder.path()).unwrap();
        let run_folder = out.join("new/r1");
        // The program runs before its case is written, and puts a folder in the way.
        let command = format!("sh -c 'mkdir -p {run_folder}/{blocked}; cat >/dev/null; cat {out}/response'");
        let durability = counterproof_store::write::Durability::Cached;
        counterproof_store::write::write(&out.join("response"), response.to_string().as_bytes(), durability).unwrap();
        let mut settings = below(&Agent::sending(ok(&answer())), out);
        settings.target = command.parse::<counterproof_runner::AgentCommand>().unwrap().into();
        settings.supervisor = Some(supervisor());
        let mut events = Events::default();
        let error = run(&settings, &cases(["c1"]), Environment::from_system(), &mut events).unwrap_err();
        assert!(error.to_string().contains(blocked), "{error}");
        assert!(!events.0.iter().any(|kind| matches!(kind, EventKind::CaseFinished { .. })), "{:?}", events.0);
        assert!(!run_folder.join("c1.json").is_file());
    }
}
