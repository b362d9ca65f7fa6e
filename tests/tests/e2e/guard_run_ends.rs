//! `counterproof guard run`: what the ledger, an export and a comparison have about the end of an agent.

use std::process::{Child, Stdio};
use std::time::{Duration, Instant};

use counterproof_tests::Sandbox;
use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};

use crate::guard_kit::SERVER;
use crate::guard_run::{home, on_terminal, requests, run_script};

/// Upper bound of a wait.
const LIMIT: Duration = Duration::from_mins(1);

/// Returns a script that calls a tool through the guard.
fn call() -> String {
    let program = counterproof_tests::program().to_str().unwrap();
    format!("{program} guard shim --server-name shop -- {SERVER} < requests > answers")
}

/// Returns a run of the ledger.
fn recorded(sandbox: &Sandbox, run: &str) -> Value {
    let listed = sandbox.run(["ledger", "runs", "--json", "--run", run]);
    let document: Value = serde_json::from_str(&listed.stdout).unwrap_or_else(|_| panic!("{listed}"));
    document["runs"][0].clone()
}

/// Exports a run. Returns its final output.
fn exported(sandbox: &Sandbox, side: &str, run: &str) -> Value {
    let exported = sandbox.run(["export-run", "--ledger", "--side", side, "--run", run, "--case-id", "case"]);
    assert_eq!(exported.code, Some(0), "{exported}");
    sandbox.json(&format!("runs/{side}/{run}/case.json"))["final_output"]["content"].clone()
}

#[test]
fn an_agent_that_fails_is_a_failed_case_and_worse_than_one_that_succeeds() {
    let sandbox =
        home().with_file("requests", &requests()).with_file("counterproof.toml", "[agent]\ndeterministic = true\n");
    for (run, code) in [("old", 0), ("new", 3)] {
        let script = format!("{}; exit {code}", call());
        let finished = run_script(&sandbox, &["--run", run, "--agent", "shopper"], &script);
        assert_eq!(finished.code, Some(code), "{finished}");
        assert!(finished.stderr.contains("calls: 1, refused: 0"), "{finished}");
    }
    let runs = ["old", "new"].map(|run| recorded(&sandbox, run));
    assert_eq!((&runs[0]["status"], &runs[1]["status"]), (&json!("SUCCEEDED"), &json!("FAILED")));
    assert_eq!((&runs[1]["sources"], &runs[1]["calls"]), (&json!(2), &json!(1)), "{}", runs[1]);
    assert_eq!(exported(&sandbox, "baseline", "old"), json!({"status": "SUCCEEDED"}));
    assert_eq!(exported(&sandbox, "new", "new"), json!({"status": "FAILED", "agent": "exit code 3"}));
    let compared = sandbox.run(["compare", "--cases", "runs/ledger.cases.json"]);
    assert_eq!(compared.code, Some(1), "{compared}");
    let case = sandbox.json("report/evaluation.json")["cases"][0].clone();
    assert_eq!(case["verdict"], "regressed", "{case}");
    let message = r#"“the run succeeds” no longer met: expected `final_output.content == {'status': 'SUCCEEDED'}`, but final_output.content is {"status": "FAILED", "agent": "exit code 3"}"#;
    assert_eq!(case["reasons"][0]["message"], message, "{case}");
    assert_eq!(sandbox.run(["ledger", "doctor"]).code, Some(0));
    assert_eq!(sandbox.run(["validate", "runs"]).code, Some(0));
}

#[test]
fn the_summary_counts_failed_calls_and_names_servers_that_failed() {
    let failing = requests().replace("\"echo\"", "\"fail\"");
    let rules = r#"{"policy_id": "p", "version": "1", "mode": "guardrails", "rules": [
        {"rule_id": "d", "kind": "deny", "match": {"tool_name": {"glob": ["echo"]}}}]}"#;
    let sandbox = home().with_file("requests", &requests()).with_file("failing", &failing).with_file("p.json", rules);
    let shim = format!("{} guard shim --server-name", counterproof_tests::program().to_str().unwrap());
    let script = [
        format!("{shim} good --policy p.json -- {SERVER} < requests > answers"),
        format!("{shim} good -- {SERVER} < failing > answers"),
        format!("{shim} crashing -- sh -c 'exit 7' < /dev/null"),
        format!("{shim} crashing -- sh -c 'exit 7' < /dev/null"),
        format!("{shim} killed -- sh -c 'kill -9 $$' < /dev/null"),
        format!("{shim} missing -- no-such-server 2>/dev/null < /dev/null"),
        "exit 0".to_owned(),
    ];
    let finished = run_script(&sandbox, &["--run", "r"], &script.join("\n"));
    assert!(finished.stderr.contains("calls: 2, refused: 1, failed: 1; list them with"), "{finished}");
    let failures: Vec<_> = finished.stderr.lines().filter(|line| line.starts_with("server ")).collect();
    let expected = [
        "server `crashing`: FAILED (exit code 7), 2 times",
        "server `killed`: FAILED (signal 9)",
        "server `missing`: FAILED (failed to start `no-such-server`: ",
    ];
    assert_eq!(failures.len(), expected.len(), "{finished}");
    assert!(failures.iter().zip(expected).all(|(found, expected)| found.starts_with(expected)), "{finished}");
    let ends = sandbox.run(["ledger", "export", "--run", "r"]).stdout;
    assert!(ends.contains("\"exit\":{\"code\":7}") && ends.contains("\"exit\":{\"signal\":9}"), "{ends}");
}

