//! `counterproof workflow`: tasks are done in a copy of a repository, and go on from any checkpoint.

use counterproof_tests::workflow_model::{TARGET, Turn, answer, call, calling, feature, mending};
use counterproof_tests::{Gate, files_below};
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
    let session = result["capture"]["session_id"].as_str().unwrap();
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
    assert_eq!(kit.query(&["overview", session])["status"], "completed");
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

/// The requests after a checkpoint are those of the run that was not interrupted.
#[test]
fn every_checkpoint_of_a_successful_run_leads_to_the_same_result() {
    let kit = Kit::new(mending());
    let run = kit.run(&kit.fix(), &[]);
    let result = document(&run);
    let (first, tree) = kit.pull_request(&result);
    let session = result["capture"]["session_id"].as_str().unwrap();
    let requests: Vec<Value> = kit.server.requests().iter().map(counterproof_tests::ModelRequest::json).collect();
    let checkpoints = kit.checkpoints(session);
    assert!(checkpoints.len() > 15, "{}", checkpoints.len());
    let mut urls = vec![result["pr_url"].clone()];
    for (number, checkpoint) in checkpoints.iter().enumerate() {
        let id = checkpoint["checkpoint_id"].as_str().unwrap();
        let sent = kit.server.requests().len();
        let run = kit.resume(id, &[]);
        assert_eq!(run.code, Some(0), "checkpoint {number}: {run:?}");
        let resumed = document(&run);
        let new: Vec<Value> =
            kit.server.requests()[sent..].iter().map(counterproof_tests::ModelRequest::json).collect();
        assert!(new == requests[requests.len() - new.len()..], "the requests after checkpoint {number} differ");
        if number + 1 == checkpoints.len() {
            assert_eq!(resumed, result, "the newest one of a finished session");
        } else {
            let (record, fork_tree) = kit.pull_request(&resumed);
            assert_eq!(fork_tree, tree, "checkpoint {number}");
            assert_eq!(record["base_commit"], first["base_commit"]);
            assert_eq!(resumed["session"]["parent"], json!({"session_id": session, "checkpoint_id": id}));
            assert!(!urls.contains(&resumed["pr_url"]), "a fork has a pull request of its own");
            urls.push(resumed["pr_url"].clone());
        }
    }
}

#[test]
fn a_run_that_is_killed_at_any_request_goes_on_to_the_same_result() {
    let reference = {
        let kit = Kit::new(mending());
        kit.pull_request(&document(&kit.run(&kit.fix(), &[]))).1
    };
    for killed_at in 0..5 {
        let (reached, hold) = (Gate::default(), Gate::default());
        let (signal, wait) = (reached.clone(), hold.clone());
        let kit = Kit::answering(move |number, request| {
            if number == killed_at {
                signal.open();
                return answer(&mending(), request).after(&wait);
            }
            answer(&mending(), request)
        });
        let mut child = kit.start(&kit.fix());
        reached.wait();
        child.kill().unwrap();
        child.wait().unwrap();
        hold.open();
        let sessions = kit.query(&["list"]);
        assert_eq!(sessions["sessions"][0]["status"], "interrupted");
        let session = sessions["sessions"][0]["session_id"].as_str().unwrap().to_owned();
        let run = kit.resume(&session, &[]);
        assert_eq!(run.code, Some(0), "request {killed_at}: {run:?}");
        let result = document(&run);
        assert_eq!(result["capture"]["session_id"], session.as_str());
        let (record, tree) = kit.pull_request(&result);
        assert_eq!((record["number"].as_u64(), tree), (Some(1), reference.clone()), "request {killed_at}");
        // The request that was killed was sent again, and no other.
        let requests = kit.server.requests();
        assert_eq!(requests.len(), 6, "request {killed_at}");
        assert_eq!(requests[killed_at].json(), requests[killed_at + 1].json());
    }
}

