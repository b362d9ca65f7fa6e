//! `counterproof session`: a coding agent is recorded, its session is queried, and two versions of it are compared.

use std::process::Stdio;

use counterproof_tests::{
    Finished, ModelAnswer, ModelRequest, ModelServer, Sandbox, Step, coding_agent, program, safe_run,
};
use jiff::Timestamp;
use serde_json::{Value, json};

/// The key of the agent, which is stored nowhere.
const KEY: &str = "sk-e2e-0123456789abcdef";

/// What the model does at a turn of a task: the tool with its arguments, or its last text.
fn turn(model: &str, task: &str, number: usize) -> Value {
    // The new version makes two mistakes.
    let is_wrong = model == "v2" && (task.starts_with("task-3") || task.starts_with("task-7"));
    let fixed = if is_wrong { "broken" } else { "fixed" };
    let call = |name: &str, arguments: Value| {
        let id = format!("call_{number}");
        let function = json!({"name": name, "arguments": arguments.to_string()});
        json!({"role": "assistant", "content": null, "tool_calls": [{"id": id, "type": "function", "function": function}]})
    };
    match number {
        0 => call("shell", json!({"command": "cat state.txt"})),
        1 => call("write", json!({"path": "state.txt", "content": format!("{fixed}\n")})),
        // The name makes it a test run.
        2 => call("shell", json!({"command": "make test"})),
        3 => {
            call("shell", json!({"command": "git add -A && git -c user.name=a -c user.email=a@a commit -qm 'Fix it'"}))
        }
        _ => json!({"role": "assistant", "content": "The task is done."}),
    }
}

/// A model that answers by the number of results that it was sent.
fn model_answer(request: &ModelRequest) -> ModelAnswer {
    let body = request.json();
    let messages = body["messages"].as_array().unwrap();
    let number = messages.iter().filter(|message| message["role"] == "tool").count();
    let task = messages[1]["content"].as_str().unwrap();
    let message = turn(body["model"].as_str().unwrap(), task, number);
    let reason = if message["tool_calls"].is_array() { "tool_calls" } else { "stop" };
    let usage = json!({"prompt_tokens": 100 + number, "completion_tokens": 10, "total_tokens": 110 + number,
        "prompt_tokens_details": {"cached_tokens": 50}});
    if body["stream"] != true {
        let choice = json!({"index": 0, "message": message, "finish_reason": reason});
        return ModelAnswer::json(200, &json!({"id": "c", "model": "test-1", "choices": [choice], "usage": usage}));
    }
    let mut delta = message.clone();
    if let Some(calls) = delta["tool_calls"].as_array_mut() {
        calls[0]["index"] = json!(0);
    }
    let chunks = [
        json!({"id": "c", "model": "test-1", "choices": [{"index": 0, "delta": delta, "finish_reason": null}]}),
        json!({"id": "c", "model": "test-1", "choices": [{"index": 0, "delta": {}, "finish_reason": reason}]}),
        json!({"id": "c", "model": "test-1", "choices": [], "usage": usage}),
    ];
    let mut events: Vec<String> = chunks.iter().map(|chunk| format!("data: {chunk}\n\n")).collect();
    events.push("data: [DONE]\n\n".to_owned());
    let bytes = events.concat().into_bytes();
    ModelAnswer::new(200, "text/event-stream", "").chunked(bytes.chunks(7).map(|piece| Step::Send(piece.to_vec())))
}

struct Kit {
    sandbox: Sandbox,
    server: ModelServer,
}

impl Kit {
    fn new() -> Self {
        let server = ModelServer::start(|_, request| model_answer(request));
        let sandbox = Sandbox::new()
            .with_file("repo/state.txt", "failing\n")
            .with_file("repo/Makefile", "test:\n\t@grep -q fixed state.txt\n")
            .with_file("repo/.gitignore", "secret.txt\n")
            .with_variable("COUNTERPROOF_LEDGER", "ledger.db")
            .with_variable("OPENAI_BASE_URL", &format!("{}/v1", server.origin()))
            .with_variable("OPENAI_API_KEY", KEY);
        let script = "git init -q && git add -A && git -c user.name=a -c user.email=a@a commit -qm start";
        let status = std::process::Command::new("sh").args(["-c", script]).current_dir(sandbox.path("repo")).status();
        assert!(status.unwrap().success());
        Self { sandbox, server }
    }