#[test]
fn a_run_without_a_guard_does_not_show_that_no_call_was_refused() {
    let sandbox = home();
    for (side, run) in [("baseline", "old"), ("new", "new")] {
        run_script(&sandbox, &["--run", run, "--agent", "shopper"], "exit 0");
        let exported = sandbox.run(["export-run", "--ledger", "--side", side, "--run", run]);
        assert_eq!(exported.code, Some(0), "{exported}");
        let warning =
            format!("warning: the run `{run}` has no tool calls: no server was behind a guard\nhint: put the guard ");
        assert!(exported.stderr.starts_with(&warning), "{exported}");
        assert!(exported.stderr.contains("SUCCEEDED, calls: 0, refused: 0\n"), "{exported}");
    }
    sandbox.run(["compare", "--cases", "runs/ledger.cases.json"]);
    let found = sandbox.json("report/evaluation.json")["cases"][0]["expectations"].clone();
    assert_eq!(found[0]["code"], "no_refused_calls", "{found}");
    assert!(found[0]["new"].to_string().contains("no guard recorded the calls"), "{found}");
    let mut cases = sandbox.json("runs/ledger.cases.json");
    cases[0]["expected"]["must"] = json!(true);
    let sandbox = sandbox.with_file("runs/ledger.cases.json", &cases.to_string());
    let compared = sandbox.run(["compare", "--cases", "runs/ledger.cases.json"]);
    assert_eq!(compared.code, Some(1), "{compared}");
    assert!(compared.stdout.contains("no guard recorded the calls"), "{compared}");
}

#[test]
fn the_status_of_a_run_is_how_its_agent_ended() {
    let sandbox = home();
    let request = json!({"terminate_code": "LOOP", "terminate_message": "again"});
    let terminated = format!("echo '{request}' > \"$COUNTERPROOF_TERMINATION\"; while :; do sleep 1; done");
    let ends = [
        ("exit 0", json!({"status": "SUCCEEDED"})),
        ("exit 41", json!({"status": "FAILED", "agent": "exit code 41"})),
        ("kill -SEGV $$", json!({"status": "FAILED", "agent": "signal 11"})),
        (terminated.as_str(), json!({"status": "TERMINATED", "agent": "TERMINATED"})),
    ];
    for (number, (script, expected)) in ends.iter().enumerate() {
        let run = format!("run-{number}");
        run_script(&sandbox, &["--run", &run], script);
        assert_eq!(recorded(&sandbox, &run)["status"], expected["status"], "{script}");
        assert_eq!(exported(&sandbox, "new", &run), *expected, "{script}");
    }
    let missing = sandbox.run(["guard", "run", "--run", "missing", "--", "no-such-agent", "--token=value"]);
    assert_eq!(missing.code, Some(3), "{missing}");
    assert_eq!(recorded(&sandbox, "missing")["status"], "FAILED");
    let output = exported(&sandbox, "new", "missing");
    assert!(output["agent"].as_str().unwrap().starts_with("failed to start `no-such-agent`: "), "{output}");
    let events = sandbox.run(["ledger", "export", "--run", "missing"]).stdout;
    assert!(events.contains("no-such-agent") && !events.contains("--token"), "arguments are not recorded: {events}");
}

const AGENT: &str = "touch ready; while :; do sleep 0.05; done";

/// Starts a run and waits until its agent, a script, is ready.
fn start(sandbox: &Sandbox, options: &[&str], agent: &str) -> Child {
    // The test may run where interrupts are ignored.
    let args = [&["guard", "run"], options, &["--", "sh", "-c", agent]].concat();
    let mut command = sandbox.command_in(&["env", "--default-signal"], args);
    let child = command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    let end = Instant::now() + LIMIT;
    while !sandbox.path("ready").exists() && Instant::now() < end {
        std::thread::sleep(Duration::from_millis(5));
    }
    std::fs::remove_file(sandbox.path("ready")).unwrap();
    child
}