#[test]
fn a_run_pauses_at_a_turn_and_goes_on() {
    let (reached, hold) = (Gate::default(), Gate::default());
    let (signal, wait) = (reached.clone(), hold.clone());
    let kit = Kit::answering(move |number, request| {
        if number == 2 {
            signal.open();
            return answer(&mending(), request).after(&wait);
        }
        answer(&mending(), request)
    });
    let child = kit.start(&kit.fix());
    reached.wait();
    let session = kit.query(&["list"])["sessions"][0]["session_id"].as_str().unwrap().to_owned();
    let held = kit.resume(&session, &[]);
    assert_eq!(held.code, Some(2), "{held:?}");
    assert!(held.stderr.contains(&format!("process {}", child.id())), "{held:?}");
    assert_eq!(kit.session(&["pause", &session]).code, Some(0));
    // A fork of a session that runs.
    let newest = kit.checkpoints(&session).last().unwrap()["checkpoint_id"].as_str().unwrap().to_owned();
    let fork = kit.query(&["fork", &newest]);
    assert_eq!(fork["parent"], json!({"session_id": session, "checkpoint_id": newest}));
    hold.open();
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(4));
    let result: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!((&result["status"], &result["error"]["kind"]), (&json!("failure"), &json!("paused")));
    assert_eq!(kit.query(&["list"])["sessions"].as_array().unwrap().len(), 2);
    assert_eq!(kit.query(&["overview", &session])["status"], "paused");
    assert_eq!(kit.session(&["pause", &session]).code, Some(2));
    for id in [session.as_str(), fork["session_id"].as_str().unwrap()] {
        let run = kit.resume(id, &[]);
        assert_eq!(run.code, Some(0), "{run:?}");
        assert_eq!(document(&run)["capture"]["session_id"], id);
    }
}

#[test]
fn a_rewound_session_updates_its_pull_request() {
    let kit = Kit::new(mending());
    let result = document(&kit.run(&kit.fix(), &[]));
    let session = result["capture"]["session_id"].as_str().unwrap();
    let checkpoints = kit.checkpoints(session);
    let edited = checkpoints.iter().find(|it| it["current_step"] == "understand").unwrap();
    let run = kit.resume(edited["checkpoint_id"].as_str().unwrap(), &["--rewind"]);
    assert_eq!(run.code, Some(0), "{run:?}");
    let rewound = document(&run);
    assert_eq!((&rewound["capture"]["session_id"], &rewound["pr_url"]), (&json!(session), &result["pr_url"]));
    let (record, _) = kit.pull_request(&rewound);
    assert_eq!(record["ci"].as_array().unwrap().len(), 2);
}

#[test]
fn a_session_goes_on_on_another_machine_without_the_repository() {
    let kit = Kit::new(mending());
    let result = document(&kit.run(&kit.fix(), &[]));
    let (_, tree) = kit.pull_request(&result);
    let session = result["capture"]["session_id"].as_str().unwrap();
    let checkpoints = kit.checkpoints(session);
    let middle = checkpoints[checkpoints.len() / 2]["checkpoint_id"].as_str().unwrap();
    assert_eq!(kit.session(&["bundle", middle, "--out", "session.bundle"]).code, Some(0));
    for name in ["repo", "ledger.db.workspaces"] {
        std::fs::remove_dir_all(kit.sandbox.path(name)).unwrap();
    }
    let run = kit.session(&["resume", "--bundle", "session.bundle", "--ledger", "other.db"]);
    assert_eq!(run.code, Some(0), "{run:?}");
    let resumed = document(&run);
    assert_eq!(resumed["capture"]["session_id"], session);
    assert_eq!(kit.pull_request(&resumed).1, tree);
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
    }
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
fn a_replay_shows_whether_a_step_matters() {
    // The model edits by what it has read: with another text, it makes a call that was not recorded.
    let kit = Kit::answering(|_, request| {
        let body = request.json();
        let is_patched = body["messages"].to_string().contains("return b - a");
        let mut turns = mending();
        if is_patched {
            turns[1] = call("shell", json!({"command": "never recorded"}));
        }
        answer(&turns, request)
    });
    let result = document(&kit.run(&kit.fix(), &[]));
    let session = result["capture"]["session_id"].as_str().unwrap();
    let events = kit.events(session);
    let read = events.iter().find(|event| event["tool_name"] == "read").unwrap();
    let start = kit.checkpoints(session).into_iter().find(|it| it["current_step"] == "localise").unwrap();
    let kit = Kit { sandbox: kit.sandbox.with_file("patch.txt", "def add(a, b):\n    return b - a\n"), ..kit };
    let patch = format!("{}=patch.txt", read["seq"]);
    let id = start["checkpoint_id"].as_str().unwrap();
    let replayed = kit.query(&["replay", id, "--times", "5", "--patch", &patch]);
    assert_eq!(replayed["mode"], "strict");
    let arm = |name: &str, succeeded: u64| json!({"name": name, "trials": 5, "succeeded": succeeded});
    assert_eq!(replayed["arms"], json!([arm("recorded", 5), arm("patched", 0)]));
    assert!((replayed["p_value"].as_f64().unwrap() - 2.0 / 252.0).abs() < 1e-9);
    let live = kit.query(&["replay", id, "--times", "1", "--live-tools"]);
    assert_eq!((&live["mode"], &live["arms"][0]["succeeded"]), (&json!("live-tools"), &json!(1)));
    assert_eq!(kit.events(session).len(), events.len(), "a replay adds no records");
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
    assert!(record["body"].as_str().unwrap().contains("Use a plus."), "{record}");
}
