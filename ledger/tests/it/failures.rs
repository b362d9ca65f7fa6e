//! What a ledger has about calls and servers that failed, in both databases.

use counterproof_ledger::event::ProcessExit;
use counterproof_ledger::line::EventLine;
use counterproof_ledger::location::LedgerLocation;
use counterproof_ledger::query::{CallFilter, CallRecord, ServerProcess, calls, failed_calls, servers};
use counterproof_ledger::store::{EventStore, SourceId};
use counterproof_ledger::{open, open_or_create};
use serde_json::{Value, json};

use crate::databases::in_both_databases;
use crate::kit::Kit;
#[cfg(unix)]
use crate::server::Server;

in_both_databases!(
    calls_have_the_reasons_of_their_refusal_and_of_their_failure,
    the_servers_of_a_run_are_known_with_their_ends,
);

fn event(shim: &str, seq: u64, kind: &str, more: &Value) -> String {
    let mut event = json!({
        "type": kind, "ts": format!("2026-01-31T12:00:{seq:02}Z"), "run_id": "r1", "seq": seq,
        "source": {"shim_id": shim},
    });
    for (field, value) in more.as_object().unwrap() {
        event[field] = value.clone();
    }
    event.to_string()
}

fn store_with(location: &LedgerLocation, lines: &[String]) -> Box<dyn EventStore> {
    let mut store = counterproof_ledger::open_or_create(location).unwrap();
    let events: Vec<_> = lines.iter().map(|line| EventLine::parse(line.as_bytes()).unwrap()).collect();
    store.append(&events).unwrap();
    store
}

/// The decision about a call, and its end.
fn call(id: &str, seq: u64, [action, status]: [&str; 2]) -> [String; 2] {
    let call = json!({"call_id": id, "server_name": "git", "tool_name": "push"});
    let decision = json!({"action": action, "explain": {"summary": format!("decided {id}")}});
    let error = (status != "OK").then(|| json!({"class": "transport", "message": format!("failed {id}")}));
    [
        event("s1", seq, "tool_call_decision", &json!({"call": call, "decision": decision})),
        event("s1", seq + 1, "tool_call_end", &json!({"call": call, "status": status, "error": error})),
    ]
}

fn calls_have_the_reasons_of_their_refusal_and_of_their_failure(location: &LedgerLocation) {
    let lines = [
        call("fine", 1, ["ALLOW", "OK"]),
        call("refused", 3, ["BLOCK", "ERROR"]),
        call("failed", 5, ["ALLOW", "TIMEOUT"]),
        call("cancelled", 7, ["ALLOW", "CANCELLED"]),
    ];
    let mut store = store_with(location, &lines.concat());
    let mut found = |with_previews| {
        let filter = CallFilter { run_id: Some("r1".to_owned()), with_previews, limit: 9, ..CallFilter::default() };
        let mut found = calls(store.as_mut(), &filter).unwrap();
        found.reverse();
        let reasons =
            |call: CallRecord| (call.decision_summary.unwrap_or_default(), call.error_message.unwrap_or_default());
        found.into_iter().map(reasons).collect::<Vec<_>>()
    };
    let texts = |summary: &str, message: &str| (summary.to_owned(), message.to_owned());
    let expected = [
        texts("", ""),
        texts("decided refused", "failed refused"),
        texts("", "failed failed"),
        texts("", "failed cancelled"),
    ];
    assert_eq!(found(true), expected);
    assert_eq!(found(false), vec![texts("", ""); 4]);
    assert_eq!(failed_calls(store.as_mut(), "r1").unwrap(), 1, "neither refused nor cancelled");
    assert_eq!(failed_calls(store.as_mut(), "r2").unwrap(), 0);
}

fn the_servers_of_a_run_are_known_with_their_ends(location: &LedgerLocation) {
    let start = |shim: &str, meta: Value| event(shim, 1, "run_start", &json!({"run": {"meta": meta}}));
    let end = |shim: &str, run: Value| event(shim, 2, "run_end", &json!({ "run": run }));
    let lines = [
        start("agent", json!({"kind": "agent", "program": "sh"})),
        end("agent", json!({"status": "FAILED", "exit": {"code": 1}})),
        start("crashed", json!({"server_name": "git"})),
        end("crashed", json!({"status": "FAILED", "exit": {"signal": 11}})),
        start("odd", json!({})),
        end("odd", json!({"status": "SUCCEEDED", "exit": "unknown"})),
        start("lost", json!({"server_name": "files"})),
    ];
    let mut store = store_with(location, &lines);
    store.mark_lost(&SourceId { run_id: "r1".to_owned(), shim_id: "lost".to_owned() }).unwrap();
    let mut found = servers(store.as_mut(), "r1").unwrap();
    found.sort_by(|a, b| a.name.cmp(&b.name));
    let process = |name: Option<&str>, status: Option<&str>| ServerProcess {
        name: name.map(str::to_owned),
        status: status.map(str::to_owned),
        is_lost: false,
        exit: None,
    };
    let expected = [
        process(None, Some("SUCCEEDED")),
        ServerProcess { is_lost: true, ..process(Some("files"), None) },
        ServerProcess { exit: Some(ProcessExit::Signal(11)), ..process(Some("git"), Some("FAILED")) },
    ];
    assert_eq!(found, expected);
}

#[test]
fn a_file_with_a_view_or_a_trigger_is_refused_and_stays() {
    for made in [
        "CREATE TRIGGER t AFTER INSERT ON events BEGIN DELETE FROM events; END",
        "CREATE VIEW hidden AS SELECT * FROM events",
    ] {
        let kit = Kit::new();
        let location = LedgerLocation::SqliteFile(kit.ledger());
        drop(open_or_create(&location).unwrap());
        let connection = rusqlite::Connection::open(kit.ledger()).unwrap();
        connection.execute_batch(made).unwrap();
        drop(connection);
        let before = std::fs::read(kit.ledger()).unwrap();
        for error in [open(&location).err().unwrap(), open_or_create(&location).err().unwrap()] {
            assert!(error.to_string().contains("it has the view or trigger"), "{error}");
        }
        assert_eq!(std::fs::read(kit.ledger()).unwrap(), before);
    }
}
