//! `export-run --ledger`: runs that real shims recorded become artifacts that can be validated, compared and read.

use std::fs;
use std::process::Stdio;

use counterproof_tests::{Finished, McpClient, Sandbox, files_below};
use serde_json::{Value, json};

use crate::guard_kit::GuardFolder;

/// Records a run of an agent in the ledger of the folder.
fn record(folder: &GuardFolder, run: &str, agent: impl FnOnce(&mut McpClient)) {
    let mut command = folder.command();
    command.env("SUB_RUN_ID", run).env("SUB_AGENT_ID", "shopper");
    let mut client = McpClient::start(&mut command);
    client.request("initialize", &json!({"protocolVersion": "2025-11-25", "capabilities": {}}));
    agent(&mut client);
    client.close();
}

fn export(folder: &GuardFolder, side: &str, run: &str) -> Finished {
    folder.sandbox.run(["export-run", "--ledger", "--side", side, "--run", run])
}

/// Exports a run for each side, validates and compares them. Returns the only case of the evaluation.
#[track_caller]
fn compared(folder: &GuardFolder, baseline: &str, new: &str) -> (Finished, Value) {
    for (side, run) in [("baseline", baseline), ("new", new)] {
        let exported = export(folder, side, run);
        assert_eq!((exported.code, exported.stdout), (Some(0), format!("run folder: runs/{side}/{run}\n")));
    }
    let validated = folder.sandbox.run(["validate", "runs"]);
    assert_eq!(validated.code, Some(0), "{validated}");
    let folders = [format!("runs/baseline/{baseline}"), format!("runs/new/{new}")];
    let compared = folder.sandbox.run(["compare", "--cases", "runs/ledger.cases.json", &folders[0], &folders[1]]);
    let evaluation = folder.sandbox.json("report/evaluation.json");
    let [case] = &evaluation["cases"].as_array().unwrap()[..] else { panic!("{evaluation}") };
    (compared, case.clone())
}

fn two_calls(client: &mut McpClient) {
    client.call("find", &json!({"text": "lamp"}));
    client.call("buy", &json!({"sku": "lamp", "amount": 1}));
}

