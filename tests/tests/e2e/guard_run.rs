//! `counterproof guard run`: one run for everything below it, and its end.

use std::io::Write as _;
use std::process::Stdio;
use std::time::{Duration, Instant};

use counterproof_tests::{Finished, Sandbox};
use serde_json::{Value, json};

use crate::guard_kit::SERVER;

/// Upper bound of the first use.
const FIRST_USE: Duration = Duration::from_mins(5);

/// A home folder in which nothing was ever installed or started.
pub(crate) fn home() -> Sandbox {
    let sandbox = Sandbox::new();
    let home = sandbox.root().to_string();
    let names = ["XDG_STATE_HOME", "XDG_CONFIG_HOME", "SUB_RUN_ID", "SUB_AGENT_ID", "SUB_PRINCIPAL"];
    let names = [&names[..], &["SUBLUMINAL_SHIM_PATH"]].concat();
    names.into_iter().fold(sandbox.with_variable("HOME", &home), |sandbox, name| sandbox.with_variable(name, ""))
}

/// Runs an agent that is a script.
pub(crate) fn run_script(sandbox: &Sandbox, options: &[&str], script: &str) -> Finished {
    sandbox.run([&["guard", "run"], options, &["--", "sh", "-c", script]].concat())
}

pub(crate) fn requests() -> String {
    let requests = [
        json!({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {"protocolVersion": "2025-11-25", "capabilities": {}}}),
        json!({"jsonrpc": "2.0", "method": "notifications/initialized"}),
        json!({"jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": {"name": "echo", "arguments": {"text": "hello"}}}),
    ];
    requests.map(|request| request.to_string() + "\n").concat()
}

#[test]
fn the_agent_has_the_identity_of_the_run_and_its_exit_code_is_forwarded() {
    let sandbox = home();
    let options = [
        "--run",
        "run-7",
        "--agent",
        "coder",
        "--client",
        "codex",
        "--env",
        "ci",
        "--principal",
        "ada",
        "--print-run-id",
    ];
    let script = "echo $SUB_RUN_ID $SUB_AGENT_ID $SUB_CLIENT $SUB_ENV $SUB_PRINCIPAL; echo problem >&2; exit 7";
    let finished = run_script(&sandbox, &options, script);
    assert_eq!((finished.code, finished.stdout.as_str()), (Some(7), "run-7 coder codex ci ada\n"), "{finished}");
    let no_calls = "the ledger has no calls of this run: no server of the agent recorded in it\n\
                    hint: put the guard in front of the servers with `counterproof guard import`, or check the \
                    `--ledger` of their shims\n";
    assert_eq!(finished.stderr, format!("run: run-7\nproblem\n{no_calls}"));
    let ids: Vec<_> =
        (0..2).map(|_| run_script(&sandbox, &[], "echo $SUB_RUN_ID $SUB_CLIENT $SUB_ENV").stdout).collect();
    assert!(ids[0] != ids[1] && ids[0].ends_with(" custom dev\n"), "{ids:?}");
    assert_eq!(run_script(&sandbox, &[], "kill -9 $$").code, Some(137));
    let missing = sandbox.run(["guard", "run", "--", "no-such-agent"]);
    assert_eq!(missing.code, Some(3), "{missing}");
}

