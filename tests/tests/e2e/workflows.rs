//! `counterproof workflow`: tasks are done in a copy of a repository, and go on from any checkpoint.

use counterproof_tests::workflow_model::{TARGET, Turn, answer, call, calling, feature, mending};
use counterproof_tests::{ModelAnswer, files_below};
use serde_json::{Value, json};

use crate::workflow_kit::{Kit, document};

fn keys(value: &Value) -> Vec<&str> {
    value.as_object().unwrap().keys().map(String::as_str).collect()
}

#[test]
fn a_failing_test_is_fixed_in_a_pull_request_and_the_repository_is_not_touched() {
    let kit = Kit::new(mending());
    let before = files_below(&kit.sandbox.path("repo"));
    let run = kit.run(&kit.fix(), &[]);
    assert_eq!(run.code, Some(0), "{run:?}");
    let result = document(&run);
    let expected = ["workflow", "status", "pr_url", "ci_status", "test_results", "capture", "error", "session"];
    assert_eq!(keys(&result), expected);
    assert_eq!(result["workflow"], "fix_failing_test");
    assert_eq!(
        (&result["status"], &result["ci_status"], &result["error"]),
        (&json!("success"), &json!("pass"), &Value::Null)
    );
    assert_eq!(result["test_results"], json!({"target_test": "pass", "regression_tests": "pass", "new_failures": []}));
    assert_eq!((&result["capture"]["total_llm_calls"], &result["capture"]["total_tool_calls"]), (&json!(5), &json!(5)));
    assert_eq!(result["capture"]["total_tokens"], 550);
    let (record, tree) = kit.pull_request(&result);
    assert_eq!(record["base"], "main");
    assert_eq!(record["ci"][0]["status"], "pass");
    assert!(record["body"].as_str().unwrap().contains(TARGET), "{record}");
    let names: Vec<&str> = tree.lines().map(|line| line.split('\t').nth(1).unwrap()).collect();
    assert_eq!(names, [".gitignore", "calc.py", "test_calc.py"]);
    assert_eq!(files_below(&kit.sandbox.path("repo")), before);
    let (of_session, session) = (&result["session"], result["capture"]["session_id"].as_str().unwrap());
    assert_eq!((&of_session["status"], &of_session["warnings"]), (&json!("completed"), &json!([])));
    assert_eq!((&of_session["resume"], &of_session["uncommitted"]), (&Value::Null, &Value::Null));
    let mut fetch = std::process::Command::new("sh");
    fetch.args(["-c", of_session["fetch"].as_str().unwrap()]).env("GIT_PAGER", "cat");
    let fetch = fetch.current_dir(kit.sandbox.path("repo")).output().unwrap();
    assert!(String::from_utf8_lossy(&fetch.stdout).contains("+    return a + b"), "{fetch:?}");
    let events = kit.events(session);
    let transitions: Vec<&Value> = events.iter().filter(|event| event["type"] == "state_transition").collect();
    let states: Vec<&str> = transitions.iter().map(|it| it["to_state"].as_str().unwrap()).collect();
    let expected = "checkout reproduce baseline localise understand edit target_test suite lint contract commit push pull_request ci \
                    succeeded";
    assert_eq!(states.join(" "), expected);
    assert_eq!(transitions[0]["from_state"], "created");
    for pair in transitions.windows(2) {
        assert_eq!(pair[0]["to_state"], pair[1]["from_state"]);
    }
    for kind in ["llm_call", "tool_call", "state_transition", "checkpoint", "file_operation", "command"] {
        assert!(events.iter().any(|event| event["type"] == kind), "{kind}");
    }
    let overview = kit.query(&["overview", session]);
    assert_eq!((&overview["status"], &overview["errors"]), (&json!("completed"), &json!([])));
    // The test and the suite fail before the change, as they must, and no other command fails.
    let failed = events.iter().filter(|event| event["exit_code"].as_i64().is_some_and(|code| code != 0));
    let expected: Vec<bool> = failed.map(|event| event["expected_failure"] == true).collect();
    assert_eq!(expected, [true, true]);
}

