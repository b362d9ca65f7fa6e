//! What the store does in both databases: what is read is what was written, the sums, and pages. The tests of PostgreSQL need
//! a server: `cargo xtask interop postgres` runs them.

use camino::Utf8Path;
use counterproof_ledger::line::EventLine;
use counterproof_ledger::location::LedgerLocation;
use counterproof_ledger::query::Fields;
use counterproof_ledger::store::Query;
use counterproof_redaction::Redactor;
use jiff::Timestamp;
use proptest::prelude::*;
use serde_json::{Map, Value, json};

use counterproof_sessions::event::*;
use counterproof_sessions::recorder::absorb;
use counterproof_sessions::session::*;
use counterproof_sessions::store::*;
use counterproof_sessions::summary::SessionError;

#[cfg(unix)]
use crate::server::Server;

/// Tests each function with each database.
macro_rules! in_both_databases {
    ($($name:ident),* $(,)?) => {
        mod sqlite {
            $(#[test]
            fn $name() {
                let folder = tempfile::tempdir().unwrap();
                super::$name(&super::file(&folder));
            })*
        }

        #[cfg(unix)]
        mod postgres {
            $(#[test]
            #[ignore = "needs a PostgreSQL server: cargo xtask interop postgres"]
            fn $name() {
                let server = super::Server::start();
                super::$name(&server.location());
            })*
        }
    };
}

in_both_databases!(
    a_session_of_many_turns_stores_each_message_once,
    sums_are_of_what_is_known_and_records_are_added_once,
    a_record_that_has_grown_replaces_the_old_one_and_keeps_its_number,
    pages_have_exactly_the_limit_while_there_are_more,
    the_list_has_the_latest_sessions_first_and_pages_of_it,
    a_session_in_several_files_has_all_of_their_time,
    pruning_deletes_the_texts_that_no_other_session_uses,
    calls_of_the_guard_are_added_once_and_joined_with_those_of_the_model,
    checkpoints_are_listed_in_pages_and_found_by_their_id_alone,
    a_checkpoint_stores_only_what_the_session_does_not_have_yet,
    pruning_keeps_the_messages_of_checkpoints_of_other_sessions,
);

pub(crate) fn file(folder: &tempfile::TempDir) -> LedgerLocation {
    LedgerLocation::SqliteFile(Utf8Path::from_path(folder.path()).unwrap().join("ledger.db"))
}

pub(crate) fn store(ledger: &LedgerLocation) -> SessionStore {
    SessionStore::new(counterproof_ledger::open_or_create(ledger).unwrap()).unwrap()
}

fn redactor() -> Redactor {
    Redactor::broad(["hunter2-hunter2"]).unwrap().with_mask("[REDACTED]")
}

pub(crate) fn head(id: &str) -> SessionHead {
    SessionHead {
        session_id: id.to_owned(),
        title: Some("Fix the parser".to_owned()),
        origin: Origin::Atif,
        workflow: None,
        status: SessionStatus::Completed,
        started_at: "2026-01-01T00:00:00Z".parse().unwrap(),
        ended_at: Some("2026-01-01T00:01:00.5Z".parse().unwrap()),
        parent: None,
        coverage: Coverage::default(),
    }
}

fn at(second: i64) -> Timestamp {
    Timestamp::from_second(1_767_225_600 + second).unwrap()
}

fn call(key: &str, second: i64, messages: Value, usage: Option<Usage>) -> SessionEvent {
    let body = json!({"model": "m", "messages": messages, "stream": true});
    let request = LlmRequest { model: Some("m".into()), messages, body, ..LlmRequest::default() };
    let response = Some(LlmResponse { usage, ..LlmResponse::default() });
    SessionEvent::reconstructed(
        key,
        at(second),
        EventBody::LlmCall(LlmCall { request, response, ..LlmCall::default() }),
    )
}

fn tool(key: &str, second: i64, name: &str, success: bool) -> SessionEvent {
    let result = ToolResult { success: Some(success), content: Some("done".into()), ..ToolResult::default() };
    let call = ToolCall { tool_name: name.into(), arguments: json!({}), result, ..ToolCall::default() };
    SessionEvent::reconstructed(key, at(second), EventBody::ToolCall(call))
}

pub(crate) fn all(store: &mut SessionStore, id: &str) -> Vec<Value> {
    store.timeline(id, &EventFilter::default(), 10_000, None).unwrap().unwrap().events
}