    fn record(&self, session: &str, task: &str, model: &str) -> Finished {
        self.record_with(session, task, &format!("AGENT_MODEL={model}"))
    }

    /// Records a task in the repository, from its start.
    fn record_with(&self, session: &str, task: &str, variables: &str) -> Finished {
        let script = format!(
            "cd repo && git reset -q --hard $(git rev-list --max-parents=0 HEAD) && export {variables} && \
             exec \"$0\" session record --ledger ../ledger.db --session-id {session} --title '{task}' -- {} '{task}'",
            coding_agent().display()
        );
        self.shell(&script)
    }

    /// Runs a script whose `$0` is the program.
    fn shell(&self, script: &str) -> Finished {
        self.sandbox.run_in(&["sh", "-c", script], [] as [&str; 0])
    }

    fn json(&self, arguments: &[&str]) -> Value {
        let run = self.sandbox.run(["session"].iter().chain(arguments).chain(&["--json"]));
        assert_eq!(run.code, Some(0), "{run:?}");
        serde_json::from_str(&run.stdout).unwrap()
    }

    fn events(&self, session: &str, more: &[&str]) -> Vec<Value> {
        let page = self.json(&[&["timeline", session, "--limit", "1000"], more].concat());
        assert_eq!((&page["session_id"], &page["next"]), (&json!(session), &Value::Null));
        page["events"].as_array().unwrap().clone()
    }
}

fn of_type<'a>(events: &'a [Value], kind: &str) -> Vec<&'a Value> {
    events.iter().filter(|event| event["type"] == kind).collect()
}

#[test]
fn every_model_call_is_recorded_with_the_whole_request_and_answer() {
    let kit = Kit::new();
    for (session, stream) in [("s1", "0"), ("s2", "1")] {
        let before = kit.server.requests().len();
        let run = kit.record_with(session, "task-1: fix the state", &format!("AGENT_MODEL=v1 AGENT_STREAM={stream}"));
        assert_eq!((run.code, run.stdout.as_str()), (Some(0), "The task is done.\n"), "{run:?}");
        let requests = &kit.server.requests()[before..];
        let events = kit.events(session, &["--type", "llm_call"]);
        assert_eq!((events.len(), requests.len()), (5, 5));
        for (event, request) in events.iter().zip(requests) {
            let body = request.json();
            let recorded = &event["request"];
            assert_eq!((&recorded["body"], &recorded["messages"]), (&body, &body["messages"]), "deep-equal");
            assert_eq!((&recorded["model"], &recorded["tools"]), (&body["model"], &body["tools"]));
            assert_eq!((&recorded["temperature"], &recorded["max_tokens"]), (&json!(0), &json!(500)));
            assert_eq!(recorded["api"], "openai-chat");
            assert!(event["latency_ms"].is_u64() && event["error"].is_null() && event["fidelity"] == "captured");
            assert!(event["timestamp"].as_str().unwrap().parse::<Timestamp>().is_ok());
            assert_eq!(
                request.header("authorization"),
                Some(format!("Bearer {KEY}").as_str()),
                "the key passes through"
            );
        }
        let call = &events[1]["response"];
        assert_eq!((&call["content"], &call["finish_reason"]), (&Value::Null, &json!("tool_calls")));
        assert_eq!(call["tool_calls"][0]["function"]["name"], "write");
        let usage = json!({"prompt_tokens": 104, "completion_tokens": 10, "total_tokens": 114, "cached_tokens": 50});
        assert_eq!(
            (&events[4]["response"]["usage"], &events[4]["response"]["content"]),
            (&usage, &json!("The task is done."))
        );
    }
}

