//! Sessions of workflows that go on: after a kill, a pause or a rewind, as a fork, from a bundle, and in a replay.

use counterproof_tests::workflow_model::{Turn, answer, call, calling, mending};
use counterproof_tests::{Gate, ModelAnswer};
use serde_json::{Value, json};

use crate::workflow_kit::{Kit, document};

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
    // Twenty requests: the model reads for a while, and mends from the 16th on.
    let reads = (1..16).map(|lines| call("read", json!({"path": "calc.py", "limit": lines})));
    let turns: Vec<Turn> = reads.chain(mending()).collect();
    let reference = {
        let kit = Kit::new(mending());
        kit.pull_request(&document(&kit.run(&kit.fix(), &[]))).1
    };
    for killed_at in [0, 7, 15, 17, 19] {
        let (reached, hold) = (Gate::default(), Gate::default());
        let (signal, wait) = (reached.clone(), hold.clone());
        let turns = turns.clone();
        let kit = Kit::answering(move |number, request| {
            if number == killed_at {
                signal.open();
                return answer(&turns, request).after(&wait);
            }
            answer(&turns, request)
        });
        let mut child = kit.start(&kit.fix());
        reached.wait();
        child.kill().unwrap();
        child.wait().unwrap();
        hold.open();
        let sessions = kit.query(&["list"]);
        assert_eq!(sessions["sessions"][0]["status"], "interrupted");
        // The request that was killed has no record.
        let partial =
            json!({"llm_calls": "partial", "tool_calls": "partial", "files": "partial", "commands": "partial"});
        assert_eq!(sessions["sessions"][0]["coverage"], partial);
        let session = sessions["sessions"][0]["session_id"].as_str().unwrap().to_owned();
        let run = kit.resume(&session, &[]);
        assert_eq!(run.code, Some(0), "request {killed_at}: {run:?}");
        let result = document(&run);
        assert_eq!(result["capture"]["session_id"], session.as_str());
        assert_eq!(kit.query(&["overview", &session])["coverage"], partial);
        let (record, tree) = kit.pull_request(&result);
        assert_eq!((record["number"].as_u64(), tree), (Some(1), reference.clone()), "request {killed_at}");
        // The request that was killed was sent again, and no other.
        let requests = kit.server.requests();
        assert_eq!(requests.len(), 21, "request {killed_at}");
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
    assert_eq!(result["session"]["status"], "paused");
    assert_eq!(result["session"]["resume"], format!("counterproof session resume {session} --ledger ledger.db"));
    assert_eq!(result["session"]["checkpoint_id"], kit.checkpoints(&session).last().unwrap()["checkpoint_id"]);
    let sessions = kit.query(&["list"])["sessions"].clone();
    let parents: Vec<&Value> = sessions.as_array().unwrap().iter().map(|it| &it["parent"]).collect();
    assert_eq!(parents, [&fork["parent"], &Value::Null]);
    let overview = kit.query(&["overview", &session]);
    assert_eq!((&overview["status"], &overview["parent"]), (&json!("paused"), &Value::Null));
    let listed = json!([{"session_id": fork["session_id"], "checkpoint_id": newest, "status": "paused"}]);
    assert_eq!(overview["forks"], listed);
    let of_fork = kit.query(&["overview", fork["session_id"].as_str().unwrap()]);
    assert_eq!((&of_fork["parent"], &of_fork["forks"]), (&fork["parent"], &json!([])));
    let table = kit.sandbox.run(["session", "list"]).stdout;
    assert!(table.contains(&format!("(fork of {session})")), "{table}");
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
    // To where the first commit was public already.
    let published = checkpoints.iter().find(|it| it["current_step"] == "ci").unwrap();
    let run = kit.resume(published["checkpoint_id"].as_str().unwrap(), &["--rewind"]);
    assert_eq!((run.code, &document(&run)["pr_url"]), (Some(0), &result["pr_url"]), "{run:?}");
}