/// The repository has a test that fails before and after the change.
#[test]
fn a_feature_is_implemented_with_its_tests() {
    let kit = Kit::new(feature());
    let run = kit.run(&kit.implement(), &[]);
    assert_eq!(run.code, Some(0), "{run:?}");
    let result = document(&run);
    let expected = json!({"files_created": ["test_triple.py"], "files_modified": ["calc.py"], "tests_added": 1,
        "lines_added": 12, "lines_removed": 0});
    assert_eq!(result["implementation"], expected);
    let (record, _) = kit.pull_request(&result);
    let stat = kit.git(
        record["repository"].as_str().unwrap(),
        &["diff", "--numstat", record["base_commit"].as_str().unwrap(), record["head_commit"].as_str().unwrap()],
    );
    assert_eq!(stat, "4\t0\tcalc.py\n8\t0\ttest_triple.py");
}

#[test]
fn a_test_that_passes_or_does_not_exist_needs_no_model() {
    let kit = Kit::new(mending());
    let mut arguments = kit.fix();
    for (test, kind, target) in [
        ("test_calc.Calc.test_double", "test_passes_already", json!("pass")),
        ("test_calc.Calc.test_none", "test_not_found", Value::Null),
    ] {
        arguments[6] = test.to_owned();
        let run = kit.run(&arguments, &[]);
        assert_eq!(run.code, Some(1), "{run:?}");
        let result = document(&run);
        assert_eq!((&result["error"]["kind"], &result["test_results"]["target_test"]), (&json!(kind), &target));
        assert_eq!((&result["pr_url"], &result["test_results"]["new_failures"]), (&Value::Null, &Value::Null));
        let is_shown = run.stderr.contains("    AttributeError: type object 'Calc' has no attribute 'test_none'");
        assert_eq!(is_shown, kind == "test_not_found", "{run:?}");
    }
    arguments[6] = "test_clac.py".to_owned();
    let run = kit.run(&arguments, &[]);
    assert!(run.code == Some(2) && run.stderr.contains("the repository has no file `test_clac.py`"), "{run:?}");
    assert!(kit.server.requests().is_empty());
}

#[test]
fn a_weakened_test_is_not_pushed() {
    let weaken = json!({"path": "test_calc.py", "old_string": "self.assertEqual(add(2, 3), 5)", "new_string": "pass"});
    let kit = Kit::new(vec![call("edit", weaken), Turn::Text("It passes now.")]);
    let run = kit.run(&kit.fix(), &[]);
    assert_eq!(run.code, Some(1), "{run:?}");
    let result = document(&run);
    assert_eq!((&result["error"]["kind"], &result["pr_url"]), (&json!("test_tampered"), &Value::Null));
    assert_eq!(result["test_results"], json!({"target_test": "fail", "regression_tests": null, "new_failures": null}));
    // Its end is final, and a checkpoint before the change is named.
    let newest = result["session"]["checkpoint_id"].as_str().unwrap();
    let forked = kit.session(&["fork", newest]);
    assert!(forked.code == Some(2) && forked.stderr.contains("a fork of the checkpoint could never run"), "{forked:?}");
    let list = format!("counterproof session checkpoints {} --ledger ", result["session"]["id"].as_str().unwrap());
    assert!(forked.stderr.contains(&list), "{forked:?}");
    let earlier =
        run.stderr.split("an earlier checkpoint can be resumed: `counterproof session resume ").nth(1).unwrap();
    assert!(earlier.contains(" --ledger "), "{run:?}");
    let earlier = earlier.split(' ').next().unwrap();
    let found = kit.checkpoints(result["session"]["id"].as_str().unwrap());
    assert!(found.iter().any(|it| it["checkpoint_id"] == earlier), "{earlier} {found:?}");
    assert_eq!(kit.session(&["fork", earlier]).code, Some(0));
}

#[test]
fn no_test_file_may_be_weakened_where_that_of_the_target_is_not_known() {
    let weaken = json!({"path": "test_calc.py", "old_string": "self.assertEqual(add(2, 3), 5)", "new_string": "pass"});
    for (turns, kind) in
        [(vec![call("edit", weaken), Turn::Text("It passes now.")], json!("test_tampered")), (mending(), Value::Null)]
    {
        let kit = Kit::new(turns);
        let mut arguments = kit.fix();
        arguments[6] = "sum of 2 and 3".to_owned();
        // A runner that names no test.
        arguments[12] = "python3 -m unittest -q >/dev/null 2>&1 # {test}".to_owned();
        let run = kit.run(&arguments, &[]);
        assert!(run.stderr.contains("the file of the test is not known"), "{run:?}");
        assert!(run.stderr.contains("have to stay as they are: test_calc.py"), "{run:?}");
        assert_eq!(document(&run)["error"]["kind"], kind, "{run:?}");
    }
}

