//! Contracts as a user works with them: the example of the contract schema, many contracts, refusals, and two nights.

use std::process::Command;

use serde_json::{Value, json};

use crate::contract_kit::{BAD, GOOD, Project, simple};

/// The example of the contract schema.
fn example() -> Value {
    serde_json::from_str(include_str!("../../../contracts/tests/example.json")).unwrap()
}

/// A repository whose package `memory` has a leak and no test of it.
fn leaking() -> Project {
    let project = Project::new();
    project.put("Cargo.toml", "[workspace]\nresolver = \"2\"\nmembers = [\"memory\"]\n");
    let manifest = "[package]\nname = \"memory\"\nversion = \"0.1.0\"\nedition = \"2021\"\n\n[lib]\npath = \"../src/memory/pool.rs\"\n\n\
                    [[test]]\nname = \"pool_test\"\npath = \"../src/memory/pool_test.rs\"\n";
    project.put("memory/Cargo.toml", manifest);
    project.put("src/memory/pool.rs", "pub fn release(pool: &mut Vec<u8>) { pool.push(0); }\n");
    project.put("src/memory/pool_test.rs", "");
    project.put("README", "kept\n");
    // The lock file, and a first build, so that the check itself is quick.
    let built = Command::new(env!("CARGO"))
        .args(["test", "--quiet", "--offline", "-p", "memory"])
        .env_remove("CARGO_TARGET_DIR")
        .current_dir(project.sandbox.root())
        .output()
        .unwrap();
    assert!(built.status.success(), "{}", String::from_utf8_lossy(&built.stderr));
    project.commit();
    project
}

/// An agent that writes this body of `release`, and a test of it.
fn agent(body: &str) -> String {
    let test =
        "#[test]\nfn releases() { let mut pool = vec![1, 2]; memory::release(&mut pool); assert!(pool.is_empty()); }";
    format!(
        "printf 'pub fn release(pool: &mut Vec<u8>) {{ {body} }}\\n' > src/memory/pool.rs\n\
         cat > src/memory/pool_test.rs <<'END'\n{test}\nEND\n\
         test \"$PORT\" -ge 3200 && test \"$PORT\" -le 3299 || exit 1\n\
         echo '{{\"modified_files\": [\"src/memory/pool.rs\", \"src/memory/pool_test.rs\"], \"test_coverage\": true}}'"
    )
}

#[test]
fn the_example_fails_is_rolled_back_and_is_met_after_a_fix() {
    let project = leaking();
    let sandbox = &project.sandbox;
    let id = "qwer-q/fix-memory-leak/001";
    let text = example().to_string();
    project.put(".counterproof/example.json", &text);
    let validated = project.contract(&["validate", ".counterproof/example.json"]);
    assert_eq!((validated.code, validated.stdout.as_str()), (Some(0), "1 file is valid\n"));
    let added = project.add(&example());
    assert_eq!(added.code, Some(0), "{added}");
    assert!(added.stderr.contains("depends on `qwer-q/setup-test-env/001`, which is not in the store"), "{added}");
    assert_eq!(project.state(id), "pending");
    let setup = simple("qwer-q/setup-test-env/001", &[]);
    assert_eq!(project.add(&setup).code, Some(0));
    assert_eq!(project.add(&example()).code, Some(0));
    assert_eq!(project.state(id), "pending");
    assert_eq!(project.contract(&["run", "qwer-q/setup-test-env/001", "--agent-cmd", GOOD]).code, Some(0));
    assert_eq!(project.state(id), "ready");

    let failed = project.contract(&["run", id, "--agent-cmd", &agent("pool.push(1);"), "--wait", "1m"]);
    assert_eq!(failed.code, Some(1), "{failed}");
    assert!(failed.stderr.contains("verification: the command ended with exit code 101"), "{failed}");
    assert!(failed.stderr.contains("rolled back: discarded 2 changed files"), "{failed}");
    assert_eq!(project.state(id), "rolled_back");
    assert_eq!(project.git(&["status", "--porcelain"]), "", "the repository is as it was");
    let saved = "refs/counterproof/rollback/qwer-q%2Ffix-memory-leak%2F001/1";
    assert!(project.git(&["show", &format!("{saved}:src/memory/pool.rs")]).contains("pool.push(1);"));

    let again = project.contract(&["run", id, "--agent-cmd", &agent("pool.clear();")]);
    assert!(again.code == Some(2) && again.stderr.contains("add a new version to run it again"), "{again}");
    let mut second = example();
    second["version"] = json!(2);
    assert_eq!(project.add(&second).code, Some(0));
    let met = project.contract(&["run", id, "--agent-cmd", &agent("pool.clear();"), "--wait", "1m"]);
    assert_eq!(met.code, Some(0), "{met}");
    let history = project.json(&["history", id]);
    let steps = |version: usize| -> Vec<String> {
        let events = history["versions"][version]["events"].as_array().unwrap();
        events.iter().map(|event| event["transition"]["to"].as_str().unwrap().to_owned()).collect()
    };
    assert_eq!(steps(0), ["ready", "claimed", "executing", "verifying", "failed", "rolling_back", "rolled_back"]);
    assert_eq!(steps(1), ["ready", "claimed", "executing", "verifying", "completed"]);
    let completed = &history["versions"][1]["events"][4]["transition"]["details"]["verification"];
    assert_eq!(completed["artifacts"].as_array().unwrap().len(), 2);
    for file in completed["evidence"].as_array().unwrap() {
        assert!(sandbox.path(".counterproof/contracts.jsonl.files").join(file.as_str().unwrap()).is_file());
    }
    let shown = project.contract(&["history", id]);
    assert!(shown.stdout.contains("verifying → failed") && shown.stdout.contains("verifying → completed"), "{shown}");
}

