//! No text from outside steers a terminal or GitHub Actions: every subcommand meets hostile names in arguments, file names,
//! ids and keys.

use counterproof_tests::{Finished, Sandbox};
use serde_json::json;

/// A window title, a screen erased, reversed and invisible text, and workflow commands at the start of a line.
const HOSTILE: &str =
    "x\u{1b}]0;t\u{7}\u{1b}[2J\u{9b}2J\u{202e}\u{200b}\r\n::error::owned\n  ::stop-commands::t\n##[error]owned";

/// Removes the escape sequences of our own styles.
fn without_styles(text: &str) -> String {
    let mut parts = text.split("\u{1b}[");
    let first = parts.next().unwrap_or_default().to_owned();
    parts.fold(first, |plain, part| {
        let rest = part.trim_start_matches(|c: char| c.is_ascii_digit() || c == ';');
        plain + rest.strip_prefix('m').unwrap_or("\u{1b}")
    })
}

#[track_caller]
fn assert_harmless(arguments: &[&str], finished: &Finished) {
    for text in [&finished.stdout, &finished.stderr] {
        let plain = without_styles(text);
        let odd = plain.chars().find(|c| *c != '\n' && counterproof_artifact::is_invisible(*c));
        assert_eq!(odd, None, "{arguments:?}: {finished:?}");
        let command = plain.lines().find(|line| line.trim_start().starts_with("::") || line.contains("##["));
        assert_eq!(command, None, "{arguments:?}: {finished:?}");
    }
    assert!(!finished.stderr.is_empty() || !finished.stdout.is_empty(), "{arguments:?} prints something");
}

fn sandbox() -> Sandbox {
    let run = |name: &str| format!("{name}/run.json");
    let hostile =
        json!({HOSTILE: 1, "schema_version": HOSTILE, "case_id": HOSTILE, "run_id": HOSTILE, "side": HOSTILE});
    let case = json!([{"id": "c1", "input": {"user": "u"}, HOSTILE: 1, "title": HOSTILE}]);
    let sandbox = Sandbox::new();
    // Without it, runs of the guard are recorded in the ledger of the user.
    let state = sandbox.path("state").into_string();
    sandbox
        .with_variable("XDG_STATE_HOME", &state)
        .with_variable("GITHUB_ACTIONS", "true")
        .with_variable("CLICOLOR_FORCE", "1")
        .with_file("cases.json", &case.to_string())
        .with_file("ids.json", &json!([{"id": HOSTILE, "input": {"user": "u"}}]).to_string())
        .with_file("titles.json", &json!([{"id": "c1", "title": HOSTILE, "input": {"user": "u"}}]).to_string())
        .with_file("config.toml", &format!("[agent]\n\"{}\" = 1\n", HOSTILE.escape_unicode()))
        .with_file("evaluation.json", &hostile.to_string())
        .with_file("case.json", &hostile.to_string())
        .with_variable("COUNTERPROOF_LOCKS", "locks")
        .with_file("contract.json", &contract().to_string())
        .with_file("contract-2.json", &contract().to_string().replace("\"version\":1", "\"version\":2"))
        .with_file("invalid.json", &json!({"id": HOSTILE, HOSTILE: 1, "created_at": HOSTILE}).to_string())
        .with_file("events.jsonl", &events())
        .with_file("output.json", &json!({"ok": HOSTILE}).to_string())
        .with_file("policy.json", &policy(HOSTILE).to_string())
        .with_file("policy-2.json", &policy("other").to_string())
        .with_file(
            "invalid-policy.json",
            &json!({HOSTILE: 1, "mode": HOSTILE, "rules": [{"rule_id": HOSTILE}]}).to_string(),
        )
        .with_file("policy-tests.json", &policy_tests().to_string())
        .with_file(
            "servers.json",
            &json!({"mcpServers": {HOSTILE: {"command": HOSTILE}, "b": {HOSTILE: 1}}}).to_string(),
        )
        .with_file("secrets.json", &json!({HOSTILE: {"value": HOSTILE, "source": HOSTILE}}).to_string())
        .with_file("facts/x\u{1b}[2J.parquet", &hostile.to_string())
        .with_file(&run("run"), &hostile.to_string())
        .with_file(&format!("{}/c1.json", "odd\u{9b}\u{202e}\n::error::x"), &hostile.to_string())
}