fn a_session_of_many_turns_stores_each_message_once(ledger: &LedgerLocation) {
    let mut store = store(ledger);
    let messages: Vec<Value> =
        (0..100).map(|number| json!({"role": "user", "content": format!("message {number}")})).collect();
    let events = (1..=100).map(|count| call(&count.to_string(), 0, json!(messages[..count]), None));
    store.import(&head("s"), events, redactor()).unwrap();
    let count = |store: &mut SessionStore, table: &str| {
        let query = Query::new(format!("SELECT count(*) FROM {table}"));
        Fields::new(store.ledger().select(&query).unwrap().pop().unwrap()).count()
    };
    assert_eq!((count(&mut store, "session_assets"), count(&mut store, "session_history")), (100, 100));
    for (index, event) in all(&mut store, "s").iter().enumerate() {
        assert_eq!(event["seq"], index + 1);
        assert_eq!(event["request"]["messages"], json!(messages[..=index]));
        assert_eq!(event["request"]["body"]["messages"], event["request"]["messages"]);
    }
}

fn sums_are_of_what_is_known_and_records_are_added_once(ledger: &LedgerLocation) {
    let mut store = store(ledger);
    let usage = |prompt, completion| Some(Usage::new(Some(prompt), completion, Some(1)));
    let events = || {
        let failed = Some(EventError { kind: "http".into(), status: Some(429), message: "slow down".into() });
        vec![
            SessionEvent { error: failed, ..call("1", 0, json!([]), None) },
            tool("2", 1, "read", true),
            call("3", 2, json!([]), usage(10, Some(5))),
            tool("4", 3, "read", false),
            call("5", 4, json!([]), usage(20, None)),
        ]
    };
    let mut unknown = events();
    unknown.truncate(2);
    store.import(&head("s"), unknown, redactor()).unwrap();
    let summary = store.find("s").unwrap().unwrap();
    assert_eq!((summary.llm_calls, summary.tool_calls, summary.total_tokens), (1, 1, None));
    let added = |store: &mut SessionStore, id: &str| store.import(&head(id), events(), redactor()).unwrap();
    assert_eq!(added(&mut store, "s"), 3);
    assert_eq!(added(&mut store, "s"), 0);
    assert_eq!(added(&mut store, "fork"), 0, "a record belongs to the session that has it first");
    let overview = store.overview("s").unwrap().unwrap();
    assert_eq!((overview.total_llm_calls, overview.total_tool_calls, overview.total_tokens), (3, 2, Some(35)));
    assert_eq!(overview.tokens, TokenSums { prompt: Some(30), completion: Some(5), cached: Some(2) });
    assert_eq!(overview.tool_calls_by_tool["read"], 2);
    let error = SessionError { seq: Some(1), timestamp: at(0), message: "http 429: slow down".into() };
    assert_eq!(overview.errors, [error], "a tool that fails is a part of a normal session");
    assert_eq!(overview.duration_seconds, Some(60.5));
    assert_eq!(overview.cost, None);
}

fn a_record_that_has_grown_replaces_the_old_one_and_keeps_its_number(ledger: &LedgerLocation) {
    let mut store = store(ledger);
    let usage = |tokens| Some(Usage::new(Some(tokens), Some(0), None));
    store.import(&head("s"), vec![call("1", 0, json!([]), usage(5)), tool("2", 1, "read", true)], redactor()).unwrap();
    let added = store.import(&head("s"), vec![call("1", 0, json!([1]), usage(7))], redactor()).unwrap();
    assert_eq!(added, 0);
    assert_eq!(store.find("s").unwrap().unwrap().total_tokens, Some(7));
    let events = all(&mut store, "s");
    assert_eq!((events.len(), &events[0]["seq"], &events[0]["request"]["messages"]), (2, &json!(1), &json!([1])));
}