#[test]
fn tool_calls_commands_and_file_changes_are_recorded() {
    let kit = Kit::new();
    assert_eq!(kit.record("s", "task-1: fix the state", "v1").code, Some(0));
    let events = kit.events("s", &[]);
    let seqs: Vec<u64> = events.iter().map(|event| event["seq"].as_u64().unwrap()).collect();
    assert_eq!(seqs, (1..=seqs.len() as u64).collect::<Vec<_>>(), "gap-free from 1");
    let tools = of_type(&events, "tool_call");
    let names: Vec<_> = tools.iter().map(|event| event["tool_name"].as_str().unwrap()).collect();
    assert_eq!(names, ["shell", "write", "shell", "shell"], "once per call, however often the history repeats it");
    assert_eq!(tools[0]["arguments"], json!({"command": "cat state.txt"}));
    let result = json!({"success": true, "content": "failing\nexit code 0", "truncated": false, "error": null});
    assert_eq!((&tools[0]["result"], &tools[0]["latency_ms"]), (&result, &Value::Null));
    let commands = of_type(&events, "command");
    assert_eq!(
        (commands.len(), &commands[1]["command"], &commands[1]["exit_code"]),
        (3, &json!("make test"), &json!(0))
    );
    let files = of_type(&events, "file_operation");
    assert_eq!((files.len(), &files[0]["path"], &files[0]["operation"]), (1, &json!("state.txt"), &json!("modify")));
    assert!(files[0]["patch"].as_str().unwrap().contains("-failing\n+fixed\n"), "{}", files[0]);
    assert!(files[0]["before_sha256"].is_string() && files[0]["after_sha256"].is_string());
    let states = of_type(&events, "state_transition");
    let of = |event: &Value| {
        [&event["from_state"], &event["to_state"], &event["trigger"]].map(|it| it.as_str().unwrap().to_owned())
    };
    assert_eq!(
        states.iter().map(|it| of(it)).collect::<Vec<_>>(),
        [["created", "running", "agent started"], ["running", "completed", "agent ended"]]
    );
    let schema: Value = serde_json::from_str(&kit.sandbox.run(["schema", "session-event.v1"]).stdout).unwrap();
    let schema = jsonschema::draft202012::new(&schema).unwrap();
    assert!(events.iter().all(|event| schema.is_valid(event)), "{events:?}");
}

#[test]
fn events_are_found_by_session_time_type_and_tool() {
    let kit = Kit::new();
    kit.record("s", "task-1: fix the state", "v1");
    let all = kit.events("s", &[]);
    let seqs = |events: &[Value]| events.iter().map(|event| event["seq"].as_u64().unwrap()).collect::<Vec<_>>();
    let by_type = kit.events("s", &["--type", "tool_call", "--type", "command"]);
    assert_eq!(by_type.len(), of_type(&all, "tool_call").len() + of_type(&all, "command").len());
    assert_eq!(kit.events("s", &["--tool", "write"]).len(), 1);
    // Since is inclusive, until is exclusive.
    let time = |event: &Value| event["timestamp"].as_str().unwrap().parse::<Timestamp>().unwrap();
    let (from, to) = (time(&all[1]), time(&all[all.len() - 2]));
    let expected: Vec<Value> = all.iter().filter(|event| time(event) >= from && time(event) < to).cloned().collect();
    let found = kit.events("s", &["--since", &from.to_string(), "--until", &to.to_string()]);
    assert_eq!(seqs(&found), seqs(&expected));
    let lines = kit.sandbox.run(["session", "timeline", "s", "--jsonl"]).stdout;
    let lines: Vec<Value> = lines.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(lines, all);
    let (mut cursor, mut paged) = (None::<String>, Vec::new());
    loop {
        let mut arguments = vec!["timeline", "s", "--limit", "3"];
        arguments.extend(cursor.iter().flat_map(|cursor| ["--cursor", cursor.as_str()]));
        let page = kit.json(&arguments);
        paged.extend(page["events"].as_array().unwrap().clone());
        cursor = page["next"].as_str().map(str::to_owned);
        if cursor.is_none() {
            break;
        }
        assert_eq!(paged.len() % 3, 0);
    }
    assert_eq!(paged, all);
    let shown = kit.json(&["show", "s", "--seq", "2"]);
    assert_eq!(shown, all[1]);
}