/// A policy that has hostile text wherever it can.
fn policy(text: &str) -> serde_json::Value {
    json!({
        "policy_id": text, "version": text, "mode": "control", "description": text,
        "rules": [{
            "rule_id": text, "kind": "deny", "match": {"risk_class": [text]}, "effect": {}
        }, {
            "rule_id": format!("2{text}"), "kind": "deny",
            "effect": {"message": text, "hint_text": text, "reason_code": text}
        }]
    })
}

fn policy_tests() -> serde_json::Value {
    let call = json!({"server": HOSTILE, "tool": HOSTILE, "expect": {"action": "ALLOW", "reason_code": HOSTILE}});
    json!({"tests": [{"name": HOSTILE, "calls": [call]}], HOSTILE: 1})
}

/// A contract that says hostile text wherever it can.
fn contract() -> serde_json::Value {
    json!({
        "id": "c", "version": 1, "created_at": "2026-01-31T12:00:00Z",
        "input": {"type": HOSTILE, "data": HOSTILE, "constraints": {HOSTILE: 1}},
        "output": {"type": HOSTILE, "schema": {"ok": "string"}, "artifacts": [format!("a{HOSTILE}")]},
        "verification": {
            "command": format!("printf '{HOSTILE}' >&2; exit 3 # {HOSTILE}"), "assertions": [format!("output.ok == {HOSTILE:?}")]
        },
        "rollback": {"strategy": "custom", "custom": format!("exit 4 # {HOSTILE}")},
        "metadata": {"project": HOSTILE, "agent": HOSTILE, "human_summary": HOSTILE}
    })
}

/// Events that say hostile text wherever they can, and a line that is none.
fn events() -> String {
    let event = |kind: &str| {
        json!({
            "v": HOSTILE, "type": kind, "ts": "2026-01-31T12:00:00Z", "run_id": HOSTILE, "agent_id": HOSTILE, "client": HOSTILE,
            "env": HOSTILE, "principal": HOSTILE, "workload": {"repo": HOSTILE}, "run": {"status": HOSTILE, "mode": HOSTILE},
            "source": {"host_id": HOSTILE, "proc_id": HOSTILE, "shim_id": HOSTILE}, "status": HOSTILE, "seq": 5,
            "call": {"call_id": HOSTILE, "server_name": HOSTILE, "tool_name": HOSTILE, "args_hash": HOSTILE},
            "decision": {"action": HOSTILE, "rule_id": HOSTILE}
        })
    };
    // Serialisation escapes control characters only.
    format!("{}\n{}\n{{\"type\": \"{HOSTILE}\"}}\n", event("run_end"), event("tool_call_end"))
}