#[test]
fn a_signal_to_the_guard_cancels_the_run_and_a_kill_leaves_it_without_an_end() {
    let sandbox = home();
    for (name, signal) in [("int", Signal::INT), ("term", Signal::TERM), ("hup", Signal::HUP)] {
        let mut child = start(&sandbox, &["--run", name], AGENT);
        kill_process(Pid::from_child(&child), signal).unwrap();
        child.wait().unwrap();
        assert_eq!(recorded(&sandbox, name)["status"], "CANCELLED", "{name}");
        assert_eq!(exported(&sandbox, "new", name), json!({"status": "CANCELLED", "agent": "CANCELLED"}));
    }
    let mut child = start(&sandbox, &["--run", "killed"], AGENT);
    assert_eq!(recorded(&sandbox, "killed")["status"], "RUNNING");
    kill_process(Pid::from_child(&child), Signal::KILL).unwrap();
    child.wait().unwrap();
    assert_eq!(recorded(&sandbox, "killed")["status"], "FAILED (no end)");
    assert_eq!(exported(&sandbox, "new", "killed"), json!({"status": "LOST", "agent": "LOST"}));
}

#[test]
fn an_agent_that_stops_its_supervisor_is_killed_after_a_signal_and_the_grace_time() {
    let sandbox = home();
    let agent = "trap '' TERM; kill -STOP $PPID; touch ready; while :; do sleep 0.05; done";
    let mut child = start(&sandbox, &["--run", "r", "--grace", "1"], agent);
    kill_process(Pid::from_child(&child), Signal::TERM).unwrap();
    child.wait().unwrap();
    assert_eq!(recorded(&sandbox, "r")["status"], "CANCELLED");
}

#[test]
fn an_agent_that_ctrl_c_ends_is_cancelled_and_one_that_handles_it_has_its_own_status() {
    let sandbox = home();
    for (run, handler, status) in [("ended", "", "CANCELLED"), ("handled", "trap \"exit 0\" INT;", "SUCCEEDED")] {
        let agent = format!("{handler} touch {run}; while :; do sleep 0.01; done");
        let script = format!("trap : INT; \"$PROGRAM\" guard run --run {run} -- sh -c '{agent}'; true");
        let (code, shown) = on_terminal(&sandbox, &script, &[(run, b"\x03")]);
        assert_eq!((code, &recorded(&sandbox, run)["status"]), (Some(0), &json!(status)), "{shown}");
    }
}

#[test]
fn a_ledger_that_cannot_be_opened_is_one_warning_and_the_agent_runs() {
    let sandbox = home().with_file("file", "");
    let finished = run_script(&sandbox, &["--ledger", "file/ledger.db"], "echo started; exit 4");
    assert_eq!((finished.code, finished.stdout.as_str()), (Some(4), "started\n"), "{finished}");
    assert_eq!(finished.stderr.matches("warning: ").count(), 1, "{finished}");
    assert!(finished.stderr.contains("warning: the agent is not recorded: "), "{finished}");
    let unknown = run_script(&sandbox, &["--ledger", "postgres://127.0.0.1:1/x", "--run", "a"], "exit 5");
    assert_eq!(unknown.code, Some(5), "{unknown}");
    assert!(unknown.stderr.contains("cannot check whether the run `a` is new"), "{unknown}");
}

#[test]
fn an_id_that_the_ledger_has_is_refused_and_that_of_the_variable_joins_the_run() {
    let sandbox = home();
    assert_eq!(run_script(&sandbox, &["--run", "one"], "exit 0").code, Some(0));
    let again = run_script(&sandbox, &["--run", "one"], "touch started");
    assert_eq!(again.code, Some(2), "{again}");
    assert!(again.stderr.contains("already has the run `one`\nhint: choose another id with `--run`"), "{again}");
    assert!(!sandbox.path("started").exists());
    // Below another run, the variable names its run.
    let program = counterproof_tests::program().to_str().unwrap();
    let outer = run_script(&sandbox, &["--run", "outer"], &format!("{program} guard run -- sh -c 'exit 6'"));
    assert_eq!(outer.code, Some(6), "{outer}");
    assert!(!outer.stderr.contains("joins"), "{outer}");
    assert_eq!(
        (&recorded(&sandbox, "outer")["sources"], &recorded(&sandbox, "one")["sources"]),
        (&json!(2), &json!(1))
    );
    let nested = run_script(&sandbox, &["--run", "a"], &format!("{program} guard run --run one -- touch started"));
    assert_eq!(nested.code, Some(2), "{nested}");
    let sandbox = Sandbox::within(sandbox.root()).with_variable("HOME", sandbox.root().as_str());
    let sandbox = sandbox.with_variable("XDG_STATE_HOME", "").with_variable("SUB_RUN_ID", "one");
    let joined = run_script(&sandbox, &[], "exit 0");
    assert_eq!(joined.code, Some(0), "{joined}");
    assert!(joined.stderr.contains("the agent joins the run `one` of `SUB_RUN_ID`"), "{joined}");
}