#[test]
fn the_overview_has_sums_milestones_and_what_was_seen() {
    let kit = Kit::new();
    kit.record("s", "task-1: fix the state", "v1");
    let overview = kit.json(&["overview", "s"]);
    assert_eq!(
        (&overview["status"], &overview["total_llm_calls"], &overview["total_tool_calls"]),
        (&json!("completed"), &json!(5), &json!(4))
    );
    assert_eq!(overview["total_tokens"], json!(5 * 110 + 10));
    assert_eq!(overview["tokens"], json!({"prompt": 510, "completion": 50, "cached": 250}));
    assert_eq!(overview["tool_calls_by_tool"], json!({"shell": 3, "write": 1}));
    assert_eq!((&overview["files_changed"], &overview["commands"]), (&json!(["state.txt"]), &json!(3)));
    assert_eq!((&overview["checkpoints_available"], &overview["errors"]), (&json!(0), &json!([])));
    assert!(overview["duration_seconds"].as_f64().unwrap() > 0.0);
    let milestones: Vec<_> = overview["milestones"]
        .as_array()
        .unwrap()
        .iter()
        .map(|it| [it["kind"].as_str().unwrap(), it["text"].as_str().unwrap()])
        .collect();
    assert_eq!(milestones[0], ["tests", "make test: passed"]);
    assert_eq!(milestones[1][0], "commit");
    let coverage = json!({"llm_calls": "all", "tool_calls": "partial", "files": "partial", "commands": "partial"});
    assert_eq!(overview["coverage"], coverage);
    let list = kit.json(&["list", "--usage"]);
    let fields = [
        "session_id",
        "title",
        "origin",
        "workflow",
        "status",
        "started_at",
        "ended_at",
        "llm_calls",
        "tool_calls",
        "total_tokens",
        "cost",
        "checkpoints",
        "parent",
        "coverage",
    ];
    let session = list["sessions"][0].as_object().unwrap();
    assert_eq!(session.keys().map(String::as_str).collect::<Vec<_>>(), fields);
    assert_eq!(
        (&session["origin"], &session["cost"], &session["parent"]),
        (&json!("record"), &Value::Null, &Value::Null)
    );
    assert!(list["usage"]["asset_bytes"].as_u64().unwrap() > 0);
    for command in [&["list"][..], &["overview", "s"], &["timeline", "s"], &["timeline", "s", "--previews"]] {
        let run = kit.sandbox.run(["session"].iter().chain(command));
        assert_eq!(run.code, Some(0));
        assert!(run.stdout.contains("task-1") || run.stdout.contains("make test"), "{run:?}");
    }
}

#[test]
fn secrets_pass_through_and_are_stored_nowhere() {
    let kit = Kit::new();
    let run = kit.record("s", &format!("task-1: use the key {KEY}"), "v1");
    assert_eq!(run.code, Some(0));
    assert!(
        kit.server.requests().iter().all(|request| String::from_utf8_lossy(&request.body).contains(KEY)),
        "unchanged"
    );
    let stored = kit.events("s", &[]);
    assert!(stored[1].to_string().contains("[REDACTED]"));
    for (path, bytes) in counterproof_tests::files_below(kit.sandbox.root()) {
        assert!(!bytes.windows(KEY.len()).any(|it| it == KEY.as_bytes()), "{path}");
    }
}

#[test]
fn a_failed_and_retried_call_is_a_record_of_its_own() {
    let kit = Kit::new();
    let server = ModelServer::start(|number, request| match number {
        0 => ModelAnswer::json(429, &json!({"error": {"message": "slow down"}})),
        1 => ModelAnswer::new(200, "text/event-stream", "").chunked([
            Step::Send(b"data: {\"choices\":[{\"index\":0,\"delta\":{\"content\":\"ha\"}}]}\n\n".to_vec()),
            Step::Cut,
        ]),
        _ => model_answer(request),
    });
    let sandbox = kit.sandbox.with_variable("OPENAI_BASE_URL", &format!("{}/v1", server.origin()));
    let kit = Kit { sandbox, server: kit.server };
    let run = kit.record("limited", "task-1", "v1");
    assert_eq!((run.code, run.stderr.contains("the model answered with 429")), (Some(1), true), "{run:?}");
    let events = kit.events("limited", &["--type", "llm_call"]);
    assert_eq!(events[0]["error"]["kind"], "http");
    assert_eq!((&events[0]["error"]["status"], &events[0]["response"]["finish_reason"]), (&json!(429), &Value::Null));
    let overview = kit.json(&["overview", "limited"]);
    assert_eq!((&overview["status"], &overview["total_llm_calls"]), (&json!("failed"), &json!(1)));
    assert_eq!(
        (&overview["total_tokens"], &overview["tokens"]["prompt"]),
        (&Value::Null, &Value::Null),
        "unknown is not 0"
    );
    assert_eq!(overview["errors"][0]["seq"], 2);
    let run = kit.record("cut", "task-1", "v1");
    assert_ne!(run.code, Some(0));
    let events = kit.events("cut", &["--type", "llm_call"]);
    assert_eq!((&events[0]["error"]["kind"], &events[0]["response"]["content"]), (&json!("cut"), &json!("ha")));
    assert_eq!(events[0]["response"]["finish_reason"], Value::Null);
}