#[test]
fn budgets_and_red_checks_end_a_run_with_their_kind() {
    let idle = || vec![Turn::Text("I did nothing.")];
    for (turns, more, kind) in [
        (idle(), ["--max-iterations", "2"], "target_still_fails"),
        (mending(), ["--max-turns", "2"], "budget_turns"),
        (mending(), ["--max-tokens", "150"], "budget_tokens"),
        (mending(), ["--ci-cmd", "exit 1"], "ci_failed"),
    ] {
        let kit = Kit::new(turns);
        let run = kit.run(&kit.fix(), &more);
        assert_eq!((run.code, &document(&run)["error"]["kind"]), (Some(1), &json!(kind)), "{run:?}");
    }
}

#[test]
fn a_hostile_model_changes_nothing_outside_and_ends_with_a_kind() {
    let outside = "for f in ../../../outside ../../../repo/evil; do echo x > $f; done";
    let turns = [
        json!({"name": "read", "arguments": {"path": "/etc/passwd"}}),
        json!({"name": "write", "arguments": {"path": "../outside", "content": "x"}}),
        json!({"name": "write", "arguments": {"path": ".git/hooks/post-checkout", "content": "#!/bin/sh\ntouch ../outside"}}),
        json!({"name": "shell", "arguments": {"command": outside}}),
        json!({"name": "shell", "arguments": {"command": "ln -s /etc link; mkdir .git/hooks; printf '[core]\\nfsmonitor = touch ../outside\\n' >> .git/config"}}),
        json!({"name": "write", "arguments": {"path": "link/outside", "content": "x"}}),
        json!({"name": "shell", "arguments": {"command": "setsid sh -c 'sleep 1000' & yes | head -c 1000000000"}}),
        json!({"name": "destroy", "arguments": {}}),
        json!({"name": "read", "arguments": "no object"}),
    ];
    let count = turns.len();
    let kit = Kit::answering(move |_, request| {
        let body = request.json();
        let results = body["messages"].as_array().unwrap().iter().filter(|message| message["role"] == "tool").count();
        let turn = &turns[results % turns.len()];
        let arguments = turn["arguments"].as_str().map_or_else(|| turn["arguments"].to_string(), str::to_owned);
        calling(turn["name"].as_str().unwrap(), &arguments, &body)
    });
    let before = files_below(&kit.sandbox.path("repo"));
    let run = kit.run(&kit.fix(), &["--max-turns", &(count + 2).to_string()]);
    assert_eq!(run.code, Some(1), "{run:?}");
    let result = document(&run);
    assert_eq!((&result["error"]["kind"], &result["pr_url"]), (&json!("budget_turns"), &Value::Null));
    assert_eq!(files_below(&kit.sandbox.path("repo")), before);
    assert!(!kit.sandbox.path("outside").exists());
    let session = result["capture"]["session_id"].as_str().unwrap();
    let calls: Vec<Value> = kit.events(session).into_iter().filter(|event| event["type"] == "tool_call").collect();
    assert_eq!(calls.len(), count + 2);
    let succeeded: Vec<u64> =
        (0..).zip(&calls).filter(|(_, it)| it["result"]["success"] == true).map(|(at, _)| at).collect();
    assert_eq!(succeeded, [4], "{calls:#?}");
}

#[test]
fn another_agent_does_the_work_and_its_model_calls_are_recorded() {
    let kit = Kit::new(vec![Turn::Text("Use a plus.")]);
    let agent = r#"python3 -c '
import json, os, sys, urllib.request
assert "test_add" in sys.stdin.read() and "test_add" in os.environ["COUNTERPROOF_TASK"]
body = json.dumps({"model": "m", "messages": [{"role": "user", "content": "how?"}]}).encode()
request = urllib.request.Request(os.environ["OPENAI_BASE_URL"] + "/chat/completions", body, {"Content-Type": "application/json"})
print(json.load(urllib.request.urlopen(request))["choices"][0]["message"]["content"])
code = open("calc.py").read()
open("calc.py", "w").write(code.replace("a - b", "a + b"))
'"#;
    let run = kit.run(&kit.fix(), &["--agent-cmd", agent]);
    assert_eq!(run.code, Some(0), "{run:?}");
    let result = document(&run);
    assert_eq!((&result["status"], &result["capture"]["total_llm_calls"]), (&json!("success"), &json!(1)));
    let (record, _) = kit.pull_request(&result);
    assert!(record["body"].as_str().unwrap().contains("```text\nUse a plus.\n```"), "{record}");
    assert_eq!(record["title"], format!("Fix {TARGET}"));
    let events = kit.events(result["capture"]["session_id"].as_str().unwrap());
    let command = events.iter().find(|event| event["command"] == agent).unwrap();
    assert_eq!((&command["type"], &command["exit_code"]), (&json!("command"), &json!(0)));
    assert!(command["stdout"] == "Use a plus.\n" && command["latency_ms"].is_u64(), "{command}");
}