fn pages_have_exactly_the_limit_while_there_are_more(ledger: &LedgerLocation) {
    let mut store = store(ledger);
    let events = (0..200).map(|number| tool(&number.to_string(), number, "t", true));
    store.import(&head("s"), events, redactor()).unwrap();
    let filter =
        EventFilter { since: Some(at(10)), until: Some(at(190)), tool: Some("t".into()), ..Default::default() };
    for limit in [1, 59, 60, 64, 90, 179, 180, 181] {
        let (mut cursor, mut seqs) = (None, Vec::new());
        loop {
            let page = store.timeline("s", &filter, limit, cursor.as_deref()).unwrap().unwrap();
            assert!(page.next.is_none() || page.events.len() == limit as usize);
            seqs.extend(page.events.iter().map(|event| event["seq"].as_u64().unwrap()));
            cursor = page.next;
            if cursor.is_none() {
                break;
            }
        }
        assert_eq!(seqs, (11..=190).collect::<Vec<_>>(), "since is inclusive, until is exclusive");
    }
    assert!(store.timeline("s", &filter, 5, Some("x")).unwrap().is_err());
    assert_eq!(store.event("s", 200).unwrap().unwrap()["seq"], 200);
    assert_eq!(store.event("s", 201).unwrap(), None);
    assert_eq!(store.event("s", 0).unwrap(), None);
}

fn the_list_has_the_latest_sessions_first_and_pages_of_it(ledger: &LedgerLocation) {
    let mut store = store(ledger);
    assert_eq!(store.sessions(5, None).unwrap().unwrap().sessions, []);
    for (id, second) in [("a", 1), ("b", 2), ("c", 2), ("d", 0)] {
        store.import(&SessionHead { started_at: at(second), ..head(id) }, Vec::new(), redactor()).unwrap();
    }
    let first = store.sessions(3, None).unwrap().unwrap();
    let ids = |page: &SessionPage| page.sessions.iter().map(|it| it.session_id.clone()).collect::<Vec<_>>();
    assert_eq!(ids(&first), ["c", "b", "a"]);
    let second = store.sessions(3, first.next.as_deref()).unwrap().unwrap();
    assert_eq!((ids(&second), second.next), (vec!["d".to_owned()], None));
    assert!(store.sessions(3, Some("x/y")).unwrap().is_err());
}

fn a_session_in_several_files_has_all_of_their_time(ledger: &LedgerLocation) {
    let mut store = store(ledger);
    let part = |start, end, title: Option<&str>| SessionHead {
        started_at: at(start),
        ended_at: Some(at(end)),
        title: title.map(str::to_owned),
        ..head("s")
    };
    for part in [part(5, 9, Some("named")), part(2, 4, None), part(7, 8, None)] {
        store.import(&part, Vec::new(), redactor()).unwrap();
    }
    let found = store.find("s").unwrap().unwrap().head().unwrap();
    assert_eq!((found.started_at, found.ended_at, found.title.as_deref()), (at(2), Some(at(9)), Some("named")));
}

#[test]
fn secrets_are_masked_in_everything_that_is_stored() {
    let folder = tempfile::tempdir().unwrap();
    let mut store = store(&file(&folder));
    let secret = "hunter2-hunter2";
    let messages = json!([{"role": "user", "content": format!("the key is {secret}")}]);
    let mut failed = tool("2", 0, secret, false);
    failed.error = Some(EventError { kind: "source".into(), status: None, message: secret.into() });
    let mut titled = head("s");
    titled.title = Some(secret.into());
    store.import(&titled, vec![call("1", 0, messages, None), failed], redactor()).unwrap();
    store.close().unwrap();
    for entry in std::fs::read_dir(folder.path()).unwrap() {
        let bytes = std::fs::read(entry.unwrap().path()).unwrap();
        assert!(!bytes.windows(secret.len()).any(|it| it == secret.as_bytes()));
    }
}

fn pruning_deletes_the_texts_that_no_other_session_uses(ledger: &LedgerLocation) {
    let mut store = store(ledger);
    let messages = |texts: &[&str]| texts.iter().map(|text| json!({"content": text})).collect::<Value>();
    store.import(&head("a"), vec![call("1", 0, messages(&["shared", "of a"]), None)], redactor()).unwrap();
    store.import(&head("b"), vec![call("2", 9, messages(&["shared", "of b"]), None)], redactor()).unwrap();
    let before = |second| counterproof_ledger::line::sortable_time(at(second));
    assert_eq!(store.prunable(&before(5)).unwrap(), ["a"]);
    assert_eq!(store.usage().unwrap().assets, 3);
    store.prune(&["a".to_owned()]).unwrap();
    assert_eq!(all(&mut store, "b")[0]["request"]["messages"], messages(&["shared", "of b"]));
    assert_eq!(store.find("a").unwrap(), None);
    assert_eq!(store.usage().unwrap().assets, 2);
}