#[test]
fn commands_below_safe_run_are_captured() {
    let kit = Kit::new();
    let script = format!(
        "\"$0\" session record --session-id s -- sh -c '{} run -- sh -c \"echo out; echo err >&2; exit 3\"'; echo code $?",
        safe_run().display()
    );
    let run = kit.shell(&script);
    assert_eq!(run.stdout, "out\ncode 3\n");
    assert!(run.stderr.contains("no model requests came through the proxy"), "{run:?}");
    let events = kit.events("s", &["--type", "command"]);
    assert_eq!((events.len(), &events[0]["fidelity"], &events[0]["exit_code"]), (1, &json!("captured"), &json!(3)));
    assert_eq!((&events[0]["stdout"], &events[0]["stderr"]), (&json!("out\n"), &json!("err\n")));
    let coverage = json!({"llm_calls": "none", "tool_calls": "none", "files": "none", "commands": "partial"});
    assert_eq!(kit.json(&["overview", "s"])["coverage"], coverage);
}

#[test]
fn invalid_arguments_end_with_2_and_missing_files_with_3() {
    let kit = Kit::new();
    kit.record("s", "task-1", "v1");
    let code = |arguments: &[&str]| kit.sandbox.run(["session"].iter().chain(arguments)).code;
    for arguments in [
        &["timeline", "unknown"][..],
        &["overview", "unknown"],
        &["show", "unknown", "--seq", "1"],
        &["show", "s", "--seq", "999"],
        &["timeline", "s", "--type", "unknown"],
        &["timeline", "s", "--since", "yesterday"],
        &["timeline", "s", "--cursor", "x"],
        &["list", "--cursor", "x"],
        &["export", "unknown", "--html", "x.html"],
        &["record", "--session-id", "s", "--", "true"],
        &["record", "--session-id", "a b", "--", "true"],
    ] {
        assert_eq!(code(arguments), Some(2), "{arguments:?}");
    }
    assert_eq!(code(&["import", "missing.jsonl"]), Some(3));
    assert_eq!(code(&["record", "--", "/no/such/agent"]), Some(3));
    assert_eq!(code(&["list", "--ledger", "missing.db"]), Some(3));
}

#[test]
fn an_agent_runs_without_a_store_unless_the_record_is_required() {
    let kit = Kit::new();
    // A folder is not a ledger.
    std::fs::create_dir(kit.sandbox.path("ledger.db")).unwrap();
    let run = kit.record("s", "task-1", "v1");
    assert_eq!((run.code, run.stdout.as_str()), (Some(0), "The task is done.\n"), "{run:?}");
    assert!(run.stderr.contains("the session cannot be stored now, and waits in"), "{run:?}");
    let required = kit.sandbox.run(["session", "record", "--require-record", "--", "echo", "started"]);
    assert_eq!((required.code, required.stdout.as_str()), (Some(3), ""), "{required:?}");
    std::fs::remove_dir(kit.sandbox.path("ledger.db")).unwrap();
    let overview = kit.json(&["overview", "s"]);
    assert_eq!((&overview["status"], &overview["total_llm_calls"]), (&json!("completed"), &json!(5)));
}

#[test]
fn a_session_whose_recorder_was_killed_is_interrupted() {
    let kit = Kit::new();
    let mut child = std::process::Command::new(program())
        .args(["session", "record", "--session-id", "s", "--", "sh", "-c", "echo started; exec sleep 600"])
        .current_dir(kit.sandbox.root())
        .env("COUNTERPROOF_LEDGER", "ledger.db")
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let mut line = String::new();
    std::io::BufRead::read_line(&mut std::io::BufReader::new(child.stdout.as_mut().unwrap()), &mut line).unwrap();
    assert_eq!(kit.json(&["overview", "s"])["status"], "running");
    child.kill().unwrap();
    child.wait().unwrap();
    let overview = kit.json(&["overview", "s"]);
    assert_eq!((&overview["status"], &overview["ended_at"]), (&json!("interrupted"), &Value::Null));
    let again = kit.sandbox.run(["session", "record", "--session-id", "s", "--", "true"]);
    assert_eq!(again.code, Some(2));
}