#[test]
fn an_agent_without_a_model_is_paused_while_it_runs_and_goes_on() {
    let kit = Kit::new(Vec::new());
    let mut arguments = kit.fix();
    arguments.drain(7..11);
    for (more, missing) in [
        (&["--model", "m"][..], "`--model-url URL` is missing"),
        (&["--model-url", "http://localhost:1/v1"], "`--model NAME` is missing"),
        (&[], "`--model-url URL` and `--model NAME` are missing"),
    ] {
        let run = kit.run(&arguments, more);
        assert!(run.code == Some(2) && run.stderr.contains(missing), "{run:?}");
    }
    let agent = "if [ -e ended ]; then rm started ended; sed -i 's/a - b/a + b/' calc.py; exit 0; fi
        trap 'touch ended; kill $!; exit 0' TERM; sleep 1000 & touch started; wait";
    arguments.extend(["--agent-cmd".to_owned(), agent.to_owned()]);
    let child = kit.start(&arguments);
    let workspaces = kit.sandbox.path("ledger.db.workspaces");
    let is_started = || {
        let files = walkdir::WalkDir::new(&workspaces).into_iter().filter_map(Result::ok);
        files.into_iter().any(|entry| entry.file_name() == "started")
    };
    while !is_started() {
        std::thread::sleep(std::time::Duration::from_millis(10));
    }
    let session = kit.query(&["list"])["sessions"][0]["session_id"].as_str().unwrap().to_owned();
    assert_eq!(kit.session(&["pause", &session]).code, Some(0));
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(4), "{output:?}");
    let result: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(result["error"]["kind"], "paused");
    assert_eq!(kit.query(&["overview", &session])["status"], "paused");
    let run = kit.resume(&session, &[]);
    assert_eq!(run.code, Some(0), "{run:?}");
    let (record, _) = kit.pull_request(&document(&run));
    assert!(
        record["body"].as_str().unwrap().contains("failed before the change, and passes with it. 1 file"),
        "{record}"
    );
    let commands = kit.events(&session).iter().filter(|event| event["command"] == agent).count();
    assert_eq!((commands, kit.server.requests().len()), (2, 0));
}

#[test]
fn the_reason_of_a_failure_is_shown_once() {
    let kit = Kit::new(vec![Turn::Text("I did nothing.")]);
    let run = kit.run(&kit.fix(), &["--max-iterations", "2"]);
    assert_eq!(run.code, Some(1), "{run:?}");
    let of = |line: &str| run.stderr.lines().filter(|found| *found == line).count();
    let reason = format!("the test `{TARGET}` still fails");
    assert_eq!(of("    AssertionError: -1 != 5"), 2, "{run:?}");
    // The first attempt is not the end.
    assert_eq!((of(&reason), of(&format!("failed: {reason}"))), (1, 1), "{run:?}");
}

/// Asks the model once for each number, and then mends the code.
fn asking_agent(requests: usize) -> String {
    format!(
        r#"python3 -c '
import json, os, sys, urllib.request
sys.stdin.read()
body = json.dumps({{"model": "m", "messages": [{{"role": "user", "content": "how?"}}]}}).encode()
headers = {{"Content-Type": "application/json", "Authorization": "Bearer " + os.environ["OPENAI_API_KEY"]}}
for _ in range({requests}):
    urllib.request.urlopen(urllib.request.Request(os.environ["OPENAI_BASE_URL"] + "/chat/completions", body, headers)).read()
code = open("calc.py").read()
open("calc.py", "w").write(code.replace("a - b", "a + b"))
open("keys.txt", "w").write(" ".join(os.environ.values()))
'"#
    )
}