#[test]
fn many_contracts_run_in_the_order_of_their_dependencies_and_a_failure_blocks_only_its_dependents() {
    let project = Project::new();
    for (id, dependencies) in [("d", &["b", "c"][..]), ("b", &["a"]), ("c", &["a"]), ("a", &[]), ("free", &[])] {
        project.put(&format!(".counterproof/in/{id}.json"), &simple(id, dependencies).to_string());
    }
    let files = ["d", "b", "c", "a", "free"].map(|id| format!(".counterproof/in/{id}.json"));
    let arguments: Vec<&str> = std::iter::once("add").chain(files.iter().map(String::as_str)).collect();
    assert_eq!(project.contract(&arguments).code, Some(0));
    let plan = project.json(&["run", "--all", "--dry-run", "--agent-cmd", GOOD]);
    let planned: Vec<&str> =
        plan["contracts"].as_array().unwrap().iter().map(|it| it["id"].as_str().unwrap()).collect();
    assert_eq!((planned, &plan["possible"]), (vec!["a", "free", "b", "c", "d"], &json!(true)));
    assert_eq!(project.state("a"), "ready", "a plan changes nothing");
    let agent = "case $COUNTERPROOF_CONTRACT_ID in b) echo '{\"ok\": false}';; *) echo '{\"ok\": true}';; esac";
    let finished = project.contract(&["run", "--all", "--jobs", "3", "--agent-cmd", agent, "--json"]);
    assert_eq!(finished.code, Some(1), "{finished}");
    let result: Value = serde_json::from_str(&finished.stdout).unwrap();
    let ends: Vec<(String, String)> = result["contracts"]
        .as_array()
        .unwrap()
        .iter()
        .map(|it| (it["id"].as_str().unwrap().to_owned(), it["result"].as_str().unwrap().to_owned()))
        .collect();
    let expected = [("a", "met"), ("free", "met"), ("b", "not met"), ("c", "met"), ("d", "blocked")];
    assert_eq!(ends, expected.map(|(id, end)| (id.to_owned(), end.to_owned())));
    assert_eq!(project.state("d"), "pending");
}

#[test]
fn two_nights_of_contracts_can_be_compared_and_a_contract_that_is_no_longer_met_fails_the_gate() {
    let project = Project::new();
    project.put(".counterproof/in.jsonl", &format!("{}\n{}\n", simple("a", &[]), simple("b", &[])));
    for (store, side, agent) in [
        (".counterproof/1.jsonl", "baseline", GOOD.to_owned()),
        (".counterproof/2.jsonl", "new", format!("test $COUNTERPROOF_CONTRACT_ID = a && {GOOD} || {BAD}")),
    ] {
        let added = project.contract(&["--store", store, "add", ".counterproof/in.jsonl"]);
        assert_eq!(added.code, Some(0), "{added}");
        let run = project.contract(&["--store", store, "run", "--all", "--side", side, "--agent-cmd", &agent]);
        assert_eq!(run.code, Some(i32::from(side == "new")), "{run}");
    }
    let valid = project.sandbox.run(["validate", "runs"]);
    assert_eq!(valid.code, Some(0), "{valid}");
    project.put("counterproof.toml", "[agent]\ndeterministic = true\n");
    let compared = project.sandbox.run(["compare", "--cases", "runs/contracts.cases.json"]);
    assert_eq!(compared.code, Some(1), "{compared}");
    let evaluation = project.sandbox.json("report/evaluation.json");
    let verdicts: Vec<(&str, &str)> = evaluation["cases"]
        .as_array()
        .unwrap()
        .iter()
        .map(|case| (case["case_id"].as_str().unwrap(), case["verdict"].as_str().unwrap()))
        .collect();
    assert_eq!(verdicts, [("a", "unchanged"), ("b", "regressed")]);
    let page = std::fs::read_to_string(project.sandbox.path("report/cases/b.html")).unwrap();
    assert!(page.contains("assertion not met: output.ok"), "the report shows why the contract is not met");
}

