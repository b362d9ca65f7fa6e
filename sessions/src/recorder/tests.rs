//! Tests of the recorder: stores that fail, and calls of the guard.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use camino::{Utf8Path, Utf8PathBuf};
use counterproof_ledger::line::EventLine;
use counterproof_ledger::location::{LedgerLocation, StateFolder};
use counterproof_store::write::{Durability, write};
use jiff::Timestamp;
use serde_json::{Value, json};

use super::*;
use crate::event::*;
use crate::session::*;
use crate::store::{EventFilter, SessionStore};

struct Place {
    folder: tempfile::TempDir,
    warnings: Arc<AtomicUsize>,
}

impl Place {
    fn new() -> Self {
        Self { folder: tempfile::tempdir().unwrap(), warnings: Arc::default() }
    }

    fn path(&self) -> Utf8PathBuf {
        Utf8Path::from_path(self.folder.path()).unwrap().join("ledger.db")
    }

    fn ledger(&self) -> LedgerLocation {
        LedgerLocation::SqliteFile(self.path())
    }

    fn spool(&self) -> SessionSpool {
        SessionSpool::new(&self.ledger().spool_folder(&StateFolder::new("/")))
    }

    fn start(&self) -> Result<SessionRecorder, RecordError> {
        let warnings = self.warnings.clone();
        let warn = Box::new(move |_: &str| {
            warnings.fetch_add(1, Ordering::Relaxed);
        });
        let (ledger, spool, head) = (self.ledger(), self.spool(), head(SessionStatus::Running));
        SessionRecorder::start(RecorderOptions {
            ledger,
            spool,
            head,
            continues: false,
            held: None,
            requires_store: false,
            secrets: Vec::new(),
            warn,
        })
    }

    fn store(&self) -> SessionStore {
        SessionStore::new(counterproof_ledger::open(&self.ledger()).unwrap()).unwrap()
    }

    fn events(&self) -> Vec<Value> {
        self.store().timeline("s", &EventFilter::default(), 1000, None).unwrap().unwrap().events
    }
}

fn head(status: SessionStatus) -> SessionHead {
    SessionHead {
        session_id: "s".to_owned(),
        title: None,
        origin: Origin::Record,
        workflow: None,
        status,
        started_at: Timestamp::UNIX_EPOCH,
        ended_at: None,
        parent: None,
        coverage: Coverage::default(),
    }
}

fn opaque(text: &str) -> SessionEvent {
    let data = Value::from(text.repeat(20_000));
    SessionEvent::captured(Timestamp::UNIX_EPOCH, EventBody::Opaque(Opaque { data }))
}

const LIMIT: Duration = Duration::from_mins(1);

#[test]
fn an_event_is_in_the_store_when_record_returns() {
    let place = Place::new();
    let recorder = place.start().unwrap();
    assert_eq!(place.spool().is_running("s"), Some(true));
    assert!(matches!(place.start(), Err(RecordError::Running(_))));
    recorder.record(vec![opaque("a")]).unwrap();
    assert_eq!(place.events().len(), 1);
    assert_eq!(place.store().find("s").unwrap().unwrap().status, "running");
    let summary = recorder.finish(&head(SessionStatus::Completed), LIMIT).unwrap();
    assert_eq!(summary, RecorderSummary { events: 1, has_waiting: false });
    assert_eq!(place.store().find("s").unwrap().unwrap().status, "completed");
    assert!(matches!(recorder.record(vec![opaque("b")]), Err(RecordError::Ended)));
    drop(recorder);
    assert_eq!(place.spool().is_running("s"), None);
}

#[test]
fn records_of_several_threads_have_numbers_without_gaps() {
    let place = Place::new();
    let recorder = place.start().unwrap();
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| (0..25).for_each(|_| recorder.record(vec![opaque("a"), opaque("b")]).unwrap()));
        }
    });
    recorder.finish(&head(SessionStatus::Completed), LIMIT).unwrap();
    let seqs: Vec<u64> = place.events().iter().map(|event| event["seq"].as_u64().unwrap()).collect();
    assert_eq!(seqs, (1..=200).collect::<Vec<_>>());
}

#[test]
fn records_that_cannot_be_stored_wait_in_files_and_are_added_once() {
    let place = Place::new();
    // A folder is not a database.
    std::fs::create_dir(place.path()).unwrap();
    let recorder = place.start().unwrap();
    recorder.record(vec![opaque("a")]).unwrap();
    recorder.record(vec![opaque("a"), opaque("b")]).unwrap();
    let summary = recorder.finish(&head(SessionStatus::Failed), LIMIT).unwrap();
    assert_eq!(summary, RecorderSummary { events: 3, has_waiting: true });
    assert_eq!(place.warnings.load(Ordering::Relaxed), 1);
    drop(recorder);
    std::fs::remove_dir(place.path()).unwrap();
    let mut store = SessionStore::new(counterproof_ledger::open_or_create(&place.ledger()).unwrap()).unwrap();
    let files = place.spool().files().unwrap();
    let copies: Vec<_> = files.iter().map(|path| (path, std::fs::read(path).unwrap())).collect();
    assert_eq!(files.len(), 4);
    place.spool().drain(&mut store).unwrap();
    assert!(place.spool().files().unwrap().is_empty());
    // As if another process had moved them at the same time.
    for (path, bytes) in copies {
        write(path, &bytes, Durability::Cached).unwrap();
    }
    place.spool().drain(&mut store).unwrap();
    assert_eq!(place.events().iter().map(|event| event["data"].as_str().unwrap().len()).sum::<usize>(), 60_000);
    assert_eq!(place.store().find("s").unwrap().unwrap().status, "failed");
}

