//! What both databases do in the same way. The tests of PostgreSQL need a server: `cargo xtask interop postgres` runs them.

use counterproof_ledger::line::EventLine;
use counterproof_ledger::location::LedgerLocation;
use counterproof_ledger::query::{
    CallFilter, EventFilter, RunFilter, RunState, calls, events_after, events_of_run, incomplete_sources, last_events,
    lost_runs, open_sources, prunable_runs, prune_runs, runs, sources_without_calls,
};
use counterproof_ledger::store::{AppendResult, EventStore, SourceId, StoreError};
use proptest::prelude::*;
use proptest::test_runner::{Config, TestRunner};
use serde_json::{Value, json};

use crate::kit::{Kit, LIMIT};
#[cfg(unix)]
use crate::server::Server;
use crate::tables::dump;

/// Tests each function with each database.
macro_rules! in_both_databases {
    ($($name:ident),* $(,)?) => {
        mod sqlite {
            $(#[test]
            fn $name() {
                let kit = super::Kit::new();
                super::$name(&super::LedgerLocation::SqliteFile(kit.ledger()));
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

pub(crate) use in_both_databases;

in_both_databases!(
    a_batch_is_added_once,
    the_tables_do_not_depend_on_the_order_of_events,
    odd_events_are_stored_without_loss,
    a_run_ends_with_its_last_source_and_has_the_worst_status,
    a_lost_source_fails_its_run_unless_it_has_ended,
    calls_are_found_by_their_fields,
    old_runs_are_deleted_and_others_stay,
    a_newer_version_is_refused,
    a_ledger_is_not_created_by_opening_it,
    led_001_ten_thousand_events_are_counted_right,
    a_reader_that_follows_sees_the_events_of_all_writers,
    known_values_count_before_missing_ones,
    gaps_are_found_whether_numbers_start_at_zero_or_one,
    calls_whose_end_is_not_stored_are_found,
    runs_that_have_not_ended_are_marked,
);

/// An event of a source with a number.
fn event(run: &str, shim: &str, seq: u64, kind: &str, more: &Value) -> String {
    let mut event = json!({
        "v": "0.1.0", "type": kind, "ts": format!("2026-01-31T12:{:02}:{:02}.5Z", seq / 60 % 60, seq % 60), "run_id": run,
        "seq": seq, "agent_id": "a", "client": "codex", "env": "ci",
        "source": {"host_id": "h", "proc_id": "1", "shim_id": shim},
    });
    for (field, value) in more.as_object().unwrap() {
        event[field] = value.clone();
    }
    event.to_string()
}

fn call(id: &str, tool: &str) -> Value {
    json!({"call_id": id, "server_name": "git", "tool_name": tool, "args_hash": format!("{tool}-hash")})
}

/// The lines of a source with calls, which end with a run end.
fn source(run: &str, shim: &str, calls: u64, status: &str) -> Vec<String> {
    let policy = json!({"policy_id": "p", "policy_version": "1", "policy_hash": "h"});
    let start = json!({"run": {"started_at": "2026-01-31T11:59:00Z", "mode": "control", "policy": policy}});
    let mut lines = vec![event(run, shim, 1, "run_start", &start)];
    for number in 0..calls {
        let call = call(&format!("{shim}-{number}"), ["status", "push"][usize::from(number % 3 == 0)]);
        let seq = 2 + number * 3;
        let mut started = call.clone();
        started["bytes_in"] = json!(10 + number);
        started["preview"] = json!({"truncated": number % 4 == 0, "args_preview": format!("[REDACTED] {number}")});
        lines.push(event(run, shim, seq, "tool_call_start", &json!({ "call": started })));
        let (action, end) = if number % 5 == 0 { ("BLOCK", "ERROR") } else { ("ALLOW", "OK") };
        let hint = if number % 5 == 0 { json!({"hint_text": "no", "suggested_args": {"a": 1}}) } else { Value::Null };
        let decision = json!({"action": action, "explain": {"reason_code": "R"}, "policy": policy, "hint": hint});
        lines.push(event(run, shim, seq + 1, "tool_call_decision", &json!({ "call": call, "decision": decision })));
        let result = json!({"truncated": false, "result_preview": "done"});
        let end = json!({ "call": call, "status": end, "latency_ms": number, "bytes_out": 7, "preview": result });
        lines.push(event(run, shim, seq + 2, "tool_call_end", &end));
    }
    let summary =
        json!({"run": {"ended_at": "2026-01-31T13:00:00Z", "status": status, "summary": {"calls_total": calls}}});
    lines.push(event(run, shim, 2 + calls * 3, "run_end", &summary));
    lines
}

fn create(location: &LedgerLocation) -> Box<dyn EventStore> {
    counterproof_ledger::open_or_create(location).unwrap()
}

fn append(store: &mut dyn EventStore, lines: &[String]) -> AppendResult {
    let events = lines.iter().map(|line| EventLine::parse(line.as_bytes()).unwrap());
    store.append(&events.collect::<Vec<_>>()).unwrap()
}

fn a_batch_is_added_once(location: &LedgerLocation) {
    let mut store = create(location);
    let mut lines = source("r1", "s1", 7, "SUCCEEDED");
    lines.push("{\"type\":\"other\",\"ts\":\"2026-01-31T12:00:00Z\",\"run_id\":\"r2\",\"n\":1.50}".to_owned());
    let total = lines.len() as u64;
    assert_eq!(append(store.as_mut(), &lines), AppendResult { added: total, repeated: 0 });
    let tables = dump(location);
    assert_eq!(append(store.as_mut(), &lines), AppendResult { added: 0, repeated: total });
    // Also within one batch.
    let mut twice = source("r3", "s3", 1, "SUCCEEDED");
    twice.extend(twice.clone());
    assert_eq!(append(store.as_mut(), &twice), AppendResult { added: 5, repeated: 5 });
    prune(store.as_mut(), "r3");
    assert_eq!(dump(location), tables);
    let stored = events_after(store.as_mut(), &EventFilter::default(), 0, 1000).unwrap();
    assert_eq!(stored.into_iter().map(|event| event.line).collect::<Vec<_>>(), lines);
}

fn prune(store: &mut dyn EventStore, run: &str) {
    let runs = prunable_runs(store, "9").unwrap();
    let runs: Vec<_> = runs.into_iter().filter(|it| it.run_id == run).collect();
    prune_runs(store, &runs, "0").unwrap();
}

fn the_tables_do_not_depend_on_the_order_of_events(location: &LedgerLocation) {
    let mut lines = source("r1", "s1", 4, "CANCELLED");
    lines.extend(source("r1", "s2", 3, "TERMINATED"));
    lines.extend(source("r2", "s3", 2, "SUCCEEDED"));
    // Events of a source with different identities, and with none.
    lines.push(event("r1", "s1", 0, "x", &json!({"agent_id": 5})));
    lines.push(event("r1", "s2", 90, "x", &json!({"agent_id": "b", "env": "dev", "client": null})));
    // Two events of one call that contradict each other, and an event without a number.
    lines.push(event("r2", "s9", 1, "tool_call_end", &json!({"call": call("s3-0", "other"), "status": "TIMEOUT"})));
    lines.push(
        "{\"type\":\"run_start\",\"ts\":\"2025-01-31T12:00:00Z\",\"run_id\":\"r2\",\"agent_id\":\"first\"}".to_owned(),
    );
    let mut store = create(location);
    append(store.as_mut(), &lines);
    let expected = dump(location);
    let clear = |store: &mut dyn EventStore| {
        for run in ["r1", "r2"] {
            prune(store, run);
        }
    };
    let orders = (Just(lines.clone()).prop_shuffle(), prop::collection::vec(0..lines.len(), 0..20), 1..30_usize);
    let mut runner = TestRunner::new(Config { failure_persistence: None, cases: 40, ..Config::default() });
    let store = std::cell::RefCell::new(store);
    let tested = runner.run(&orders, |(mut order, repeats, batch)| {
        let mut store = store.borrow_mut();
        clear(store.as_mut());
        order.extend(repeats.into_iter().map(|number| lines[number].clone()));
        for lines in order.chunks(batch) {
            append(store.as_mut(), lines);
        }
        prop_assert_eq!(dump(location), expected.clone());
        Ok(())
    });
    tested.unwrap();
}

fn known_values_count_before_missing_ones(location: &LedgerLocation) {
    let mut store = create(location);
    let identity = |store: &mut dyn EventStore, run: &str| {
        let found = runs(store, &RunFilter { run_id: Some(run.to_owned()), since: None, limit: 1 }).unwrap();
        (found[0].agent_id.clone(), found[0].client.clone(), found[0].principal.clone())
    };
    let text = |text: &str| Some(text.to_owned());
    // The first event of the source has fields of an unexpected type.
    append(store.as_mut(), &[event("r1", "s1", 0, "x", &json!({"agent_id": 5}))]);
    append(store.as_mut(), &source("r1", "s1", 1, "SUCCEEDED"));
    assert_eq!(identity(store.as_mut(), "r1"), (text("a"), text("codex"), None));
    // The first source states less than the second one.
    let unknown = json!({"agent_id": "unknown", "client": null, "env": null});
    append(store.as_mut(), &[event("r2", "s1", 1, "x", &unknown)]);
    assert_eq!(identity(store.as_mut(), "r2"), (text("unknown"), None, None));
    append(store.as_mut(), &[event("r2", "s2", 2, "x", &json!({"principal": "ada"}))]);
    assert_eq!(identity(store.as_mut(), "r2"), (text("a"), text("codex"), text("ada")));
}

fn gaps_are_found_whether_numbers_start_at_zero_or_one(location: &LedgerLocation) {
    let mut store = create(location);
    for (shim, numbers) in
        [("a", vec![0, 1, 2]), ("b", vec![1, 2]), ("c", vec![0, 2]), ("d", vec![2, 3]), ("e", vec![i64::MAX as u64])]
    {
        let lines: Vec<_> = numbers.into_iter().map(|seq| event("r1", shim, seq, "x", &json!({}))).collect();
        append(store.as_mut(), &lines);
    }
    let found = incomplete_sources(store.as_mut()).unwrap();
    let found: Vec<_> = found.iter().map(|it| (it.source.shim_id.as_str(), it.stored, it.expected)).collect();
    assert_eq!(found, [("c", 2, 3), ("d", 2, 3), ("e", 1, i64::MAX as u64)]);
}

fn calls_whose_end_is_not_stored_are_found(location: &LedgerLocation) {
    let mut store = create(location);
    append(store.as_mut(), &source("r1", "s1", 3, "SUCCEEDED"));
    let mut lines = source("r1", "s2", 3, "SUCCEEDED");
    lines.retain(|line| !line.contains("s2-1"));
    append(store.as_mut(), &lines);
    let found = sources_without_calls(store.as_mut()).unwrap();
    let found: Vec<_> = found.iter().map(|it| (it.source.shim_id.as_str(), it.stored, it.expected)).collect();
    assert_eq!(found, [("s2", 2, 3)]);
}

fn runs_that_have_not_ended_are_marked(location: &LedgerLocation) {
    let mut store = create(location);
    let lines = source("open", "s1", 1, "SUCCEEDED");
    append(store.as_mut(), &source("ended", "s1", 1, "SUCCEEDED"));
    append(store.as_mut(), &lines[..lines.len() - 1]);
    append(store.as_mut(), &source("lost", "s1", 1, "SUCCEEDED")[..2]);
    store.mark_lost(&crate::kit::source("lost", "s1")).unwrap();
    let mut found: Vec<_> =
        prunable_runs(store.as_mut(), "9").unwrap().into_iter().map(|run| (run.run_id, run.is_open)).collect();
    found.sort();
    assert_eq!(found, [("ended".to_owned(), false), ("lost".to_owned(), false), ("open".to_owned(), true)]);
}

fn odd_events_are_stored_without_loss(location: &LedgerLocation) {
    let long = "x".repeat(5000);
    let lines = [
        // NUL characters, which PostgreSQL cannot store in a text, and a name that no index can contain.
        event("r1", "s1", 1, "tool_call_start", &json!({"call": call("c\u{1}1", &format!("a\0b{long}")), "\0": "\0"})),
        event("r1", "s1", 2, &long[..200], &json!({"call": {"call_id": 5}})),
        event("r1", "s1", 3, "tool_call_end", &json!({"call": call(&long, "t"), "latency_ms": 1.5})),
        event(
            "r1",
            "s1",
            4,
            "tool_call_end",
            &json!({"call": call("c2", "t"), "latency_ms": 1e300, "bytes_out": u64::MAX}),
        ),
        event("r1", "s1", u64::MAX, "x", &json!({"workload": {"labels": {"a": "\0"}}})),
        "{\"ts\":\"2026-01-31T12:00:00+01:00\",\"type\":\"t\",\"run_id\":\"r2\",\"source\":\"text\",\"x\":\"\\ud800\"}"
            .to_owned(),
        "{\"ts\":\"2026-01-31T12:00:00.123456789Z\",\"type\":\"t\",\"run_id\":\"r2\",\"seq\":-1,\"x\":1.0,  \"x\":1}"
            .to_owned(),
    ];
    let mut store = create(location);
    assert_eq!(append(store.as_mut(), &lines), AppendResult { added: 7, repeated: 0 });
    assert_eq!(append(store.as_mut(), &lines), AppendResult { added: 0, repeated: 7 });
    let stored = last_events(store.as_mut(), 100).unwrap();
    assert_eq!(stored.into_iter().map(|event| event.line).collect::<Vec<_>>(), lines);
    let found = calls(store.as_mut(), &CallFilter { limit: 9, ..CallFilter::default() }).unwrap();
    let c2 = found.iter().find(|call| call.call_id == "c2").unwrap();
    assert_eq!((found.len(), c2.latency_ms, c2.bytes_out), (2, Some(i64::MAX), Some(i64::MAX)));
    let c1 = found.iter().find(|call| call.call_id == "c\u{1}1").unwrap();
    let tool = c1.tool_name.as_deref().unwrap();
    assert!(tool.starts_with("a\u{fffd}bxxx") && tool.ends_with('…') && tool.len() < 600, "{tool}");
    let (first, last) = events_of_run(store.as_mut(), "r2").unwrap().unwrap();
    assert_eq!(last - first, 1);
    let filter = EventFilter { run_id: Some("r2".to_owned()), since: None };
    assert_eq!(events_after(store.as_mut(), &filter, 0, 9).unwrap().len(), 2);
}

fn a_run_ends_with_its_last_source_and_has_the_worst_status(location: &LedgerLocation) {
    let mut store = create(location);
    let run = |store: &mut dyn EventStore| {
        let mut found = runs(store, &RunFilter { limit: 5, ..RunFilter::default() }).unwrap();
        assert_eq!(found.len(), 1);
        let run = found.remove(0);
        (run.state(), run.status, run.sources, run.calls, run.refused, run.errors)
    };
    let (first, second) = (source("r1", "s1", 6, "FAILED"), source("r1", "s2", 1, "SUCCEEDED"));
    append(store.as_mut(), &second);
    assert_eq!(run(store.as_mut()), (RunState::Ended, Some("SUCCEEDED".to_owned()), 1, 1, 1, 1));
    append(store.as_mut(), &first[..first.len() - 1]);
    assert_eq!(run(store.as_mut()), (RunState::Open, None, 2, 7, 3, 3));
    append(store.as_mut(), &first[first.len() - 1..]);
    assert_eq!(run(store.as_mut()), (RunState::Ended, Some("FAILED".to_owned()), 2, 7, 3, 3));
}

fn a_lost_source_fails_its_run_unless_it_has_ended(location: &LedgerLocation) {
    let mut store = create(location);
    let lines = source("r1", "s1", 1, "SUCCEEDED");
    let lost = SourceId { run_id: "r1".to_owned(), shim_id: "s1".to_owned() };
    store.mark_lost(&lost).unwrap();
    append(store.as_mut(), &lines[..lines.len() - 1]);
    assert_eq!(open_sources(store.as_mut()).unwrap(), std::slice::from_ref(&lost));
    store.mark_lost(&lost).unwrap();
    let state = |store: &mut dyn EventStore| {
        let found = runs(store, &RunFilter { run_id: Some("r1".to_owned()), since: None, limit: 1 }).unwrap();
        (found[0].state(), found[0].status.clone().unwrap())
    };
    assert_eq!(state(store.as_mut()), (RunState::Lost, "FAILED".to_owned()));
    assert_eq!((open_sources(store.as_mut()).unwrap(), lost_runs(store.as_mut()).unwrap()), (vec![], 1));
    // The end was in another file.
    append(store.as_mut(), &lines[lines.len() - 1..]);
    assert_eq!(state(store.as_mut()), (RunState::Ended, "SUCCEEDED".to_owned()));
    assert_eq!(lost_runs(store.as_mut()).unwrap(), 0);
    append(store.as_mut(), &[event("r1", "s1", 99, "x", &json!({}))]);
    let incomplete = incomplete_sources(store.as_mut()).unwrap();
    assert_eq!((incomplete[0].stored, incomplete[0].expected, &incomplete[0].source), (6, 99, &lost));
}

fn calls_are_found_by_their_fields(location: &LedgerLocation) {
    let mut store = create(location);
    append(store.as_mut(), &source("r1", "s1", 10, "SUCCEEDED"));
    append(store.as_mut(), &source("r2", "s2", 5, "SUCCEEDED"));
    let mut found = |change: &dyn Fn(&mut CallFilter)| {
        let mut filter = CallFilter { limit: 100, ..CallFilter::default() };
        change(&mut filter);
        calls(store.as_mut(), &filter).unwrap().len()
    };
    let text = |text: &str| Some(text.to_owned());
    assert_eq!(found(&|_| {}), 15);
    assert_eq!(found(&|it| it.limit = 4), 4);
    assert_eq!(found(&|it| it.run_id = text("r2")), 5);
    assert_eq!(found(&|it| it.tool_name = text("push")), 6);
    assert_eq!(found(&|it| (it.server_name, it.decision) = (text("git"), text("BLOCK"))), 3);
    assert_eq!(found(&|it| (it.status, it.run_id) = (text("OK"), text("r1"))), 8);
    assert_eq!(found(&|it| (it.args_hash, it.since) = (text("push-hash"), text("2026-01-31T12:00:20"))), 2);
}

fn a_reader_that_follows_sees_the_events_of_all_writers(location: &LedgerLocation) {
    create(location).close().unwrap();
    let (mut seen, mut last) = (std::collections::BTreeSet::new(), 0);
    std::thread::scope(|scope| {
        for writer in 0..4 {
            scope.spawn(move || {
                let mut store = create(location);
                for line in source("r1", &format!("s{writer}"), 20, "SUCCEEDED") {
                    append(store.as_mut(), &[line]);
                }
            });
        }
        let mut store = create(location);
        let start = std::time::Instant::now();
        while seen.len() < 4 * 62 && start.elapsed() < LIMIT {
            for event in events_after(store.as_mut(), &EventFilter::default(), last, 7).unwrap() {
                assert!(event.id > last);
                last = event.id;
                assert!(seen.insert(event.line));
            }
        }
    });
    assert_eq!(seen.len(), 4 * 62);
}

fn old_runs_are_deleted_and_others_stay(location: &LedgerLocation) {
    let mut store = create(location);
    append(store.as_mut(), &source("r1", "s1", 2, "SUCCEEDED"));
    let kept = dump(location);
    for number in 0..50 {
        let old = source(&format!("old-{number}"), "s1", 1, "SUCCEEDED");
        append(store.as_mut(), &old.iter().map(|line| line.replace("2026-", "2025-")).collect::<Vec<_>>());
    }
    let before = "2026-01-01T00:00:00.000000000Z";
    let old = prunable_runs(store.as_mut(), before).unwrap();
    assert_eq!(old.len(), 50);
    prune_runs(store.as_mut(), &old, before).unwrap();
    store.compact().unwrap();
    assert_eq!(dump(location).replace("2025-01-31T", "2026-01-31T"), kept, "a policy that is in use stays");
    assert!(store.diagnose().unwrap().iter().all(|check| check.remedy.is_none()));
    store.close().unwrap();
}

fn a_newer_version_is_refused(location: &LedgerLocation) {
    create(location).close().unwrap();
    crate::tables::execute(
        location,
        ["PRAGMA user_version = 999", "UPDATE counterproof.schema_version SET version = 999"],
    );
    for opened in [counterproof_ledger::open(location), counterproof_ledger::open_or_create(location)] {
        let error = opened.err().unwrap();
        assert!(matches!(error, StoreError::Newer { found: 999, .. }), "{error}");
    }
}

fn a_ledger_is_not_created_by_opening_it(location: &LedgerLocation) {
    let error = counterproof_ledger::open(location).err().unwrap();
    assert!(matches!(error, StoreError::Missing { .. }), "{error}");
    create(location).close().unwrap();
    counterproof_ledger::open(location).unwrap();
}

fn led_001_ten_thousand_events_are_counted_right(location: &LedgerLocation) {
    let mut store = create(location);
    let mut lines = Vec::new();
    for run in 0..10 {
        lines.extend(source(&format!("r{run}"), "s1", 333, "SUCCEEDED"));
    }
    assert_eq!(lines.len(), 10_010);
    for batch in lines.chunks(1000) {
        append(store.as_mut(), batch);
    }
    store.close().unwrap();
    let mut store = counterproof_ledger::open(location).unwrap();
    let found = runs(store.as_mut(), &RunFilter { limit: 50, ..RunFilter::default() }).unwrap();
    let counts: Vec<_> = found.iter().map(|run| (run.calls, run.refused, run.errors, run.state())).collect();
    assert_eq!(counts, [(333, 67, 67, RunState::Ended); 10]);
    assert_eq!(events_after(store.as_mut(), &EventFilter::default(), 0, 20_000).unwrap().len(), 10_010);
    assert_eq!(incomplete_sources(store.as_mut()).unwrap(), []);
    let problems: Vec<_> = store.diagnose().unwrap().into_iter().filter(|check| check.remedy.is_some()).collect();
    assert_eq!(problems, [], "the integrity is checked");
}