#[test]
fn the_case_is_a_label_of_the_workload() {
    let sandbox = home().with_variable("SUB_WORKLOAD", r#"{"repo": "shop", "labels": {"team": "a"}}"#);
    let finished = run_script(&sandbox, &["--case", "refund_001"], "printf %s \"$SUB_WORKLOAD\"");
    let workload: Value = serde_json::from_str(&finished.stdout).unwrap_or_else(|_| panic!("{finished}"));
    assert_eq!(workload, json!({"repo": "shop", "labels": {"team": "a", "case_id": "refund_001"}}));
    let invalid = run_script(&home().with_variable("SUB_WORKLOAD", "[1]"), &["--case", "refund_001"], "echo started");
    assert_eq!((invalid.code, invalid.stdout.as_str()), (Some(2), ""), "{invalid}");
    assert_eq!(run_script(&sandbox, &["--case", "../x"], "echo started").code, Some(2));
}

#[test]
fn no_process_of_the_agent_is_left() {
    let sandbox = home();
    let script = "setsid sh -c 'echo $$ > child; exec sleep 300' & while [ ! -s child ]; do :; done; exit 0";
    let finished = run_script(&sandbox, &[], script);
    assert_eq!(finished.code, Some(0), "{finished}");
    assert!(finished.stderr.contains("processes that the agent left behind were killed: 1"), "{finished}");
    let child = std::fs::read_to_string(sandbox.path("child")).unwrap();
    assert!(!std::path::Path::new("/proc").join(child.trim()).exists());
}

#[test]
fn a_request_on_the_pipe_ends_the_agent_and_its_reason_is_reported() {
    let sandbox = home();
    let request = json!({"terminate_code": "LOOP", "terminate_message": "the agent repeats itself"});
    // It ignores TERM, so it is killed after the grace time.
    let script = format!("trap '' TERM; echo '{request}' > \"$COUNTERPROOF_TERMINATION\"; while :; do sleep 1; done");
    let finished = run_script(&sandbox, &["--grace", "1"], &script);
    assert_eq!(finished.code, Some(1), "{finished}");
    assert!(finished.stderr.contains("a rule ended the run: the agent repeats itself (LOOP)"), "{finished}");
}

#[test]
fn a_grace_time_beyond_a_day_is_refused_before_the_agent_starts() {
    let sandbox = home();
    for grace in ["86401", "18446744073709551615"] {
        let finished = run_script(&sandbox, &["--grace", grace], "echo started");
        assert_eq!((finished.code, finished.stdout.as_str()), (Some(2), ""), "{finished}");
        assert!(finished.stderr.contains("is not in 0..=86400"), "{finished}");
    }
    assert_eq!(run_script(&sandbox, &["--grace", "86400"], "exit 0").code, Some(0));
}

#[test]
fn a_rule_of_a_shim_ends_the_run() {
    let policy = json!({"policy_id": "p", "version": "1.0.0", "mode": "guardrails", "rules": [
        {"rule_id": "end", "kind": "deny", "match": {"tool_name": {"glob": ["echo"]}},
         "effect": {"action": "TERMINATE_RUN", "reason_code": "NO_ECHO", "message": "echo is not allowed"}}
    ]});
    let sandbox = home().with_file("policy.json", &policy.to_string()).with_file("requests", &requests());
    let program = counterproof_tests::program().to_str().unwrap();
    // What the agent writes to the pipe before does not matter.
    for bytes in ["x", "\\377\\n", "\\n"] {
        // The agent does not notice that its server is gone.
        let script = format!(
            "printf '{bytes}' > \"$COUNTERPROOF_TERMINATION\"; \
             {{ cat requests; sleep 300; }} | {program} guard shim --server-name s -- {SERVER}; sleep 300"
        );
        let finished = run_script(&sandbox, &["--policy", "policy.json", "--grace", "5"], &script);
        assert_eq!(finished.code, Some(1), "{finished}");
        assert!(finished.stderr.contains("a rule ended the run: echo is not allowed"), "{finished}");
        assert!(finished.stderr.contains("calls: 1, refused: 1"), "{finished}");
    }
}

#[test]
fn servers_of_a_run_share_its_counters_and_its_numbers() {
    let policy = json!({"policy_id": "p", "version": "1.0.0", "mode": "guardrails", "rules": [
        {"rule_id": "three", "kind": "budget", "match": {"tool_name": {"glob": ["*"]}},
         "effect": {"budget": {"scope": "run", "limit_calls": 3}, "message": "three calls are enough"}}
    ]});
    let sandbox = home().with_file("policy.json", &policy.to_string()).with_file("requests", &three_requests());
    let program = counterproof_tests::program().to_str().unwrap();
    let server = |name: &str, option: &str| {
        format!("cat requests | {program} guard shim --server-name {name} {option} -- {SERVER} | grep -c refused; ")
    };
    // Given to the run, and kept in the configuration of each server.
    for (run, of_run, of_server) in [("r1", &["--policy", "policy.json"][..], ""), ("r2", &[], "--policy policy.json")]
    {
        let script = format!("{}{}exit 0", server("one", of_server), server("two", of_server));
        let finished = run_script(&sandbox, &[&["--run", run], of_run].concat(), &script);
        assert_eq!(finished.code, Some(0), "{finished}");
        assert!(finished.stderr.contains("calls: 6, refused: 3"), "{finished}");
        let doctor = sandbox.run(["ledger", "doctor"]);
        assert_eq!(doctor.code, Some(0), "{doctor}");
        let lines = sandbox.run(["ledger", "export", "--run", run]).stdout;
        let events: Vec<Value> = lines.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
        let starts = events.iter().filter(|event| event["type"] == "tool_call_start");
        let mut numbers: Vec<u64> = starts.map(|event| event["call"]["seq"].as_u64().unwrap()).collect();
        numbers.sort_unstable();
        assert_eq!(numbers, [1, 2, 3, 4, 5, 6]);
        let mut sums = events.iter().filter(|event| event["type"] == "run_end").map(|event| &event["run"]["summary"]);
        let agent = sums.find(|sums| sums["calls_total"] == 6);
        let agent = agent.expect("the end of the agent has the sums");
        assert_eq!((&agent["calls_allowed"], &agent["calls_blocked"]), (&json!(3), &json!(3)));
    }
}

fn three_requests() -> String {
    let calls = [3, 4].map(|id| {
        let params = json!({"name": "echo", "arguments": {"text": id.to_string()}});
        json!({"jsonrpc": "2.0", "id": id, "method": "tools/call", "params": params}).to_string() + "\n"
    });
    requests() + &calls.concat()
}

/// A policy that refuses the tool of the requests.
fn no_echo() -> String {
    json!({"policy_id": "p", "version": "1.0.0", "mode": "guardrails", "rules": [
        {"rule_id": "no-echo", "kind": "deny", "match": {"tool_name": {"glob": ["echo"]}},
         "effect": {"action": "BLOCK", "message": "echo is not allowed"}}
    ]})
    .to_string()
}

#[test]
fn a_server_whose_client_passes_no_variables_has_the_policy_and_the_ledger_of_the_run() {
    let program = counterproof_tests::program().to_str().unwrap();
    // What the Python SDK of MCP passes.
    let shim =
        format!("env -i HOME=\"$HOME\" PATH=\"$PATH\" {program} guard shim --server-name s -- {SERVER} < requests");
    let orphaned =
        format!("( ( {shim} > answers; : > done ) & ); while [ ! -e done ]; do sleep 0.1; done; cat answers");
    for script in [&shim, &orphaned] {
        let sandbox = home().with_file("policy.json", &no_echo()).with_file("requests", &requests());
        let finished = run_script(&sandbox, &["--policy", "policy.json", "--ledger", "run.db"], script);
        assert_eq!(finished.code, Some(0), "{finished}");
        assert!(finished.stdout.contains("echo is not allowed") && !finished.stdout.contains("hello"), "{finished}");
        assert!(finished.stderr.contains("calls: 1, refused: 1"), "{finished}");
        assert!(!sandbox.path(".local").exists(), "no event is in another ledger");
    }
}

#[test]
fn a_server_with_an_empty_policy_variable_has_the_policy_of_the_run() {
    let sandbox = home().with_file("policy.json", &no_echo()).with_file("requests", &requests());
    let program = counterproof_tests::program().to_str().unwrap();
    let script = format!("cat requests | COUNTERPROOF_POLICY= {program} guard shim --server-name s -- {SERVER}");
    let finished = run_script(&sandbox, &["--policy", "policy.json"], &script);
    assert_eq!(finished.code, Some(0), "{finished}");
    assert!(finished.stderr.contains("calls: 1, refused: 1"), "{finished}");
}

#[test]
fn a_run_whose_policy_no_server_used_fails() {
    let sandbox = home().with_file("policy.json", &no_echo()).with_file("requests", &requests());
    let policy = ["--policy", "policy.json"];
    let finished = run_script(&sandbox, &policy, &format!("{SERVER} < requests"));
    assert_eq!(finished.code, Some(1), "{finished}");
    assert!(finished.stdout.contains("hello"), "the server has no guard: {finished}");
    let warning = "warning: no server of the agent used the policy of `--policy`; the run counts as failed\nhint: ";
    assert!(finished.stderr.contains(warning) && finished.stderr.contains("env=dict(os.environ)"), "{finished}");
    let ended = sandbox.run(["ledger", "runs", "--json"]);
    assert!(ended.stdout.contains("FAILED"), "{ended}");
    // The code of an agent that failed stays.
    assert_eq!(run_script(&sandbox, &policy, "exit 7").code, Some(7));
    assert_eq!(run_script(&sandbox, &[], "exit 0").code, Some(0), "no policy was given");
}

#[test]
fn a_run_with_a_server_that_keeps_another_policy_fails_and_names_it() {
    let program = counterproof_tests::program().to_str().unwrap();
    let own = no_echo().replace("1.0.0", "2.0.0");
    let sandbox = home().with_file("policy.json", &no_echo()).with_file("own.json", &own);
    let shim = |policy: &str| format!("{program} guard shim --server-name files {policy} -- {SERVER} < /dev/null");
    let script = format!("{}; {}", shim("--policy own.json"), shim(""));
    let finished = run_script(&sandbox, &["--policy", "policy.json"], &script);
    assert_eq!(finished.code, Some(1), "{finished}");
    assert!(finished.stderr.contains("the server `files` used another policy than that of `--policy`"), "{finished}");
    let same = run_script(&sandbox, &["--policy", "policy.json"], &shim("--policy policy.json"));
    assert_eq!(same.code, Some(0), "{same}");
}

#[test]
fn a_rule_ends_the_run_of_a_shim_that_replays_a_cassette() {
    let header = json!({"schema_version": "cassette.v1", "server_name": "s", "recorded_at": "2026-01-31T12:00:00Z"});
    let policy = json!({"policy_id": "p", "version": "1.0.0", "mode": "guardrails", "rules": [
        {"rule_id": "end", "kind": "deny", "match": {"tool_name": {"glob": ["echo"]}},
         "effect": {"action": "TERMINATE_RUN", "message": "echo is not allowed"}}
    ]});
    let sandbox = home().with_file("policy.json", &policy.to_string()).with_file("requests", &requests());
    let sandbox = sandbox.with_file("cassette.jsonl", &format!("{header}\n"));
    let program = counterproof_tests::program().to_str().unwrap();
    let shim = format!("{program} guard shim --server-name s --replay cassette.jsonl");
    let script = format!("{{ cat requests; sleep 300; }} | {shim} > answers; sleep 300");
    let finished = run_script(&sandbox, &["--policy", "policy.json", "--grace", "5"], &script);
    assert_eq!(finished.code, Some(1), "{finished}");
    assert!(finished.stderr.contains("a rule ended the run: echo is not allowed"), "{finished}");
    assert!(std::fs::read_to_string(sandbox.path("answers")).unwrap().contains("-32084"));
}

/// Runs a script on a terminal, and types keys when a file exists. Returns the exit code and what the terminal shows.
pub(crate) fn on_terminal(sandbox: &Sandbox, script: &str, typed: &[(&str, &[u8])]) -> (Option<i32>, String) {
    // The test may run where interrupts are ignored, and a shell cannot handle a signal that it inherits as ignored.
    let mut command = std::process::Command::new("env");
    command.arg("--default-signal").arg(counterproof_tests::safe_run());
    command.args(["--pty", "--", "sh", "-c", script]).current_dir(sandbox.root());
    command.env("HOME", sandbox.root()).env("PROGRAM", counterproof_tests::program());
    for name in ["XDG_STATE_HOME", "SUB_RUN_ID", "COUNTERPROOF_LEDGER", "COUNTERPROOF_POLICY"] {
        command.env_remove(name);
    }
    let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let mut stdin = child.stdin.take().unwrap();
    let end = Instant::now() + FIRST_USE;
    for (file, keys) in typed {
        while !sandbox.path(file).exists() && Instant::now() < end {
            std::thread::sleep(Duration::from_millis(5));
        }
        stdin.write_all(keys).unwrap();
    }
    // The input stays open until the end: a terminal that is closed ends its programs.
    let output = child.wait_with_output().unwrap();
    (output.status.code(), String::from_utf8(output.stdout).unwrap())
}

#[test]
fn an_agent_on_a_terminal_has_one_of_its_own_with_the_same_size() {
    let sandbox = home();
    let agent = "test -t 0 && test -t 1 && test -t 2 && tty > inner; stty size; exit 6";
    let script = format!(
        "stty rows 33 cols 77; tty > outer; stty -g > before; \
         \"$PROGRAM\" guard run -- sh -c '{agent}'; code=$?; stty -g > after; exit $code"
    );
    let (code, shown) = on_terminal(&sandbox, &script, &[]);
    assert_eq!(code, Some(6), "{shown}");
    assert!(shown.contains("33 77\r\n"), "{shown}");
    let read = |name: &str| std::fs::read_to_string(sandbox.path(name)).unwrap();
    assert!(read("inner").starts_with("/dev/") && read("inner") != read("outer"), "{shown}");
    assert_eq!(read("before"), read("after"), "the mode of the terminal is restored");
}

#[test]
fn keys_of_the_terminal_reach_the_agent() {
    let sandbox = home();
    let agent = "trap \"echo interrupted; exit 3\" INT; touch first; read line; echo got $line; touch ready; \
                 while :; do sleep 0.01; done";
    let script = format!("trap : INT; \"$PROGRAM\" guard run -- sh -c '{agent}'; echo code $?");
    let (code, shown) = on_terminal(&sandbox, &script, &[("first", b"one\n"), ("ready", b"\x03")]);
    assert_eq!(code, Some(0), "{shown}");
    for expected in ["got one\r\n", "interrupted\r\n", "code 3\r\n"] {
        assert!(shown.contains(expected), "{expected}: {shown}");
    }
}

#[test]
fn a_rule_ends_an_agent_on_a_terminal() {
    let sandbox = home();
    let request = json!({"terminate_code": "LOOP", "terminate_message": "the agent repeats itself"}).to_string();
    let sandbox = sandbox.with_file("request", &format!("{request}\n"));
    let agent = "cat request > \"$COUNTERPROOF_TERMINATION\"; while :; do sleep 0.01; done";
    let script =
        format!("stty -g > before; \"$PROGRAM\" guard run -- sh -c '{agent}'; code=$?; stty -g > after; exit $code");
    let (code, shown) = on_terminal(&sandbox, &script, &[]);
    assert_eq!(code, Some(1), "{shown}");
    assert!(shown.contains("a rule ended the run: the agent repeats itself (LOOP)"), "{shown}");
    let read = |name: &str| std::fs::read_to_string(sandbox.path(name)).unwrap();
    assert_eq!(read("before"), read("after"), "the mode of the terminal is restored");
}

#[test]
fn imp_002_the_first_call_is_in_the_ledger_within_five_minutes_of_the_first_use() {
    let server = json!({"command": SERVER, "args": [], "env": {"MODE": "test"}});
    let config = serde_json::to_string_pretty(&json!({"mcpServers": {"tools": server}})).unwrap();
    let sandbox = home().with_file(".cursor/mcp.json", &config).with_file("requests", &requests());
    counterproof_tests::program();
    let started = Instant::now();
    // 1. Put the guard in front of the servers of the client.
    let imported = sandbox.run(["guard", "import", "cursor"]);
    assert_eq!(imported.code, Some(0), "{imported}");
    // 2. Run the agent, which starts the server as its configuration says and calls a tool.
    let server = sandbox.json(".cursor/mcp.json")["mcpServers"]["tools"].clone();
    let command = server["command"].as_str().unwrap();
    let args = server["args"].as_array().unwrap().iter().map(|arg| arg.as_str().unwrap());
    let agent = ["guard", "run", "--run", "first", "--", "sh", "-c", "\"$@\"", "agent", command];
    let mut run = sandbox.command(agent.into_iter().chain(args));
    run.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = run.spawn().unwrap();
    child.stdin.take().unwrap().write_all(requests().as_bytes()).unwrap();
    let output = child.wait_with_output().unwrap();
    let (stdout, stderr) = (String::from_utf8(output.stdout).unwrap(), String::from_utf8(output.stderr).unwrap());
    assert!(output.status.success() && stdout.contains("hello"), "{stdout}{stderr}");
    assert!(
        stderr.contains("calls: 1, refused: 0, failed: 0; list them with `counterproof ledger query --run first`"),
        "{stderr}"
    );
    // 3. Look at the calls.
    let listed = sandbox.run(["ledger", "query", "--run", "first", "--json"]);
    let elapsed = started.elapsed();
    println!("from the first command to the list of calls: {elapsed:?}");
    let document: Value = serde_json::from_str(&listed.stdout).unwrap();
    let call = &document["calls"][0];
    assert_eq!((&call["server_name"], &call["tool_name"]), (&json!("tools"), &json!("echo")), "{listed}");
    assert!(elapsed < FIRST_USE, "{elapsed:?}");
    // 4. Remove the guard.
    assert_eq!(sandbox.run(["guard", "restore", "cursor"]).code, Some(0));
    assert_eq!(std::fs::read_to_string(sandbox.path(".cursor/mcp.json")).unwrap(), config);
}