#[test]
fn a_file_that_is_not_a_batch_hides_no_other() {
    let place = Place::new();
    let recorder = place.start().unwrap();
    recorder.finish(&head(SessionStatus::Completed), LIMIT).unwrap();
    drop(recorder);
    let waiting = Place::new();
    std::fs::create_dir(waiting.path()).unwrap();
    let recorder = waiting.start().unwrap();
    recorder.record(vec![opaque("a")]).unwrap();
    drop(recorder);
    let path = place.spool().path().join("0.json");
    for file in waiting.spool().files().unwrap() {
        let copy = place.spool().path().join(file.file_name().unwrap());
        write(&copy, &std::fs::read(&file).unwrap(), Durability::Cached).unwrap();
    }
    write(&path, b"{\"torn", Durability::Cached).unwrap();
    place.spool().drain(&mut place.store()).unwrap();
    assert_eq!(place.events().len(), 1);
    assert!(!path.exists() && place.spool().path().join("0.json.rejected").exists());
}

#[test]
fn a_call_that_the_guard_and_the_model_saw_is_one_record() {
    let place = Place::new();
    let recorder = place.start().unwrap();
    let arguments = json!({"branch": "main"});
    let hash = counterproof_artifact::canonical::canonical_hash(&arguments);
    let call = |id: &str, kind: &str, rest: Value| {
        let mut event = json!({
            "v": "0.1", "type": kind, "ts": "2026-01-31T12:00:00Z", "run_id": "s", "source": {"shim_id": "x"},
            "call": {"call_id": id, "server_name": "git", "tool_name": "push", "args_hash": hash},
        });
        event.as_object_mut().unwrap().extend(rest.as_object().unwrap().clone());
        event.to_string()
    };
    let result = json!({"content": [{"type": "text", "text": "pus"}]}).to_string();
    let end = json!({"status": "OK", "latency_ms": 7, "preview": {"truncated": true, "result_preview": result}});
    let refused = json!({"decision": {"action": "BLOCK", "rule_id": "no-push", "explain": {"reason_code": "RULE"}},
        "status": "ERROR", "error": {"class": "policy_block"}});
    let lines = [
        call("1", "tool_call_end", end),
        call("2", "tool_call_decision", refused.clone()),
        call("2", "tool_call_end", refused),
    ];
    let mut ledger = counterproof_ledger::open_or_create(&place.ledger()).unwrap();
    let lines: Vec<EventLine<'_>> = lines.iter().map(|line| EventLine::parse(line.as_bytes()).unwrap()).collect();
    ledger.append(&lines).unwrap();
    let result = ToolResult {
        success: Some(true),
        content: Some("pushed".into()),
        truncated: Some(false),
        error: None,
        sandbox: None,
    };
    let body = ToolCall {
        tool_name: "mcp__git__push".into(),
        arguments,
        result,
        call_id: Some("toolu_1".into()),
        ..ToolCall::default()
    };
    let known = SessionEvent::reconstructed("s/toolu_1", Timestamp::UNIX_EPOCH, EventBody::ToolCall(body));
    recorder.record(vec![known]).unwrap();
    recorder.finish(&head(SessionStatus::Completed), LIMIT).unwrap();
    absorb(&mut place.store(), "s").unwrap();
    let events = place.events();
    assert_eq!(events.len(), 2);
    assert_eq!((&events[0]["tool_name"], &events[0]["call_id"]), (&json!("git.push"), &json!("toolu_1")));
    assert_eq!((&events[0]["fidelity"], &events[0]["latency_ms"]), (&json!("captured"), &json!(7)));
    assert_eq!(
        (&events[0]["result"]["content"], &events[0]["arguments"]),
        (&json!("pushed"), &json!({"branch": "main"}))
    );
    assert_eq!(events[1]["decision"]["rule_id"], "no-push");
    assert_eq!(
        events[1]["result"],
        json!({"success": false, "content": null, "truncated": false, "error": "policy_block: RULE"})
    );
    let overview = place.store().overview("s").unwrap().unwrap();
    assert_eq!((overview.total_tool_calls, overview.milestones.len()), (2, 1));
}