#[test]
fn every_refusal_has_its_own_code() {
    let project = Project::new();
    let code = |arguments: &[&str]| {
        let finished = project.contract(&[arguments, &["--json"]].concat());
        let document: Value =
            serde_json::from_str(&finished.stdout).unwrap_or_else(|error| panic!("{error}: {finished}"));
        (finished.code.unwrap(), document["error"]["code"].as_str().unwrap_or_default().to_owned())
    };
    let refused = |code: &str| (2, code.to_owned());
    project.put("ab.jsonl", &format!("{}\n{}\n", simple("a", &["b"]), simple("b", &["a"])));
    assert_eq!(code(&["add", "ab.jsonl"]), refused("circular_dependency"));
    project.put("c.json", &simple("c", &[]).to_string());
    assert_eq!(project.contract(&["add", "c.json"]).code, Some(0));
    assert_eq!(code(&["show", "none"]), refused("not_found"));
    let transition = |to, actor| code(&["transition", "c", "--to", to, "--actor", actor, "--reason", "test"]);
    assert_eq!(transition("completed", "human:ada"), refused("invalid_transition"));
    assert_eq!(transition("ready", "system"), refused("not_allowed"));
    assert_eq!(project.contract(&["claim", "c", "--owner", "old"]).code, Some(0));
    assert_eq!(transition("ready", "agent:old").0, 0);
    assert_eq!(project.contract(&["claim", "c", "--owner", "new"]).code, Some(0));
    assert_eq!(transition("executing", "agent:old"), refused("not_owner"));
    let run = project.json(&["run", "c", "--agent-cmd", GOOD]);
    assert_eq!(run["contracts"][0]["code"], "not_owner", "{run}");
    assert_eq!(transition("cancelled", "agent:new"), refused("not_allowed"));
    project.put("c2.json", &simple("c", &[]).to_string().replace("\"version\":1", "\"version\":3"));
    assert_eq!(code(&["add", "c2.json"]), refused("version_conflict"));
    project.put(".counterproof/contracts.jsonl", "{\"id\":\n");
    assert_eq!(code(&["list"]), (3, "store_corrupt".to_owned()));
}

#[test]
fn a_check_that_stops_its_supervisor_ends_at_its_time_limit() {
    let project = Project::new();
    let mut contract = simple("a", &[]);
    contract["verification"] = json!({"command": "kill -STOP $PPID; exec sleep 4724", "timeout_ms": 500});
    project.add(&contract);
    let run = project.contract(&["run", "a", "--agent-cmd", GOOD]);
    assert_eq!(run.code, Some(1), "{run}");
    assert!(run.stderr.contains("did not end within its time limit"), "{run}");
}

#[test]
fn a_person_approves_what_was_verified_and_the_status_shows_what_needs_a_decision() {
    let project = Project::new();
    let mut contract = simple("a", &[]);
    contract["input"]["constraints"] = json!({"requires_approval": true});
    project.add(&contract);
    project.add(&simple("b", &[]));
    let run = project.contract(&["run", "--all", "--agent-cmd", GOOD]);
    assert_eq!(run.code, Some(1), "{run}");
    assert!(run.stderr.contains("needs approval"), "{run}");
    let status = project.contract(&["status"]);
    assert!(status.stdout.starts_with("Needs a decision (1)\n"), "{status}");
    let page = project.contract(&["status", "--html", "room"]);
    assert_eq!(page.stdout, "control room: room/index.html\n");
    let html = std::fs::read_to_string(project.sandbox.path("room/index.html")).unwrap();
    assert!(html.contains("default-src 'none'") && !html.contains("<script"), "{html}");
    let approved = project.contract(&["approve", "a", "--reason", "looks right"]);
    assert!(approved.stdout.contains("verifying → completed  by human:ada: looks right"), "{approved}");
    assert_eq!(project.contract(&["reject", "b", "--reason", "x"]).code, Some(2), "it has ended");
    let graph = project.contract(&["graph", "--format", "mermaid"]);
    assert!(graph.code == Some(0) && graph.stdout.contains("flowchart"), "{graph}");
}