#[test]
fn old_sessions_are_deleted() {
    let kit = Kit::new();
    kit.record("s", "task-1", "v1");
    let dry = kit.json(&["prune", "--older-than", "1d"]);
    assert_eq!(dry["sessions"], json!([]));
    let pruned = kit.json(&["prune", "--older-than", "PT0.001S", "--vacuum"]);
    assert_eq!(pruned["sessions"], json!(["s"]));
    let list = kit.json(&["list", "--usage"]);
    assert_eq!(
        (&list["sessions"], &list["usage"]["assets"], &list["usage"]["events"]),
        (&json!([]), &json!(0), &json!(0))
    );
}

/// Two versions of a small coding agent on ten tasks: the new one breaks two of them.
#[test]
fn two_versions_of_a_coding_agent_are_compared() {
    let kit = Kit::new();
    let sandbox = kit.sandbox.with_file("counterproof.toml", "[agent]\ndeterministic = true\n");
    let kit = Kit { sandbox, server: kit.server };
    let ids = |side: &str| (0..10).map(|task| format!("{side}-{task}")).collect::<Vec<_>>();
    for (side, model) in [("old", "v1"), ("again", "v1"), ("new", "v2")] {
        for (task, id) in ids(side).iter().enumerate() {
            assert_eq!(kit.record(id, &format!("task-{task}: fix the state"), model).code, Some(0));
        }
    }
    let export = |from: &str, side: &str| {
        let mut arguments: Vec<String> =
            ["session", "export", "--by", "task", "--side", side, "--run-id", from].map(str::to_owned).to_vec();
        arguments.extend(ids(from));
        let run = kit.sandbox.run(arguments);
        assert_eq!(run.code, Some(0), "{run:?}");
        let folder = format!("runs/{side}/{from}");
        assert_eq!(kit.sandbox.run(["validate", &folder]).code, Some(0));
        folder
    };
    let old = export("old", "baseline");
    let again = export("again", "new");
    let compare = |new: &str| {
        kit.sandbox.run(["compare", "--baseline", &old, "--new", new, "--cases", "runs/sessions.cases.json"])
    };
    let same = compare(&again);
    assert_eq!(same.code, Some(0), "two recordings of the same agent: {same:?}");
    assert!(same.stdout.contains("unchanged"), "{same:?}");
    let new = export("new", "new");
    let worse = compare(&new);
    assert_eq!(worse.code, Some(1), "{worse:?}");
    assert!(
        worse.stdout.contains("task-3")
            && worse.stdout.contains("task-7")
            && worse.stdout.contains("the last test run passes"),
        "{worse:?}"
    );
    assert!(!worse.stdout.contains("task-5"), "{worse:?}");
    let page = kit.sandbox.run([
        "session",
        "export",
        "new-3",
        "--html",
        "page.html",
        "--otlp",
        "spans.json",
        "--content",
        "--atif",
        "atif.json",
    ]);
    assert_eq!(page.code, Some(0), "{page:?}");
    // Both formats are read again, with the same sums.
    for (file, origin) in [("spans.json", "otlp"), ("atif.json", "atif")] {
        let ledger = format!("{origin}.db");
        let run = kit.sandbox.run(["session", "import", file, "--ledger", &ledger, "--json"]);
        assert_eq!(run.code, Some(0), "{run:?}");
        let imported: Value =
            serde_json::from_str(&kit.sandbox.run(["session", "list", "--ledger", &ledger, "--json"]).stdout).unwrap();
        let (session, original) = (&imported["sessions"][0], kit.json(&["overview", "new-3"]));
        assert_eq!(
            (&session["origin"], &session["total_tokens"]),
            (&json!(origin), &original["total_tokens"]),
            "{imported}"
        );
        assert_eq!((&session["llm_calls"], &session["tool_calls"]), (&json!(5), &json!(4)), "{imported}");
    }
}