#[test]
fn a_session_that_must_be_stored_does_not_start_without_a_store() {
    let place = Place::new();
    std::fs::create_dir(place.path()).unwrap();
    let (ledger, spool, head) = (place.ledger(), place.spool(), head(SessionStatus::Running));
    let warn = Box::new(|_: &str| {});
    let (continues, requires_store, secrets) = (false, true, Vec::new());
    let options = RecorderOptions { ledger, spool, head, continues, held: None, requires_store, secrets, warn };
    assert!(matches!(SessionRecorder::start(options), Err(RecordError::Store(_))));
    assert!(place.spool().files().unwrap().is_empty(), "nothing of it is stored later");
}

#[test]
fn a_session_whose_recorder_is_gone_has_what_was_seen() {
    let place = Place::new();
    let recorder = place.start().unwrap();
    let call = ToolCall { tool_name: "read".into(), ..ToolCall::default() };
    recorder.record(vec![SessionEvent::captured(Timestamp::UNIX_EPOCH, EventBody::ToolCall(call))]).unwrap();
    let of = |store: &mut SessionStore| {
        let session = store.find("s").unwrap().unwrap();
        (session.status, session.coverage.tool_calls, session.coverage.llm_calls)
    };
    recover(&mut place.store(), &place.spool(), true).unwrap();
    assert_eq!(of(&mut place.store()), ("running".into(), Share::Partial, Share::None));
    drop(recorder);
    recover(&mut place.store(), &place.spool(), false).unwrap();
    assert_eq!(of(&mut place.store()).0, "running", "it may run on another machine");
    recover(&mut place.store(), &place.spool(), true).unwrap();
    assert_eq!(of(&mut place.store()), ("interrupted".into(), Share::Partial, Share::None));
    // The end was on its way.
    let mut store = place.store();
    store.append(&[&late_end()]).unwrap();
    recover(&mut store, &place.spool(), true).unwrap();
    assert_eq!(of(&mut store).0, "completed");
}

#[test]
fn a_session_whose_recorder_was_killed_is_never_seen_whole() {
    let place = Place::new();
    let all = Coverage { llm_calls: Share::All, tool_calls: Share::All, files: Share::All, commands: Share::All };
    let head = SessionHead { coverage: all, ..head(SessionStatus::Running) };
    let start = || {
        let options = RecorderOptions {
            ledger: place.ledger(),
            spool: place.spool(),
            head: head.clone(),
            continues: false,
            held: None,
            requires_store: true,
            secrets: Vec::new(),
            warn: Box::new(|_| {}),
        };
        SessionRecorder::start(options).unwrap()
    };
    let coverage = || place.store().find("s").unwrap().unwrap().coverage;
    let recorder = start();
    assert_eq!(coverage(), all);
    drop(recorder);
    recover(&mut place.store(), &place.spool(), true).unwrap();
    let partial = all.interrupted();
    assert_eq!(coverage(), partial);
    assert_eq!(partial.llm_calls, Share::Partial);
    // What was never seen is not seen in part.
    assert_eq!(Coverage::default().interrupted(), Coverage::default());
}

/// The end of a session, as a recorder stores it.
fn late_end() -> crate::store::Batch {
    let head = crate::store::HeadRow::new(&head(SessionStatus::Completed), 9, str::to_owned);
    crate::store::Batch { session_id: "s".to_owned(), head: Some(head), stored: crate::store::StoredEvents::default() }
}

#[test]
fn a_pause_is_taken_once_and_never_by_a_later_process() {
    let (place, spool) = (Place::new(), Place::spool);
    let recorder = place.start().unwrap();
    assert_eq!(spool(&place).holder("s"), Some(std::process::id()));
    assert!(!spool(&place).takes_pause("s"));
    spool(&place).request_pause("s").unwrap();
    spool(&place).request_pause("s").unwrap();
    assert!(spool(&place).takes_pause("s") && !spool(&place).takes_pause("s"));
    spool(&place).request_pause("s").unwrap();
    recorder.finish(&head(SessionStatus::Completed), LIMIT).unwrap();
    assert!(!spool(&place).takes_pause("s"), "it ended before it saw the request");
    drop(recorder);
    assert_eq!(spool(&place).holder("s"), None);
    spool(&place).request_pause("s").unwrap();
    let _recorder = place.start().unwrap();
    assert!(!spool(&place).takes_pause("s"));
}

#[test]
fn short_words_are_not_masked() {
    let place = Place::new();
    let recorder = place.start().unwrap();
    for secret in ["test", "sk-ab12", "a-long-secret"] {
        recorder.mask(secret).unwrap();
    }
    let data = Value::from("a test of sk-ab12 and a-long-secret");
    recorder.record(vec![SessionEvent::captured(Timestamp::UNIX_EPOCH, EventBody::Opaque(Opaque { data }))]).unwrap();
    assert_eq!(place.events()[0]["data"], "a test of [REDACTED] and [REDACTED]");
}