#[test]
fn a_deleted_session_leaves_neither_a_workspace_nor_snapshots() {
    let kit = Kit::new(mending());
    let result = document(&kit.run(&kit.fix(), &[]));
    let session = result["capture"]["session_id"].as_str().unwrap();
    let fork = kit.query(&["fork", kit.checkpoints(session)[2]["checkpoint_id"].as_str().unwrap()]);
    let pruned = kit.query(&["prune", "--older-than", "PT0.001S", "--vacuum"]);
    assert_eq!(pruned["sessions"], json!([session, fork["session_id"]]));
    let repositories = kit.sandbox.path("ledger.db.workspaces/repositories");
    let found =
        std::fs::read_dir(&repositories).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap());
    let repository = found.into_iter().find(|name| camino::Utf8Path::new(name).extension() == Some("git")).unwrap();
    let repository = format!("ledger.db.workspaces/repositories/{repository}");
    assert_eq!(kit.git(&repository, &["for-each-ref", "refs/counterproof/checkpoints/"]), "");
    assert_eq!(std::fs::read_dir(kit.sandbox.path("ledger.db.workspaces/sessions")).unwrap().count(), 0);
}

#[test]
fn a_session_goes_on_on_another_machine_without_the_repository() {
    let kit = Kit::new(mending());
    let result = document(&kit.run(&kit.fix(), &[]));
    let (_, tree) = kit.pull_request(&result);
    let session = result["capture"]["session_id"].as_str().unwrap();
    let checkpoints = kit.checkpoints(session);
    let middle = checkpoints[checkpoints.len() / 2]["checkpoint_id"].as_str().unwrap();
    let bundle = || kit.session(&["bundle", middle, "--out", "session.bundle"]);
    assert_eq!(bundle().code, Some(0));
    let again = bundle();
    assert!(again.code == Some(2) && again.stderr.contains("`session.bundle` already exists"), "{again:?}");
    for name in ["repo", "ledger.db.workspaces"] {
        std::fs::remove_dir_all(kit.sandbox.path(name)).unwrap();
    }
    let url = format!("{}/v1", kit.server.origin());
    let resume = ["resume", "--bundle", "session.bundle", "--ledger", "other.db"];
    let run = kit.session(&resume);
    assert!(run.code == Some(2) && run.stderr.contains("--model-url"), "{run:?}");
    let resume = [&resume[..], &["--model-url", &url]].concat();
    let sent = kit.server.requests().len();
    let run = kit.session(&resume);
    assert_eq!((run.code, kit.server.requests().len()), (Some(2), sent), "{run:?}");
    for text in ["suite: python3 -m unittest -v", "test: python3 -m unittest -v {test}", "sandbox", "--trust-commands"]
    {
        assert!(run.stderr.contains(text), "{text}: {run:?}");
    }
    // The session is not in the ledger, where it would be resumed without the question.
    assert_eq!(kit.session(&["resume", session, "--ledger", "other.db"]).code, Some(2));
    let run = kit.session(&[&resume[..], &["--trust-commands"]].concat());
    assert_eq!(run.code, Some(0), "{run:?}");
    assert!(run.stderr.contains("suite: python3 -m unittest -v"), "{run:?}");
    let resumed = document(&run);
    assert_eq!(resumed["capture"]["session_id"], session);
    assert_eq!(kit.pull_request(&resumed).1, tree);
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
fn a_live_replay_leaves_nothing_and_fails_without_a_model() {
    let kit = Kit::answering(|number, request| match number {
        0..=5 => answer(&mending(), request),
        _ => ModelAnswer::json(401, &json!({"error": {"message": "no"}})),
    });
    let result = document(&kit.run(&kit.fix(), &[]));
    let session = result["capture"]["session_id"].as_str().unwrap();
    let repositories = kit.sandbox.path("ledger.db.workspaces/repositories");
    let repository = repositories.read_dir_utf8().unwrap().map(|entry| entry.unwrap().into_path());
    let repository = repository.into_iter().find(|path| path.extension() == Some("git")).unwrap();
    let references = || kit.git(repository.as_str(), &["for-each-ref"]);
    let before = references();
    let checkpoints = kit.checkpoints(session);
    let of = |step: &str| {
        let found = checkpoints.iter().find(|it| it["current_step"] == step).unwrap_or_else(|| panic!("{step}"));
        found["checkpoint_id"].as_str().unwrap()
    };
    // The sixth answer is the first of the trial.
    for more in [&["--live-tools"][..], &[]] {
        let run = kit.session(&[&["replay", of("localise"), "--times", "1"], more].concat());
        assert_eq!(run.code, Some(3), "{run:?}");
        assert!(run.stderr.contains("the model did not answer"), "{run:?}");
    }
    assert_eq!(references(), before);
    for step in ["commit", "ci", "succeeded"] {
        let run = kit.session(&["replay", of(step)]);
        assert!(run.code == Some(2) && run.stderr.contains("nothing is left to replay"), "{step}: {run:?}");
    }
}

#[test]
fn a_replay_uses_the_results_of_the_branch_of_its_checkpoint() {
    // After the rewind, the model reads another file, and its history has no result of the first call.
    let kit = Kit::answering(|number, request| {
        let mut turns = mending();
        if (5..7).contains(&number) {
            turns[0] = call("read", json!({"path": "test_calc.py"}));
        }
        answer(&turns, request)
    });
    let result = document(&kit.run(&kit.fix(), &[]));
    let session = result["capture"]["session_id"].as_str().unwrap();
    let start = kit.checkpoints(session).into_iter().find(|it| it["current_step"] == "localise").unwrap();
    let id = start["checkpoint_id"].as_str().unwrap();
    let rewound = kit.resume(id, &["--rewind", "--max-turns", "2"]);
    assert_eq!(document(&rewound)["error"]["kind"], "budget_turns", "{rewound:?}");
    let replayed = kit.query(&["replay", id, "--times", "1"]);
    assert_eq!(replayed["arms"][0]["succeeded"], 1, "{replayed}");
}

#[test]
fn an_interrupted_command_without_a_sandbox_is_not_run_again() {
    let kit = Kit::answering(|_, request| {
        let body = request.json();
        if body["messages"].to_string().contains("is not run again") {
            return answer(&mending(), request);
        }
        let outside = "echo x >> ../../../../outside; sleep 1000";
        calling("shell", &json!({"command": outside}).to_string(), &body)
    });
    let mut arguments = kit.fix();
    arguments.extend(["--sandbox", "none"].map(str::to_owned));
    let child = kit.start(&arguments);
    let outside = kit.sandbox.path("outside");
    while !outside.exists() {
        std::thread::sleep(std::time::Duration::from_millis(10));
    }
    let killed = std::process::Command::new("kill").args(["-TERM", &child.id().to_string()]).status().unwrap();
    let output = child.wait_with_output().unwrap();
    assert!(killed.success() && output.status.code() == Some(4), "{output:?}");
    let result: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!((&result["session"]["status"], &result["session"]["resume"]), (&json!("interrupted"), &Value::Null));
    let session = result["capture"]["session_id"].as_str().unwrap();
    let checkpoints = kit.checkpoints(session);
    let [.., running, newest] = &checkpoints[..] else { panic!("{checkpoints:?}") };
    assert_eq!((&running["resumable"], &newest["resumable"]), (&json!(true), &json!(false)));
    let stderr = String::from_utf8_lossy(&output.stderr);
    let earlier =
        format!("can be resumed: `counterproof session resume {}", running["checkpoint_id"].as_str().unwrap());
    assert!(stderr.contains(&earlier) && !stderr.contains("go on with"), "{stderr}");
    let refused = kit.resume(session, &[]);
    let list = format!("`counterproof session checkpoints {session} --ledger ");
    assert!(refused.code == Some(2) && refused.stderr.contains(&list), "{refused:?}");
    for more in [&[][..], &["--rewind"]] {
        let run = kit.resume(running["checkpoint_id"].as_str().unwrap(), more);
        assert_eq!(run.code, Some(0), "{run:?}");
        let events = kit.events(document(&run)["capture"]["session_id"].as_str().unwrap());
        let is_closed = |event: &Value| event["result"]["content"].to_string().contains("is not run again");
        assert_eq!(events.iter().filter(|event| is_closed(event)).count(), 1);
    }
    assert_eq!(std::fs::read_to_string(outside).unwrap(), "x\n");
    // The newest one that cannot be resumed cannot be forked either, once it is an older one.
    assert_eq!(kit.resume(newest["checkpoint_id"].as_str().unwrap(), &[]).code, Some(2));
}