#[test]
fn another_agent_never_has_the_key_and_its_requests_have_it() {
    let mut kit = Kit::new(vec![Turn::Text("Use a plus.")]);
    kit.sandbox = kit.sandbox.with_variable("OPENAI_API_KEY", "sk-the-real-key-of-the-user");
    let run = kit.run(&kit.fix(), &["--agent-cmd", &asking_agent(1)]);
    assert_eq!(run.code, Some(0), "{run:?}");
    assert_eq!(kit.server.requests()[0].header("authorization"), Some("Bearer sk-the-real-key-of-the-user"));
    let (record, tree) = kit.pull_request(&document(&run));
    assert!(tree.contains("keys.txt"), "{tree}");
    let head = format!("{}:keys.txt", record["head"].as_str().unwrap());
    let written = kit.git(record["repository"].as_str().unwrap(), &["show", &head]);
    assert!(written.contains("sk-0") && !written.contains("real-key"), "{written}");
}

#[test]
fn another_agent_may_send_exactly_as_many_requests_as_it_is_allowed() {
    for (requests, code, kind) in [(2, 0, Value::Null), (3, 1, json!("budget_turns"))] {
        let mut kit = Kit::new(vec![Turn::Text("Use a plus.")]);
        kit.sandbox = kit.sandbox.with_variable("OPENAI_API_KEY", "sk-the-real-key-of-the-user");
        let run = kit.run(&kit.fix(), &["--agent-cmd", &asking_agent(requests), "--max-turns", "2"]);
        assert_eq!(run.code, Some(code), "{run:?}");
        assert_eq!((&document(&run)["error"]["kind"], kit.server.requests().len()), (&kind, 2));
    }
}

#[test]
fn another_agent_gets_a_task_that_no_variable_can_hold() {
    let mut kit = Kit::new(Vec::new());
    let specification = format!("Add triple.\n{}", "\u{e9}".repeat(100_000));
    kit.sandbox = kit.sandbox.with_file("spec.md", &specification);
    let agent = r#"python3 -c '
import os, sys
sys.stdin.reconfigure(encoding="utf-8")
task, variable = sys.stdin.read(), os.environb[b"COUNTERPROOF_TASK"].decode()
assert len(task.encode()) > 200000 and task.startswith(variable) and 100000 < len(variable.encode()) <= 102400
open("test_triple.py", "w").write("import unittest\n\n\nclass A(unittest.TestCase):\n    def test_a(self):\n        pass\n")
'"#;
    let mut arguments = kit.implement();
    arguments[6] = "@spec.md".to_owned();
    let run = kit.run(&arguments, &["--agent-cmd", agent]);
    assert_eq!(run.code, Some(0), "{run:?}");
}

#[test]
fn credentials_of_urls_are_sent_and_not_stored() {
    let kit = Kit::new(mending());
    let origin = kit.server.origin().replace("http://", "http://user:secret-password-1@");
    let mut arguments = kit.fix();
    arguments[8] = format!("{origin}/v1?api_key=secret-key-2");
    let run = kit.run(&arguments, &["--max-turns", "2"]);
    assert_eq!(run.code, Some(1), "{run:?}");
    let result = document(&run);
    assert_eq!(result["error"]["kind"], "budget_turns");
    let request = &kit.server.requests()[0];
    assert!(request.target.ends_with("/chat/completions?api_key=secret-key-2"), "{request:?}");
    assert!(request.header("authorization").is_some_and(|value| value.starts_with("Basic ")), "{request:?}");
    let session = result["capture"]["session_id"].as_str().unwrap();
    let stored = kit.events(session).iter().map(Value::to_string).collect::<String>();
    let newest = kit.checkpoints(session).last().unwrap()["checkpoint_id"].as_str().unwrap().to_owned();
    let checkpoint = kit.query(&["checkpoint", &newest]);
    assert_eq!(checkpoint["state"]["tool_state"]["settings"]["model"]["url"], format!("{}/v1", kit.server.origin()));
    for text in [&stored, &checkpoint.to_string(), &run.stderr] {
        assert!(!text.contains("secret-"), "{text}");
    }
    let oldest = kit.checkpoints(session)[0]["checkpoint_id"].as_str().unwrap().to_owned();
    for id in [session, &oldest] {
        let run = kit.resume(id, &["--max-turns", "20"]);
        assert!(run.code == Some(2) && run.stderr.contains("--model-url"), "{run:?}");
    }
    let sessions = kit.query(&["list"])["sessions"].as_array().unwrap().len();
    assert_eq!(sessions, 1, "a fork that cannot begin is not left behind");
    let url = format!("{origin}/v1?api_key=secret-key-3");
    let run = kit.resume(session, &["--max-turns", "20", "--model-url", &url]);
    assert_eq!(run.code, Some(0), "{run:?}");
    assert!(kit.server.requests().last().unwrap().target.ends_with("secret-key-3"));
    let resumed = kit.events(session).into_iter().find(|event| event["trigger"] == "resumed").unwrap();
    assert_eq!(resumed["context"]["replaced"]["model_url"], format!("{}/v1", kit.server.origin()));
    let agent = ["--agent-cmd", "true"];
    let run = kit.run(&arguments, &agent);
    assert!(run.code == Some(2) && run.stderr.contains("OPENAI_API_KEY") && !run.stderr.contains("secret-"), "{run:?}");
}