fn calls_of_the_guard_are_added_once_and_joined_with_those_of_the_model(ledger: &LedgerLocation) {
    let arguments = json!({"branch": "main"});
    let hash = counterproof_artifact::canonical::canonical_hash(&arguments);
    // More than are added at a time.
    let lines: Vec<String> = (0..300)
        .map(|number| {
            let mut line = json!({
                "v": "0.1", "type": "tool_call_end", "ts": at(10 + number).to_string(), "run_id": "s",
                "source": {"shim_id": "x"}, "status": "OK", "latency_ms": 7,
                "call": {"call_id": format!("g{number}"), "server_name": "git", "tool_name": "push", "args_hash": hash},
                "preview": {"truncated": true, "result_preview": r#"{"content": [{"type": "text", "text": "do"}]}"#},
            });
            if number == 299 {
                line["decision"] = json!({"action": "BLOCK", "rule_id": "r", "explain": {"reason_code": "RULE"}});
                (line["status"], line["error"]) = (json!("ERROR"), json!({"class": "policy_block"}));
            }
            line.to_string()
        })
        .collect();
    let lines: Vec<_> = lines.iter().map(|line| EventLine::parse(line.as_bytes()).unwrap()).collect();
    counterproof_ledger::open_or_create(ledger).unwrap().append(&lines).unwrap();
    let mut store = store(ledger);
    let mut known = tool("1", 0, "mcp__git__push", true);
    if let EventBody::ToolCall(call) = &mut known.body {
        (call.arguments, call.call_id) = (arguments, Some("toolu_1".into()));
    }
    store.import(&head("s"), vec![known], redactor()).unwrap();
    for _ in 0..2 {
        absorb(&mut store, "s").unwrap();
        let events = all(&mut store, "s");
        assert_eq!(events.len(), 300);
        let joined = &events[0];
        assert_eq!((&joined["tool_name"], &joined["call_id"]), (&json!("git.push"), &json!("toolu_1")));
        assert_eq!((&joined["latency_ms"], &joined["result"]["content"]), (&json!(7), &json!("done")));
        let refused = events.iter().find(|event| event["result"]["success"] == false).unwrap();
        assert_eq!(refused["result"]["error"], "policy_block: RULE");
        assert_eq!(refused["decision"]["rule_id"], "r");
        assert_eq!(store.find("s").unwrap().unwrap().tool_calls, 300);
    }
}

fn message(number: usize) -> Value {
    json!({"role": "user", "content": format!("message {number} {}", "x".repeat(2000))})
}

/// A checkpoint with a history of some messages, and a state of which most stays the same.
fn checkpoint(id: &str, second: i64, messages: usize) -> SessionEvent {
    let suite: Vec<_> =
        (0..500).map(|number| json!({"id": format!("tests.Case.test_{number}"), "passed": true})).collect();
    let state = CheckpointState {
        message_history: (0..messages).map(message).collect(),
        current_step: "edit".into(),
        workspace: json!({"commit": id, "empty_folders": suite}),
        tool_state: json!({"turn": messages, "settings": {"suite_before": suite, "spec": "s".repeat(5000)}}),
    };
    let (resumable, reason) = (second % 2 == 0, (second % 2 == 1).then(|| "a call was in flight".to_owned()));
    let body = EventBody::Checkpoint(Checkpoint { checkpoint_id: id.into(), state, resumable, reason });
    SessionEvent::reconstructed(id, at(second), body)
}

fn checkpoints_are_listed_in_pages_and_found_by_their_id_alone(ledger: &LedgerLocation) {
    let mut store = store(ledger);
    assert_eq!(store.checkpoint("cp-1").unwrap(), None);
    assert_eq!(store.checkpoints("a", 5, None).unwrap().unwrap().checkpoints, []);
    let of = |session: &str, count: usize| -> Vec<SessionEvent> {
        (0..count)
            .flat_map(|number| {
                let id = format!("{session}-{number}");
                [tool(&format!("{id}-call"), 0, &id, true), checkpoint(&id, i64::try_from(number).unwrap(), number)]
            })
            .collect()
    };
    store.import(&head("a"), of("a", 5), redactor()).unwrap();
    store.import(&head("b"), of("b", 2), redactor()).unwrap();
    let (mut cursor, mut found) = (None, Vec::new());
    loop {
        let page = store.checkpoints("a", 2, cursor.as_deref()).unwrap().unwrap();
        assert!(page.session_id == "a" && (page.next.is_none() || page.checkpoints.len() == 2));
        found.extend(page.checkpoints);
        cursor = page.next;
        if cursor.is_none() {
            break;
        }
    }
    let ids: Vec<_> = found.iter().map(|it| (it.checkpoint_id.as_str(), it.seq)).collect();
    assert_eq!(ids, [("a-0", 2), ("a-1", 4), ("a-2", 6), ("a-3", 8), ("a-4", 10)]);
    assert_eq!((found[2].resumable, found[2].reason.as_deref(), found[2].current_step.as_str()), (true, None, "edit"));
    assert_eq!((found[3].resumable, found[3].reason.as_deref()), (false, Some("a call was in flight")));
    assert_eq!(found[3].timestamp, at(3));
    assert!(store.checkpoints("a", 2, Some("x")).unwrap().is_err());
    for (session, number, seq) in [("a", 3, 8), ("b", 1, 4)] {
        let id = format!("{session}-{number}");
        let (of, event) = store.checkpoint(&id).unwrap().unwrap();
        let written = SessionEvent { seq: Some(seq), ..checkpoint(&id, number, usize::try_from(number).unwrap()) };
        assert_eq!((of.as_str(), &event), (session, &written));
        assert_eq!(store.event(session, seq).unwrap().unwrap(), serde_json::to_value(&event).unwrap());
    }
    assert_eq!(store.checkpoint("a-5").unwrap(), None);
    assert_eq!(store.newest_checkpoint("a").unwrap().unwrap().seq, Some(10));
    assert_eq!(store.newest_checkpoint("c").unwrap(), None);
    assert_eq!(store.find("a").unwrap().unwrap().checkpoints, 5);
}

/// The text of each message and of the stable state once, whatever the number of checkpoints.
fn a_checkpoint_stores_only_what_the_session_does_not_have_yet(ledger: &LedgerLocation) {
    let mut store = store(ledger);
    let usage = |store: &mut SessionStore, session: &str, events: Vec<SessionEvent>| {
        store.import(&head(session), events, redactor()).unwrap();
        let usage = store.usage().unwrap();
        (usage.assets, usage.event_bytes + usage.asset_bytes)
    };
    let messages = |count| (0..count).map(message).collect::<Value>();
    let (_, before) = usage(&mut store, "s", vec![call("1", 0, messages(100), None), checkpoint("cp-1", 1, 100)]);
    let more = |number: usize| checkpoint(&format!("cp-{number}"), 1, 100);
    let (assets, after) = usage(&mut store, "s", (2..100).map(more).collect());
    assert_eq!(assets, 100 + 2, "the messages, the list that two fields share, and the specification");
    assert!(after - before < 98 * 1000, "{} bytes for each checkpoint", (after - before) / 98);
    let (_, last) = usage(&mut store, "s", vec![checkpoint("cp-100", 1, 101), call("2", 2, messages(101), None)]);
    assert!(last - after < 5000, "one message, a checkpoint and a request");
    let (_, event) = store.checkpoint("cp-100").unwrap().unwrap();
    assert_eq!(event, SessionEvent { seq: Some(101), ..checkpoint("cp-100", 1, 101) });
}

fn pruning_keeps_the_messages_of_checkpoints_of_other_sessions(ledger: &LedgerLocation) {
    let mut store = store(ledger);
    for (session, second) in [("a", 0), ("fork", 9)] {
        store.import(&head(session), vec![checkpoint(session, second, 3)], redactor()).unwrap();
    }
    store.prune(&["a".to_owned()]).unwrap();
    assert_eq!(store.checkpoint("a").unwrap(), None);
    let (_, event) = store.checkpoint("fork").unwrap().unwrap();
    assert_eq!(event, SessionEvent { seq: Some(1), ..checkpoint("fork", 9, 3) });
    store.prune(&["fork".to_owned()]).unwrap();
    assert_eq!(store.usage().unwrap(), StoreUsage::default());
}

#[test]
fn an_archive_takes_the_place_of_nothing_else_in_a_ledger() {
    let folder = tempfile::tempdir().unwrap();
    let mut store = store(&file(&folder));
    let long = json!([{"role": "user", "content": "x".repeat(10_000)}, message(1)]);
    let events = vec![call("1", 0, long, None), checkpoint("cp-1", 1, 3)];
    store.import(&head("s"), events, redactor()).unwrap();
    let bytes = store.archive("s", u64::MAX).unwrap();
    let archive = Archive::parse(&bytes).unwrap();
    assert_eq!(archive.session_id(), "s");
    assert!(archive.has_checkpoint("cp-1") && !archive.has_checkpoint("cp-2"));
    assert!(matches!(store.add_archive(&archive), Err(ArchiveError::Exists(_))));
    let other_folder = tempfile::tempdir().unwrap();
    let mut other = self::store(&file(&other_folder));
    other.add_archive(&archive).unwrap();
    assert_eq!(other.checkpoint("cp-1").unwrap(), store.checkpoint("cp-1").unwrap());
    let whole: Value = serde_json::from_slice(&bytes).unwrap();
    for place in [
        "/session_id",
        "/head/session_id",
        "/head",
        "/stored/assets/0/text",
        "/stored/assets/1/digest",
        "/stored/nodes/0/message",
        "/stored/nodes/1/parent",
        "/stored/nodes/1/node",
    ] {
        let mut changed = whole.clone();
        let value = changed.pointer_mut(place).unwrap();
        *value = if value.is_object() { Value::Null } else { "other".into() };
        let error = Archive::parse(changed.to_string().as_bytes()).unwrap_err();
        assert!(matches!(error, ArchiveError::Changed), "{place}: {error}");
    }
}

fn schema() -> jsonschema::Validator {
    let schema: Value = serde_json::from_str(EVENT_SCHEMA_SOURCE).unwrap();
    assert!(jsonschema::draft202012::meta::is_valid(&schema));
    jsonschema::draft202012::new(&schema).unwrap()
}

/// A record of each type, as small and as full as possible.
fn of_all_types() -> Vec<SessionEvent> {
    let digest = counterproof_artifact::Sha256Digest::from_bytes(b"x");
    let requested = RequestedCall::new(Some("c".into()), "bash".into(), "{".into());
    let usage = Some(Usage::new(Some(1), None, None));
    let response = LlmResponse { tool_calls: vec![requested], usage, ..LlmResponse::default() };
    let request = LlmRequest { api: Some(Api::AnthropicMessages), body: json!({"x": 1}), ..LlmRequest::default() };
    let state =
        StateTransition { from_state: "a".into(), to_state: "b".into(), trigger: "t".into(), context: json!({}) };
    let checkpoint = CheckpointState {
        message_history: vec![json!({"role": "user"})],
        current_step: "fix".into(),
        workspace: json!({}),
        tool_state: json!({}),
    };
    let file = FileOperation {
        operation: FileChange::Rename,
        path: "a".into(),
        from_path: Some("b".into()),
        before_sha256: Some(digest),
        after_sha256: None,
        patch: None,
    };
    let list = Command { command: Some(CommandLine::Arguments(vec!["ls".into()])), ..Command::default() };
    let bodies = vec![
        EventBody::LlmCall(LlmCall::default()),
        EventBody::LlmCall(LlmCall { request, response: Some(response), latency_ms: Some(1), cost: Some(0.5) }),
        EventBody::ToolCall(ToolCall::default()),
        EventBody::StateTransition(state),
        EventBody::Checkpoint(Checkpoint {
            checkpoint_id: "c".into(),
            state: checkpoint,
            resumable: true,
            reason: None,
        }),
        EventBody::FileOperation(file),
        EventBody::Command(Command::default()),
        EventBody::Command(list),
        EventBody::Opaque(Opaque { data: json!([1]) }),
    ];
    let error = Some(EventError { kind: "http".into(), status: Some(429), message: "slow down".into() });
    let event =
        |body| SessionEvent { error: error.clone(), agent: Some("sub".into()), ..SessionEvent::captured(at(0), body) };
    bodies.into_iter().map(event).collect()
}

/// Each type of record has a schema, which its printed form meets.
#[test]
fn every_record_meets_the_schema() {
    let folder = tempfile::tempdir().unwrap();
    let mut store = store(&file(&folder));
    let written = of_all_types();
    let kinds: std::collections::BTreeSet<_> = written.iter().map(|event| event.body.kind()).collect();
    assert_eq!(kinds.len(), EventBody::TYPES.len());
    store.import(&head("s"), written.clone(), redactor()).unwrap();
    let schema = schema();
    let printed = all(&mut store, "s");
    for (event, written) in printed.iter().zip(&written) {
        let problems: Vec<_> = schema.iter_errors(event).map(|error| error.to_string()).collect();
        assert_eq!(problems, [] as [&str; 0], "{event}");
        let read: SessionEvent = serde_json::from_value(event.clone()).unwrap();
        assert_eq!(SessionEvent { seq: None, ..read }, *written);
    }
    // Without a required field, a record does not meet the schema.
    for field in ["type", "seq", "timestamp", "error", "request", "response", "latency_ms"] {
        let mut event = printed[1].clone();
        event.as_object_mut().unwrap().remove(field);
        assert!(!schema.is_valid(&event), "{field}");
    }
}

/// An object that looks like a reference, around the size from which values are stored elsewhere.
#[test]
fn large_objects_that_look_like_references_are_read_as_they_were() {
    let folder = tempfile::tempdir().unwrap();
    let mut store = store(&file(&folder));
    let mut written = Vec::new();
    for length in 8150..8210 {
        for name in ["$literal", "$asset", "$history"] {
            let mut event = tool(&format!("{name}{length}"), 0, "t", true);
            if let EventBody::ToolCall(call) = &mut event.body {
                call.arguments = json!({name: "x".repeat(length)});
            }
            written.push(event);
        }
    }
    store.import(&head("s"), written.clone(), redactor()).unwrap();
    for (read, written) in all(&mut store, "s").iter().zip(&written) {
        assert_eq!(read["arguments"], serde_json::to_value(written).unwrap()["arguments"]);
    }
}

fn json_value() -> impl Strategy<Value = Value> {
    let name =
        prop_oneof![Just("$asset".to_owned()), Just("$history".to_owned()), Just("$literal".to_owned()), "[a-c]"];
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        "[a-z\u{e9}\u{0}\n]{0,8}".prop_map(Value::from),
        (0..20_000_usize).prop_map(|length| Value::from("long text ".repeat(length / 10))),
    ];
    leaf.prop_recursive(4, 40, 6, move |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..6).prop_map(Value::from),
            prop::collection::vec((name.clone(), inner), 0..4).prop_map(|it| Value::from(Map::from_iter(it))),
        ]
    })
}