#[test]
fn the_control_room_has_the_failed_assertion_the_evidence_and_commands_that_run_as_they_are() {
    let project = Project::new();
    let (store, agent) = (".counterproof/my store.jsonl", BAD);
    project.put("a.json", &simple("a", &[]).to_string());
    assert_eq!(project.contract(&["--store", store, "add", "a.json"]).code, Some(0));
    let run = project.contract(&["--store", store, "run", "a", "--agent-cmd", agent, "--no-rollback"]);
    assert_eq!(run.code, Some(1), "{run}");
    let room = project.json(&["--store", store, "status"]);
    let item = &room["tiers"][1]["items"][0];
    let reason = item["attention"]["message"].as_str().unwrap();
    assert!(reason.starts_with("output.ok: assertion not met, output is "), "{item}");
    let text = project.contract(&["--store", store, "status"]).stdout;
    assert!(text.contains(reason), "{text}");
    assert_eq!(project.contract(&["--store", store, "status", "--html", "out/room"]).code, Some(0));
    let page = std::fs::read_to_string(project.sandbox.path("out/room/index.html")).unwrap();
    assert!(page.contains("output.ok: assertion not met, output is ") && page.contains("graph.html#c0"), "{page}");
    let link = "../../.counterproof/my%20store.jsonl.files/a/v1/1/verification.json";
    assert!(page.contains(&format!("href=\"{link}\"")), "{page}");
    assert!(project.sandbox.path(".counterproof/my store.jsonl.files/a/v1/1/verification.json").exists());
    let graph = std::fs::read_to_string(project.sandbox.path("out/room/graph.html")).unwrap();
    assert!(graph.contains("index.html#contract-a"), "{graph}");
    let reject = item["commands"][1]["command"].as_str().unwrap();
    let words = shell_words::split(reject).unwrap();
    let rejected = project.sandbox.run(&words[1..]);
    assert!(rejected.code == Some(0) && rejected.stdout.contains("failed → cancelled"), "{rejected}");
}

#[test]
fn an_agent_that_works_on_its_own_is_verified_from_its_output_file() {
    let project = Project::new();
    project.add(&simple("a", &[]));
    project.put("out.json", "{\"ok\": true}");
    assert_eq!(project.contract(&["claim", "a", "--owner", "claude"]).code, Some(0));
    let started = ["transition", "a", "--to", "executing", "--actor", "agent:claude", "--reason", "starting"];
    assert_eq!(project.contract(&started).code, Some(0));
    let foreign = project.contract(&["run", "a", "--output", "out.json"]);
    assert!(foreign.code == Some(2) && foreign.stderr.contains("its owner is `claude`"), "{foreign}");
    let met = project.contract(&["run", "a", "--output", "out.json", "--owner", "claude"]);
    assert_eq!((met.code, project.state("a").as_str()), (Some(0), "completed"), "{met}");
}

#[test]
fn secrets_are_masked_in_everything_that_a_run_stores() {
    let project = Project::new();
    let secret = "kiwi-marmalade-4711";
    let mut contract = simple("a", &[]);
    contract["verification"]["command"] = json!("echo \"$TOKEN\"; echo \"$TOKEN\" >&2; false");
    contract["output"]["schema"] = json!({"ok": "boolean", "note": "string"});
    project.add(&contract);
    let agent = "echo \"{\\\"ok\\\": true, \\\"note\\\": \\\"$TOKEN\\\"}\"";
    let mut command = project.sandbox.command(["contract", "run", "a", "--agent-cmd", agent, "--redact-env", "TOKEN"]);
    let output = command.env("TOKEN", secret).output().unwrap();
    assert_eq!(output.status.code(), Some(1));
    let printed = [output.stdout, output.stderr].concat();
    assert!(!String::from_utf8_lossy(&printed).contains(secret));
    let mut files = 0;
    for (path, bytes) in counterproof_tests::files_below(project.sandbox.root()) {
        assert!(!bytes.windows(secret.len()).any(|part| part == secret.as_bytes()), "{path}");
        files += 1;
    }
    assert!(files > 10);
}