#[test]
fn two_equal_runs_are_unchanged() {
    let folder = GuardFolder::new();
    record(&folder, "one", two_calls);
    record(&folder, "two", two_calls);
    let (compared, case) = compared(&folder, "one", "two");
    assert_eq!((compared.code, &case["verdict"]), (Some(0), &json!("unchanged")), "{compared} {case}");
    assert_eq!(case["alignment"]["operations"]["same"], 5, "{case}");
    let artifact = folder.sandbox.json("runs/new/two/shopper.json");
    assert_eq!(artifact["events"][0]["tool"], "test.find");
    assert_eq!(artifact["events"][3]["payload_summary"]["content"][0]["text"], r#"{"sku":"lamp","amount":1}"#);
    assert_eq!(artifact["final_output"]["content"], json!({"status": "SUCCEEDED"}));
}

#[test]
fn a_changed_argument_is_the_first_step_that_differs() {
    let folder = GuardFolder::new();
    record(&folder, "one", two_calls);
    record(&folder, "two", |client| {
        client.call("find", &json!({"text": "lamp"}));
        client.call("buy", &json!({"sku": "lamp", "amount": 2}));
    });
    let (_, case) = compared(&folder, "one", "two");
    assert_eq!(
        (&case["verdict"], &case["reasons"][0]["code"]),
        (&json!("changed"), &json!("tool-args-changed")),
        "{case}"
    );
    assert_eq!(case["reasons"][0]["message"], "call of test.buy: amount 1 → 2");
    assert_eq!(case["reasons"][0]["pointers"][1]["pointer"], "/events/2");
    let page = fs::read_to_string(folder.sandbox.path("report/cases/shopper.html")).unwrap();
    assert!(page.contains("test.buy") && page.contains("Recorded run of shopper"), "{page}");
}

#[test]
fn a_refused_call_differs_and_states_the_decision() {
    let rule = "- {rule_id: limit, kind: deny, match: {args: {numeric_range: {amount: {min: 2}}}}, effect: {reason_code: LIMIT, message: too many}}\n";
    let folder = GuardFolder::new().with_rules(rule);
    record(&folder, "one", two_calls);
    record(&folder, "two", |client| {
        client.call("find", &json!({"text": "lamp"}));
        client.call("buy", &json!({"sku": "lamp", "amount": 2}));
    });
    let (compared, case) = compared(&folder, "one", "two");
    assert_eq!((&case["verdict"], &case["unconfirmed"]), (&json!("regressed"), &json!(true)), "{case}");
    assert!(compared.stdout.contains("1 case: 1 regressed (unconfirmed)\n"), "{compared}");
    let hint = "record more runs of each side, then counterproof compare --cases runs/ledger.cases.json \
                --baseline DIR... --new DIR...\n";
    assert!(compared.stdout.contains(hint) && !compared.stderr.contains("--resume"), "{compared}");
    let codes: Vec<_> = case["reasons"].as_array().unwrap().iter().map(|it| it["code"].as_str().unwrap()).collect();
    assert!(codes.contains(&"tool-error"), "{codes:?}");
    let result = folder.sandbox.json("runs/new/two/shopper.json")["events"][3].clone();
    assert_eq!(result["status"], "error");
    let decision = json!({"action": "BLOCK", "rule_id": "limit", "reason_code": "LIMIT", "summary": "too many"});
    assert_eq!(result["payload_summary"], json!({ "decision": decision }));
}

/// A policy that tags each call, and would refuse `buy`.
const OBSERVED: &str = "policy_id: p\nversion: '1'\nmode: observe\nrules:\n\
    - {rule_id: risk, kind: tag, effect: {tag: {add_risk_class: [money]}}}\n\
    - {rule_id: no-buy, kind: deny, match: {tool_name: {glob: [buy]}}, effect: {message: no}}\n";

#[test]
fn a_policy_that_only_observes_changes_no_case_and_its_decisions_are_in_the_report() {
    let folder = GuardFolder::new();
    record(&folder, "one", two_calls);
    let folder = folder.with_policy(OBSERVED);
    record(&folder, "two", two_calls);
    let (compared, case) = compared(&folder, "one", "two");
    assert_eq!((compared.code, &case["verdict"]), (Some(0), &json!("unchanged")), "{compared} {case}");
    let [without, with] =
        ["baseline/one", "new/two"].map(|run| folder.sandbox.json(&format!("runs/{run}/shopper.json")));
    assert_eq!(without["events"][0].get("annotations"), None, "{without}");
    assert_eq!(with["events"][0]["annotations"], json!({"tags": ["money"]}));
    let observed = json!({"action": "BLOCK", "rule_id": "no-buy", "reason_code": "POLICY_BLOCK"});
    assert_eq!(with["events"][2]["annotations"], json!({"tags": ["money"], "observed": observed}));
    let page = fs::read_to_string(folder.sandbox.path("report/cases/shopper.html")).unwrap();
    assert!(page.contains("annotations") && page.contains("no-buy"), "{page}");
    assert!(page.contains("SUCCEEDED") && !page.contains("answered"), "{page}");
    let review = &folder.sandbox.json("report/evaluation.json")["gate"]["review"];
    let message = "1 call would be refused: test.buy (no-buy)";
    assert_eq!((&review[0]["code"], &review[0]["message"]), (&json!("would-be-refused"), &json!(message)), "{review}");
    let index = fs::read_to_string(folder.sandbox.path("report/index.html")).unwrap();
    for text in [message, "Different settings", "p version 1 (observe, hash ", "default version 0.1.0", "1 SUCCEEDED"] {
        assert!(index.contains(text), "{text}: {index}");
    }
    assert!(compared.stdout.contains(message), "{compared}");
}

#[test]
fn a_call_that_is_newly_refused_is_regressed_and_one_that_always_was_is_not() {
    let rule = "- {rule_id: limit, kind: deny, match: {args: {numeric_range: {amount: {min: 2}}}}, effect: {message: too many}}\n";
    let folder = GuardFolder::new().with_file("counterproof.toml", "[agent]\ndeterministic = true\n").with_rules(rule);
    let buy = |amount: u32| {
        move |client: &mut McpClient| {
            // The result of this tool is a text.
            client.call("echo", &json!({"text": "lamp"}));
            client.call("buy", &json!({ "amount": amount }));
        }
    };
    record(&folder, "one", buy(1));
    record(&folder, "two", buy(2));
    let (finished, case) = compared(&folder, "one", "two");
    assert_eq!((finished.code, &case["verdict"]), (Some(1), &json!("regressed")), "{finished} {case}");
    let message = "no_refused_calls no longer met: call of test.buy: refused by the rule limit (too many)";
    assert_eq!(case["reasons"][0]["message"], message);
    assert!(finished.stdout.contains("refused by the rule limit"), "{finished}");
    assert!(!finished.stderr.contains("hint"), "one run decides: {finished}");
    // A run whose calls are refused as planned can be a baseline.
    for (side, run) in [("baseline", "three"), ("new", "four")] {
        record(&folder, run, buy(2));
        assert_eq!(export(&folder, side, run).code, Some(0));
    }
    let cases = ["compare", "--cases", "runs/ledger.cases.json", "runs/baseline/three", "runs/new/four"];
    let planned = folder.sandbox.run(cases);
    assert_eq!(planned.code, Some(0), "{planned}");
}

#[test]
fn a_run_that_fails_is_regressed_by_the_cases_file_of_the_export() {
    let folder = GuardFolder::new().with_file("counterproof.toml", "[agent]\ndeterministic = true\n");
    record(&folder, "one", two_calls);
    record(&folder, "two", |client| {
        client.call("find", &json!({"text": "lamp"}));
        client.send_request("tools/call", &json!({"name": "crash", "arguments": {}}));
        assert_eq!(client.receive()["error"]["message"], "the server ended with code 3");
        assert_eq!(client.receive_line(), None, "the server is gone");
    });
    let (compared, case) = compared(&folder, "one", "two");
    assert_eq!((compared.code, &case["verdict"]), (Some(1), &json!("regressed")), "{compared} {case}");
    assert!(case["reasons"][0]["message"].as_str().unwrap().contains("the run succeeds"), "{case}");
    let artifact = folder.sandbox.json("runs/new/two/shopper.json");
    assert_eq!(artifact["final_output"]["content"], json!({"status": "FAILED", "servers": {"test": "FAILED"}}));
    assert_eq!(artifact["events"][3]["payload_summary"]["error"]["class"], "transport");
}

#[test]
fn secrets_stay_redacted_in_all_files_of_a_run() {
    let secret = "sk-secret-key-12345";
    let folder = GuardFolder::new();
    record(&folder, "one", |client| {
        client.call("echo", &json!({"key": secret, "large": "x".repeat(100_000)}));
        client.call("echo", &json!({ "key": secret }));
        client.call("big", &json!({"bytes": 20_000, "key": secret}));
    });
    assert_eq!(export(&folder, "new", "one").code, Some(0));
    let files = files_below(&folder.sandbox.path("runs"));
    assert!(files.len() > 2 && files.iter().all(|(_, bytes)| !String::from_utf8_lossy(bytes).contains(secret)));
    let artifact = folder.sandbox.json("runs/new/one/shopper.json");
    assert_eq!(artifact["events"][2]["args"]["key"], "[REDACTED]");
    assert_eq!(artifact["events"][0]["args"]["truncated"], true);
    assert_eq!(artifact["events"][5]["payload_summary"]["sha256"].as_str().unwrap().len(), 64);
}

#[test]
fn several_runs_are_cases_of_one_folder_and_the_latest_run_is_the_default() {
    let folder = GuardFolder::new();
    let workload = |case: &str| json!({"labels": {"case_id": case}}).to_string();
    for (run, case) in [("one", "refund 1"), ("two", "refund_2")] {
        let mut command = folder.command();
        command.env("SUB_RUN_ID", run).env("SUB_WORKLOAD", workload(case));
        let mut client = McpClient::start(&mut command);
        client.call("echo", &json!({}));
        client.close();
    }
    let both = [
        "export-run",
        "--ledger",
        "--json",
        "--side",
        "new",
        "--run",
        "one",
        "--run",
        "two",
        "--run-id",
        "night",
        "--out",
        "all",
    ];
    let exported = folder.sandbox.run(both);
    let document: Value = serde_json::from_str(&exported.stdout).unwrap_or_else(|_| panic!("{exported}"));
    let derived = document["cases"][0]["case_id"].as_str().unwrap();
    assert!(derived.starts_with("case-refund1-"), "{document}");
    let expected = json!({"case_id": "refund_2", "run_id": "two", "status": "SUCCEEDED", "calls": 1, "refused": 0});
    assert_eq!((&document["folder"], &document["cases"][1]), (&json!("all/new/night"), &expected));
    assert_eq!(folder.sandbox.run(["validate", "all"]).code, Some(0));
    let again = folder.sandbox.run(both);
    assert_eq!(again.code, Some(2), "{again}");
    insta::assert_snapshot!(folder.sandbox.run(["export-run", "--ledger", "--side", "new"]), @r"
    exit code: 0
    --- stdout
    run folder: runs/new/two
    --- stderr
    the latest run: two
    refund_2: run two, SUCCEEDED, calls: 1, refused: 0
    cases: runs/ledger.cases.json
    ");
}

#[test]
fn options_that_do_not_fit_together_are_refused_with_a_hint() {
    let folder = GuardFolder::new();
    record(&folder, "one", two_calls);
    record(&folder, "two", two_calls);
    let refused: [&[&str]; 9] = [
        &["export-run", "log", "--side", "new", "--run-id", "x", "--run", "one"],
        &["export-run", "log", "--side", "new", "--run-id", "x", "--json"],
        &["export-run", "log", "--ledger", "--side", "new"],
        &["export-run", "--ledger", "--events", "log", "--side", "new"],
        &["export-run", "--ledger", "--side", "new", "--run", "one", "--run", "one", "--run-id", "x"],
        &["export-run", "--ledger", "--side", "new", "--run", "one", "--run", "two"],
        &["export-run", "--ledger", "--side", "new", "--run", "one", "--run", "two", "--run-id", "x", "--case-id", "y"],
        &["export-run", "--ledger", "--side", "new", "--run", "other"],
        &["ledger", "export", "--run", "other"],
    ];
    for arguments in refused {
        let finished = folder.sandbox.run(arguments);
        assert_eq!(finished.code, Some(2), "{arguments:?}: {finished}");
        assert!(finished.stderr.contains("hint: "), "{arguments:?}: {finished}");
    }
    // These belong to the other command.
    for option in ["--side=new", "--run-id=x", "--case-id=x"] {
        assert_eq!(folder.sandbox.run(["ledger", "export", option]).code, Some(2), "{option}");
    }
    // The command of the hint works as written.
    let named = ["export-run", "--ledger", "state/counterproof/ledger.db", "--side", "new", "--run", "other"];
    let hint = "hint: list the runs with `counterproof ledger runs --ledger state/counterproof/ledger.db`\n";
    let unknown = folder.sandbox.run(named);
    assert!(unknown.stderr.ends_with(hint), "{unknown}");
    let same = ["export-run", "--ledger", "--side", "new", "--run", "one", "--run", "two", "--run-id", "x"];
    insta::assert_snapshot!(folder.sandbox.run(same), @r"
    exit code: 2
    --- stderr
    error: the runs `one` and `two` have the same case id `shopper`
    hint: export them separately, each with its own `--run-id`, and pass all folders to `compare`; or record each case with `counterproof guard run --case ID`
    ");
    assert!(!folder.sandbox.path("runs/new/x").exists());
}

#[test]
fn the_latest_run_that_is_exported_has_calls_or_an_agent() {
    let folder = GuardFolder::new();
    let probe = |run: &str| record(&folder, run, |_| {});
    probe("probe-1");
    let refused = folder.sandbox.run(["export-run", "--ledger", "--side", "new"]);
    insta::assert_snapshot!(refused.redact(folder.sandbox.root().as_str(), "FOLDER"), @r"
    exit code: 2
    --- stderr
    error: none of the latest 100 runs of the ledger `FOLDER/state/counterproof/ledger.db` has calls or an agent
    hint: record one with `counterproof guard run`, or name a run of `counterproof ledger runs` with `--run`
    ");
    assert!(!folder.sandbox.path("runs").exists());
    record(&folder, "one", two_calls);
    probe("probe-2");
    probe("probe-3");
    let latest = folder.sandbox.run(["export-run", "--ledger", "--side", "new"]);
    assert_eq!((latest.code, latest.stdout.as_str()), (Some(0), "run folder: runs/new/one\n"), "{latest}");
    assert!(latest.stderr.contains("the latest run with calls or an agent: one; newer runs without: 2\n"), "{latest}");
    // A person may name any run.
    let probe = export(&folder, "new", "probe-1");
    let warning = "warning: the run `probe-1` has no tool calls: the agent called no tool of the servers behind the guard\nhint: ";
    assert_eq!((probe.code, probe.stderr.starts_with(warning)), (Some(0), true), "{probe}");
}

#[test]
fn parallel_exports_lose_no_case() {
    let sandbox = Sandbox::new();
    let event = |run: usize, kind: &str, seq: u64| {
        let fields = json!({"status": "SUCCEEDED"});
        let source = json!({"shim_id": "s"});
        let event = json!({"type": kind, "ts": format!("2026-01-31T12:00:0{seq}Z"), "run_id": format!("run-{run}"), "seq": seq,
            "agent_id": format!("agent-{run}"), "source": source, "run": fields});
        format!("{event}\n")
    };
    let events = (0..8).map(|run| event(run, "run_start", 1) + &event(run, "run_end", 2));
    let sandbox = sandbox.with_file("events", &events.collect::<String>());
    let sandbox = sandbox.with_variable("COUNTERPROOF_LEDGER", "ledger.db");
    assert_eq!(sandbox.run(["ledger", "ingest", "events"]).code, Some(0));
    let exports: Vec<_> = (0..8)
        .map(|run| {
            let run = format!("run-{run}");
            let mut command = sandbox.command(["export-run", "--ledger", "--side", "new", "--run", &run]);
            command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap()
        })
        .collect();
    for mut export in exports {
        assert!(export.wait().unwrap().success());
    }
    let cases = sandbox.json("runs/ledger.cases.json");
    let ids: Vec<_> = cases.as_array().unwrap().iter().map(|case| case["id"].clone()).collect();
    assert_eq!(json!(ids), json!((0..8).map(|run| format!("agent-{run}")).collect::<Vec<_>>()));
}

#[test]
fn a_damaged_cases_file_is_reported_before_anything_is_exported() {
    let folder = GuardFolder::new().with_file("runs/ledger.cases.json", "{}");
    record(&folder, "one", two_calls);
    let refused = export(&folder, "new", "one");
    assert_eq!(refused.code, Some(3), "{refused}");
    assert!(refused.stderr.contains("hint: nothing was exported; correct this file, or rename it"), "{refused}");
    assert!(!folder.sandbox.path("runs/new").exists());
}

#[test]
fn events_do_not_replace_the_files_of_the_ledger() {
    let folder = GuardFolder::new();
    record(&folder, "one", two_calls);
    let spool = folder.sandbox.path("state/counterproof/ledger.db.spool");
    counterproof_store::write::create_folder(&spool).unwrap();
    let files = ["ledger.db", "../counterproof/ledger.db", "ledger.db-wal", "ledger.db-shm", "ledger.db.spool/a.jsonl"];
    for file in files {
        let export = folder.sandbox.run(["ledger", "export", "--out", &format!("state/counterproof/{file}")]);
        assert_eq!(export.code, Some(2), "{file}: {export}");
        assert!(export.stderr.contains("is a file of the ledger"), "{export}");
    }
    assert_eq!(folder.sandbox.run(["ledger", "query", "--run", "one"]).stdout.lines().count(), 3);
    assert_eq!(folder.sandbox.run(["ledger", "export", "--out", "events.out"]).code, Some(0));
}

#[test]
fn the_page_of_guarded_runs_shows_texts_of_agents_as_texts() {
    let folder = GuardFolder::new();
    record(&folder, "one", |client| {
        client.call("find", &json!({"text": "<script>alert(1)</script>"}));
        client.call("buy", &json!({"sku": "lamp", "amount": 1}));
    });
    let written = folder.sandbox.run(["ledger", "export", "--html", "page"]);
    assert_eq!((written.code, written.stdout.as_str()), (Some(0), "2 calls: page/index.html\n"), "{written}");
    let page = fs::read_to_string(folder.sandbox.path("page/index.html")).unwrap();
    assert!(page.contains("None of 2 calls was refused in 1 run") && !page.contains("<script"), "{page}");
    assert!(page.contains("&#60;script&#62;alert(1)"), "{page}");
    let again = folder.sandbox.run(["ledger", "export", "--html", "page", "--run", "missing"]);
    assert_eq!(again.code, Some(2), "{again}");
}