proptest! {
    #[test]
    fn what_is_read_is_what_was_written(
        messages in prop::collection::vec(json_value(), 0..5),
        more in json_value(),
        tools in json_value(),
        arguments in json_value(),
        data in json_value(),
        patch in "[a-z\n]{0,5000}",
    ) {
        let folder = tempfile::tempdir().unwrap();
        let mut store = store(&file(&folder));
        let mut first = call("1", 0, json!(messages), None);
        if let EventBody::LlmCall(call) = &mut first.body {
            call.request.tools = tools.clone();
            call.request.body["other"] = more.clone();
        }
        let second = call("2", 0, more, None);
        let mut third = tool("3", 0, "t", true);
        if let EventBody::ToolCall(call) = &mut third.body {
            call.arguments = arguments;
            call.result.content = Some(patch.repeat(3));
        }
        let state = CheckpointState {
            message_history: messages,
            current_step: patch,
            workspace: data.clone(),
            tool_state: tools,
        };
        let body = Checkpoint { checkpoint_id: "cp".into(), state, resumable: true, reason: None };
        let fourth = SessionEvent::reconstructed("4", at(0), EventBody::Checkpoint(body));
        let fifth = SessionEvent::reconstructed("5", at(0), EventBody::Opaque(Opaque { data }));
        let mut written = vec![first, second, third, fourth, fifth];
        store.import(&head("s"), written.clone(), redactor()).unwrap();
        for (event, seq) in written.iter_mut().zip(1..) {
            event.seq = Some(seq);
        }
        let read = all(&mut store, "s");
        let expected: Vec<Value> = written.iter().map(|event| serde_json::to_value(event).unwrap()).collect();
        prop_assert_eq!(&read, &expected);
        for (value, event) in read.into_iter().zip(written) {
            prop_assert_eq!(serde_json::from_value::<SessionEvent>(value).unwrap(), event);
        }
    }
}