#[test]
fn a_limit_of_cost_needs_a_price_also_at_a_resume() {
    let kit = Kit::new(mending());
    let result = document(&kit.run(&kit.fix(), &["--max-turns", "2"]));
    let session = result["capture"]["session_id"].as_str().unwrap();
    let run = kit.resume(session, &["--max-turns", "20", "--max-cost", "1"]);
    assert!(run.code == Some(2) && run.stderr.contains("--price"), "{run:?}");
    let run = kit.resume(session, &["--max-turns", "20", "--max-cost", "1", "--price", "1,1"]);
    assert_eq!(run.code, Some(0), "{run:?}");
}

#[test]
fn a_model_that_cannot_be_reached_is_named_before_a_test_runs() {
    let kit = Kit::answering(|number, request| match number {
        0 => ModelAnswer::json(500, &json!({"error": {"message": "overloaded"}})),
        _ => answer(&mending(), request),
    });
    let run = kit.run(&kit.fix(), &[]);
    assert_eq!(run.code, Some(0), "{run:?}");
    assert_eq!(run.stderr.matches("asking the model again: the model server answered with status 500").count(), 1);
    let mut arguments = kit.fix();
    arguments[8] = "http://127.0.0.1:1/v1".to_owned();
    let run = kit.run(&arguments, &[]);
    assert_eq!((run.code, &document(&run)["error"]["kind"]), (Some(1), &json!("model")), "{run:?}");
    assert!(run.stderr.contains("cannot connect to the model at http://127.0.0.1:1/v1: "), "{run:?}");
    assert!(!run.stderr.contains("$ python3"), "{run:?}");
    let model = format!("{}/v1", kit.server.origin());
    let run = kit.resume(document(&run)["session"]["id"].as_str().unwrap(), &["--model-url", &model]);
    assert_eq!(run.code, Some(0), "{run:?}");
}

#[test]
fn a_failed_run_shows_the_files_that_it_changed() {
    // A search does not read a file.
    let turns = vec![
        call("search", json!({"pattern": "def add"})),
        call(
            "write",
            json!({"path": "calc.py", "content": "def add(a, b):\n    return a - b\n\n\ndef double(a):\n    return a + a\n"}),
        ),
        Turn::Text("Done."),
    ];
    let kit = Kit::new(turns);
    let run = kit.run(&kit.implement(), &["--max-iterations", "1"]);
    let result = document(&run);
    assert_eq!((run.code, &result["error"]["kind"]), (Some(1), &json!("target_still_fails")), "{run:?}");
    let none =
        json!({"files_created": [], "files_modified": [], "tests_added": 0, "lines_added": 0, "lines_removed": 0});
    assert_eq!(result["implementation"], none);
    let changed = json!({"files_created": [], "files_modified": ["calc.py"], "files_deleted": [], "lines_added": 1,
        "lines_removed": 1});
    assert_eq!(result["session"]["uncommitted"], changed);
    let shown = kit.sandbox.run(["session", "resume", result["session"]["id"].as_str().unwrap()]).stdout;
    assert!(shown.contains("  lines          +1 -1\n"), "{shown}");
    let events = kit.events(result["session"]["id"].as_str().unwrap());
    assert!(events.iter().all(|event| event["to_state"] != "understand"));
}

#[test]
fn a_changed_configuration_of_the_tests_is_a_warning() {
    let mut turns = mending();
    turns.insert(4, call("write", json!({"path": "conftest.py", "content": "import sys\n"})));
    let kit = Kit::new(turns);
    let warning = "may change how the tests run: conftest.py";
    let run = kit.run(&kit.fix(), &[]);
    assert_eq!((run.code, &document(&run)["session"]["warnings"]), (Some(0), &json!([warning])), "{run:?}");
    let session = document(&run)["session"]["id"].as_str().unwrap().to_owned();
    let shown = kit.sandbox.run(["session", "resume", &session]).stdout;
    assert!(shown.contains(warning) && shown.contains("git fetch "), "{shown}");
}