/// Arguments of each subcommand that make it print names from outside.
#[expect(clippy::too_many_lines, reason = "a table of commands")]
fn lines() -> Vec<Vec<&'static str>> {
    let new = ["--side", "new", "--run-id", "r1", "--base-url", "http://127.0.0.1:9"];
    let run = |cases: &'static str, more: &[&'static str]| [&["run", "--cases", cases], &new[..], more].concat();
    vec![
        run(HOSTILE, &[]),
        run("cases.json", &[]),
        run("ids.json", &[]),
        run("titles.json", &["--dry-run"]),
        run("titles.json", &["--config", "config.toml"]),
        run("titles.json", &["--config", HOSTILE]),
        run("titles.json", &["--reporter", "plain", "--retries", "0", "--out", HOSTILE]),
        vec!["merge", HOSTILE, "run", "--out", HOSTILE],
        vec!["merge", "--shards", "2", "--out", HOSTILE],
        vec!["batch", "slurm", "--shards", "2", "--cases", HOSTILE, "--out", HOSTILE, "--", HOSTILE],
        vec![
            "batch",
            "kubernetes",
            "--shards",
            "2",
            "--run-id",
            "n1",
            "--cases",
            HOSTILE,
            "--image",
            HOSTILE,
            "--claim",
            HOSTILE,
        ],
        vec!["batch", "dask", "--shards", "2", "--cases", HOSTILE, "--config", HOSTILE, "--", HOSTILE],
        vec!["batch", "slurm", "--shards", HOSTILE],
        vec!["compare", "--runs", HOSTILE, "--out", HOSTILE],
        vec!["compare", "--baseline", "run", "--new", HOSTILE, "--out", "out"],
        vec!["report", HOSTILE],
        vec!["report", "evaluation.json", "--out", HOSTILE],
        vec!["history", HOSTILE, "--out", HOSTILE],
        vec!["history", "evaluation.json", "--out", HOSTILE],
        vec!["history", "--facts", HOSTILE, "--out", HOSTILE],
        vec!["history", "--facts", "facts", "--out", HOSTILE],
        vec!["export", "facts", HOSTILE, "--out", "facts"],
        vec!["export", "facts", ".", "--out", HOSTILE, "--runs", HOSTILE],
        vec!["accept", HOSTILE],
        vec!["accept", "run"],
        vec!["mutate", HOSTILE, "--cases", "ids.json"],
        vec!["mutate", "run", "--cases", HOSTILE],
        vec!["calibrate", HOSTILE],
        vec!["calibrate", "run", "other", "--cases", HOSTILE],
        vec!["replay", HOSTILE],
        vec!["replay", "case.json"],
        vec!["validate", HOSTILE],
        vec!["validate", "."],
        vec!["validate", ".", "--format", "json"],
        vec!["schema", HOSTILE],
        vec!["export-run", HOSTILE, "--run-id", HOSTILE],
        vec!["conformance", HOSTILE],
        vec!["demo", "--out", "cases.json"],
        vec!["demo", HOSTILE],
        vec!["demo-agent", "--port", HOSTILE],
        vec!["contract", "validate", "invalid.json"],
        vec!["contract", "validate", HOSTILE, "--json"],
        vec!["contract", "validate", "contract.json"],
        vec!["contract", "add", "contract.json"],
        vec!["contract", "list"],
        vec!["contract", "list", "--json"],
        vec!["contract", "show", "c"],
        vec!["contract", "show", HOSTILE],
        vec!["contract", "run", "c", "--dry-run", "--agent-cmd", HOSTILE, "--owner", HOSTILE],
        vec!["contract", "run", "c", "--dry-run", "--agent-cmd", HOSTILE],
        vec!["contract", "run", "c", "--output", HOSTILE],
        vec!["contract", "run", "c", "--output", "output.json"],
        vec!["contract", "status"],
        vec!["contract", "status", "--json"],
        vec!["contract", "status", "--html", HOSTILE],
        vec!["contract", "reject", "c", "--reason", HOSTILE, "--actor", "human:a"],
        vec!["contract", "add", "contract-2.json"],
        vec!["contract", "diff", "c@1", "c@2"],
        vec!["contract", "history", "c"],
        vec!["contract", "history", "c", "--json"],
        vec!["contract", "graph"],
        vec!["contract", "graph", "--format", "mermaid"],
        vec!["contract", "claim", "c", "--owner", HOSTILE],
        vec!["check", "--cases", HOSTILE],
        vec!["check", "--cases", "cases.json", "--only", HOSTILE],
        vec!["check", "--cases", "cases.json", "--format", HOSTILE],
        vec!["check", "--config", HOSTILE],
        vec!["try", "--input", HOSTILE, "--base-url", "http://127.0.0.1:9"],
        vec!["init", "--agent", HOSTILE],
        vec!["config", "show", "--cases", HOSTILE],
        vec!["completions", HOSTILE],
        vec!["man", HOSTILE],
        vec!["contract", "transition", "c", "--to", HOSTILE, "--actor", HOSTILE, "--reason", HOSTILE],
        vec!["contract", "list", "--store", HOSTILE],
        vec!["guard", "shim", "--server-name", "s", "--ledger", "ledger.db", "--policy", HOSTILE, "--", "true"],
        vec!["guard", "shim", "--server-name", "s", "--ledger", "ledger.db", "--policy", "invalid.json", "--", "true"],
        vec!["guard", "shim", "--server-name", HOSTILE, "--ledger", "ledger.db", "--", HOSTILE],
        vec!["guard", "shim", "--server-name", "s", "--ledger", "ledger.db", "--replay", HOSTILE],
        vec!["guard", "shim", "--server-name", "s", "--ledger", "ledger.db", "--replay", "invalid.json"],
        vec!["guard", "policy", "lint", HOSTILE],
        vec!["guard", "policy", "lint", "policy.json", "invalid-policy.json"],
        vec!["guard", "policy", "lint", "policy.json", "invalid-policy.json", "--json"],
        vec!["guard", "policy", "explain", "policy.json", "--server", HOSTILE, "--tool", HOSTILE],
        vec!["guard", "policy", "explain", "policy.json", "--server", "s", "--tool", "t", "--args", HOSTILE],
        vec!["guard", "policy", "explain", "policy.json", "--server", "s", "--tool", "t", "--json"],
        vec!["guard", "policy", "explain", "invalid-policy.json", "--server", "s", "--tool", "t"],
        vec!["guard", "policy", "diff", "policy.json", "policy-2.json"],
        vec!["guard", "policy", "diff", "policy.json", "policy-2.json", "--json"],
        vec!["guard", "policy", "test", "policy.json", "policy-tests.json"],
        vec!["guard", "policy", "test", "policy.json", "policy-tests.json", "--json"],
        vec!["guard", "policy", "test", "policy.json", HOSTILE],
        vec!["guard", "run", "--run", HOSTILE, "--", "true"],
        vec!["guard", "run", "--client", HOSTILE, "--", "true"],
        vec!["guard", "run", "--policy", HOSTILE, "--", "true"],
        vec!["guard", "run", "--", HOSTILE],
        vec!["guard", "import", HOSTILE],
        vec!["guard", "import", "cursor", "--config", HOSTILE],
        vec!["guard", "import", "cursor", "--config", "servers.json", "--dry-run"],
        vec!["guard", "import", "cursor", "--config", "servers.json", "--dry-run", "--json"],
        vec!["guard", "import", "cursor", "--config", "servers.json", "--policy", HOSTILE],
        vec!["guard", "import", "cursor", "--config", "servers.json"],
        vec!["guard", "restore", "cursor", "--config", "servers.json", "--dry-run"],
        vec!["guard", "restore", "cursor", "--config", HOSTILE],
        vec!["guard", "proxy", "--server-name", "s", "--upstream", HOSTILE],
        vec!["guard", "proxy", "--server-name", HOSTILE, "--upstream", "http://127.0.0.1:9/", "--policy", HOSTILE],
        vec!["guard", "policy", "test", "policy.json", "--events", "secrets.json"],
        vec!["guard", "policy", "test", "policy.json", "--events", HOSTILE],
        vec!["guard", "secrets", "add", HOSTILE],
        vec!["guard", "secrets", "add", "--from-env", HOSTILE, "a"],
        vec!["guard", "secrets", "list", "--store", "secrets.json"],
        vec!["guard", "secrets", "list", "--store", "secrets.json", "--json"],
        vec!["guard", "secrets", "remove", "x::error::y", "--store", HOSTILE],
        vec!["guard", "demo", "--out", "cases.json"],
        vec!["guard", "demo", "--out", HOSTILE],
        vec!["ledger", "query", "--ledger", HOSTILE],
        vec!["ledger", "ingest", "events.jsonl", "--ledger", "l.db"],
        vec!["ledger", "ingest", HOSTILE, "--ledger", "l.db"],
        vec!["ledger", "query", "--ledger", "l.db"],
        vec!["ledger", "query", "--ledger", "l.db", "--json"],
        vec!["ledger", "query", "--ledger", "l.db", "--run", HOSTILE],
        vec!["ledger", "runs", "--ledger", "l.db"],
        vec!["ledger", "runs", "--ledger", "l.db", "--json"],
        vec!["ledger", "tail", "--ledger", "l.db"],
        vec!["ledger", "tail", "--ledger", "l.db", "--json"],
        vec!["ledger", "export", "--ledger", "l.db"],
        vec!["ledger", "export", "--ledger", "l.db", "--out", HOSTILE],
        vec!["export-run", "--ledger", "l.db", "--side", "new"],
        vec!["export-run", "--ledger", "l.db", "--side", "new", "--run", HOSTILE],
        vec!["export-run", "--ledger", "l.db", "--side", "new", "--run", "other-\u{1b}[31m"],
        vec!["export-run", "--ledger", "l.db", "--side", "new", "--run-id", "r", "--out", HOSTILE, "--json"],
        vec!["ledger", "doctor", "--ledger", "l.db"],
        vec!["ledger", "doctor", "--ledger", HOSTILE, "--json"],
        vec!["ledger", "prune", "--ledger", "l.db", "--older-than", "1d", "--dry-run"],
        vec!["ledger", "prune", "--ledger", "l.db", "--older-than", HOSTILE],
        vec!["session", "record", "--ledger", "l.db", "--session-id", "s", "--title", HOSTILE, "--", "true"],
        vec!["session", "record", "--ledger", "l.db", "--session-id", HOSTILE, "--", "true"],
        vec!["session", "record", "--ledger", "l.db", "--", HOSTILE],
        vec!["session", "list", "--ledger", "l.db"],
        vec!["session", "list", "--ledger", "l.db", "--cursor", HOSTILE],
        vec!["session", "overview", "s", "--ledger", "l.db"],
        vec!["session", "overview", HOSTILE, "--ledger", "l.db"],
        vec!["session", "timeline", "s", "--ledger", "l.db", "--previews"],
        vec!["session", "timeline", "s", "--ledger", "l.db", "--json"],
        vec!["session", "checkpoints", HOSTILE, "--ledger", "l.db"],
        vec!["session", "checkpoint", HOSTILE, "--ledger", "l.db"],
        vec!["session", "pause", HOSTILE, "--ledger", "l.db"],
        vec!["session", "resume", HOSTILE, "--ledger", "l.db"],
        vec!["session", "resume", "--bundle", HOSTILE, "--ledger", "l.db"],
        vec!["session", "fork", HOSTILE, "--ledger", "l.db"],
        vec!["session", "replay", HOSTILE, "--ledger", "l.db"],
        vec!["session", "bundle", HOSTILE, "--out", HOSTILE, "--ledger", "l.db"],
        vec!["session", "import", HOSTILE, "--ledger", "l.db"],
        vec!["session", "export", "s", "--ledger", "l.db", "--side", "new", "--run-id", "s"],
        vec!["session", "export", "s", "--ledger", "l.db", "--html", HOSTILE],
        workflow(HOSTILE, HOSTILE),
        workflow(".", HOSTILE),
        vec![HOSTILE],
    ]
}

fn workflow(repository: &'static str, model: &'static str) -> Vec<&'static str> {
    let run = ["workflow", "run", "fix-failing-test", "--ledger", "l.db", "--test", HOSTILE, "--test-cmd", "false"];
    let more = ["--suite-cmd", "false", "--model-url", "http://127.0.0.1:9", "--repo", repository, "--model", model];
    run.into_iter().chain(more).collect()
}

#[test]
fn every_subcommand_prints_hostile_names_without_their_effect() {
    let sandbox = sandbox();
    for arguments in lines() {
        assert_harmless(&arguments, &sandbox.run(&arguments));
    }
}

#[test]
fn the_test_covers_every_subcommand() {
    let help = Sandbox::new().run(["--help"]).stdout;
    let commands = help.lines().skip_while(|line| *line != "Commands:").skip(1).take_while(|line| !line.is_empty());
    // Continued descriptions are indented further.
    let names = commands.filter(|line| !line.starts_with("   ")).filter_map(|line| line.split_whitespace().next());
    let names: Vec<&str> = names.filter(|name| *name != "help").collect();
    assert!(names.len() > 10, "{help}");
    for name in names {
        assert!(lines().iter().any(|arguments| arguments[0] == name), "no line of this test has `{name}`");
    }
}
