//! Recorded runs as artifacts: what a case contains, and that any events give a valid one.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test that panics has failed")]

use camino::{Utf8Path, Utf8PathBuf};
use counterproof_artifact::Side;
use counterproof_export::Destination;
use counterproof_export::ledger::{
    CASES_FILE, ExportError, ExportedRuns, SelectedRun, case_id, export_runs, run_id, write_cases,
};
use counterproof_ledger::line::EventLine;
use counterproof_ledger::location::LedgerLocation;
use counterproof_ledger::query::{RunRecord, find_run};
use counterproof_ledger::store::{EventStore, SourceId};
use counterproof_store::write::{Durability, write};
use counterproof_validation::validate_path;
use proptest::prelude::*;
use proptest::test_runner::{Config, TestRunner};
use serde_json::{Value, json};

/// A PostgreSQL server, as the tests of the ledger start it.
#[cfg(unix)]
#[expect(dead_code, reason = "the tests of the ledger use all of it")]
#[path = "../../ledger/tests/it/server.rs"]
mod server;

/// A folder with a ledger.
struct Kit(tempfile::TempDir);

impl Kit {
    fn new() -> Self {
        Self(tempfile::tempdir().unwrap())
    }

    fn location(&self) -> LedgerLocation {
        LedgerLocation::SqliteFile(Utf8Path::from_path(self.0.path()).unwrap().join("ledger.db"))
    }
}

/// Events of a run below a guard of this mode and policy.
fn guarded(run: &'static str, mode: &str, policy: &Value) -> Vec<Value> {
    let start = json!({"mode": mode, "meta": {"server_name": "shop"}, "policy": policy});
    let source = Source { run, shim: "s", events: Vec::new() };
    source.event("run_start", 0, &json!({ "run": start })).finish(1, "SUCCEEDED")
}

#[test]
fn a_run_of_two_processes_is_one_case_in_the_order_of_time() {
    two_processes(&Kit::new().location());
}

#[cfg(unix)]
mod postgres {
    #[test]
    #[ignore = "needs a PostgreSQL server: cargo xtask interop postgres"]
    fn a_run_of_two_processes_is_one_case_in_the_order_of_time() {
        super::two_processes(&super::server::Server::start().location());
    }
}

/// A folder of all runs.
struct Runs(tempfile::TempDir);

impl Runs {
    fn new() -> Self {
        Self(tempfile::tempdir().unwrap())
    }

    fn path(&self) -> &Utf8Path {
        Utf8Path::from_path(self.0.path()).unwrap()
    }

    /// Exports runs, and checks that the folder is valid.
    fn export(&self, store: &mut dyn EventStore, selected: &[RunRecord]) -> Result<ExportedRuns, ExportError> {
        let selected: Vec<_> =
            selected.iter().map(|run| SelectedRun { run: run.clone(), case_id: case_id(run).unwrap() }).collect();
        let run_id = run_id(&selected[0].run).unwrap();
        let destination = Destination {
            out: self.path(),
            side: Side::New,
            run_id: &run_id,
            writer: "test".to_owned(),
            is_deterministic: false,
        };
        let exported = export_runs(store, &selected, &destination, format!("../../{CASES_FILE}"))?;
        let report = validate_path(&exported.folder).unwrap();
        assert!(report.findings.is_empty(), "{:#?}", report.findings);
        Ok(exported)
    }

    /// Exports one run. Returns its case.
    fn case(&self, store: &mut dyn EventStore, run: &str) -> Value {
        let run = record(store, run);
        let exported = self.export(store, &[run]).unwrap();
        json_file(&exported.folder.join(format!("{}.json", exported.cases[0].case_id)))
    }
}

fn json_file(path: &Utf8PathBuf) -> Value {
    serde_json::from_slice(&std::fs::read(path).unwrap()).unwrap()
}

fn record(store: &mut dyn EventStore, run: &str) -> RunRecord {
    find_run(store, run).unwrap().unwrap()
}

fn append(store: &mut dyn EventStore, lines: &[Value]) {
    let lines: Vec<String> = lines.iter().map(Value::to_string).collect();
    let events: Vec<_> = lines.iter().filter_map(|line| EventLine::parse(line.as_bytes()).ok()).collect();
    store.append(&events).unwrap();
}

/// Events of one process, with numbers and times in their order.
struct Source {
    run: &'static str,
    shim: &'static str,
    events: Vec<Value>,
}

impl Source {
    fn new(run: &'static str, shim: &'static str, server: &str) -> Self {
        let start = json!({"mode": "guardrails", "meta": {"server_name": server}, "policy": {"policy_id": "p"}});
        Self { run, shim, events: Vec::new() }.event("run_start", 0, &json!({ "run": start }))
    }

    fn event(mut self, kind: &str, second: u64, fields: &Value) -> Self {
        let mut event = json!({
            "v": "0.1.0", "type": kind, "ts": format!("2026-01-31T12:00:{second:02}Z"), "run_id": self.run,
            "seq": self.events.len() + 1, "agent_id": "coder", "client": "codex", "env": "ci",
            "source": {"host_id": "h", "proc_id": "1", "shim_id": self.shim},
        });
        for (field, value) in fields.as_object().unwrap() {
            event[field] = value.clone();
        }
        self.events.push(event);
        self
    }

    fn start(self, second: u64, id: &str, args: &Value) -> Self {
        let preview = json!({"truncated": false, "args_preview": args.to_string()});
        let call = json!({"call_id": id, "server_name": "shop", "tool_name": "refund", "preview": preview});
        self.event("tool_call_start", second, &json!({ "call": call }))
    }

    fn decide(self, second: u64, id: &str, decision: &Value) -> Self {
        self.event("tool_call_decision", second, &json!({"call": {"call_id": id}, "decision": decision}))
    }

    /// Adds the end of a call, whose fields are those of `fields`.
    fn end(self, second: u64, id: &str, fields: &Value) -> Self {
        let mut fields = fields.clone();
        fields["call"] = json!({ "call_id": id });
        self.event("tool_call_end", second, &fields)
    }

    fn ok(self, second: u64, id: &str, result: &Value) -> Self {
        let preview = json!({"truncated": false, "result_preview": result.to_string()});
        self.end(second, id, &json!({"status": "OK", "latency_ms": 5, "bytes_out": 9, "preview": preview}))
    }

    fn finish(self, second: u64, status: &str) -> Vec<Value> {
        self.event("run_end", second, &json!({"run": {"status": status}})).events
    }
}

fn two_processes(location: &LedgerLocation) {
    let mut store = counterproof_ledger::open_or_create(location).unwrap();
    let result = json!({"content": [{"type": "text", "text": "done"}]});
    let first = Source::new("r1", "z", "shop").start(1, "x1", &json!({"amount": 50})).ok(4, "x1", &result);
    let second = Source::new("r1", "a", "mail").start(2, "x2", &json!({"to": "ada"})).ok(3, "x2", &result);
    append(store.as_mut(), &first.finish(6, "SUCCEEDED"));
    append(store.as_mut(), &second.finish(7, "SUCCEEDED"));
    let case = Runs::new().case(store.as_mut(), "r1");
    let steps: Vec<_> = case["events"].as_array().unwrap().iter().map(|it| (&it["type"], &it["call_id"])).collect();
    let [call, result_step] = [&json!("tool_call"), &json!("tool_result")];
    let [one, two] = [&json!("call-1"), &json!("call-2")];
    assert_eq!(
        steps,
        [(call, one), (call, two), (result_step, two), (result_step, one), (&json!("final_output"), &Value::Null)]
    );
    let event = &case["events"][0];
    assert_eq!((&event["tool"], &event["args"]), (&json!("shop.refund"), &json!({"amount": 50})));
    assert_eq!(case["events"][3]["payload_summary"], result);
    assert_eq!((&case["events"][3]["status"], &case["events"][3]["latency_ms"]), (&json!("ok"), &json!(5)));
    assert_eq!(case["final_output"]["content"], json!({"status": "SUCCEEDED"}));
    assert_eq!((&case["case_id"], &case["workflow_id"]), (&json!("coder"), &json!("coder")));
    assert_eq!(case["recorded_run"]["call_ids"], json!(["x1", "x2"]));
    assert_eq!(case["attempts"][0]["latency_ms"], 7000);
}

fn sqlite(kit: &Kit) -> Box<dyn EventStore> {
    counterproof_ledger::open_or_create(&kit.location()).unwrap()
}

/// Exports one process of one run. Returns the steps.
fn steps(events: &[Value]) -> Vec<Value> {
    let kit = Kit::new();
    let mut store = sqlite(&kit);
    append(store.as_mut(), events);
    let mut case = Runs::new().case(store.as_mut(), "r1");
    case["events"].as_array_mut().unwrap().drain(..).collect()
}

#[test]
fn a_refused_call_has_the_decision_as_its_result() {
    let decision = json!({
        "action": "REJECT_WITH_HINT", "rule_id": "refunds", "severity": "warn", "backoff_ms": 17,
        "explain": {"summary": "too much", "reason_code": "REFUND_LIMIT"}, "hint": {"hint_text": "ask a person"},
        "policy": {"policy_hash": "h"},
    });
    let error = json!({"status": "ERROR", "error": {"class": "policy_block", "message": "m", "code": "REFUND_LIMIT"}});
    let source = Source::new("r1", "s", "shop").start(1, "x", &json!({})).decide(1, "x", &decision);
    let events = steps(&source.end(1, "x", &error).finish(2, "SUCCEEDED"));
    assert_eq!(events[1]["status"], "error");
    let expected = json!({
        "action": "REJECT_WITH_HINT", "rule_id": "refunds", "reason_code": "REFUND_LIMIT", "summary": "too much",
        "hint": "ask a person",
    });
    assert_eq!(events[1]["payload_summary"]["decision"], expected);
    assert_eq!(events[0].get("decision"), None);
    // The event of the decision is lost.
    let source = Source::new("r1", "s", "shop").start(1, "x", &json!({}));
    let events = steps(&source.end(1, "x", &error).finish(2, "SUCCEEDED"));
    assert_eq!(events[1]["payload_summary"]["decision"], json!({"reason_code": "REFUND_LIMIT", "summary": "m"}));
    // The shim was killed before the end.
    let source = Source::new("r1", "s", "shop").start(1, "x", &json!({})).decide(1, "x", &decision);
    let events = steps(&source.events);
    assert_eq!((&events[0]["decision"], &events[1]["type"]), (&expected, &json!("final_output")));
}

#[test]
fn a_decision_that_was_only_observed_is_a_note_of_the_call_if_it_differs() {
    let observed = json!({"action": "BLOCK", "rule_id": "refunds", "reason_code": "REFUND_LIMIT"});
    let decision = json!({"action": "ALLOW", "rule_id": null, "explain": {}, "observed": observed});
    let source = Source::new("r1", "s", "shop").start(1, "x", &json!({})).decide(1, "x", &decision);
    let events = steps(&source.ok(2, "x", &json!({})).finish(3, "SUCCEEDED"));
    assert_eq!(events[0]["annotations"], json!({ "observed": observed }));
    assert_eq!((&events[0].get("observed"), &events[1]["status"]), (&None, &json!("ok")));
    let allowed = json!({"action": "ALLOW", "observed": {"action": "ALLOW", "reason_code": "DEFAULT_ALLOW"}});
    let source = Source::new("r1", "s", "shop").start(1, "x", &json!({})).decide(1, "x", &allowed);
    let events = steps(&source.ok(2, "x", &json!({})).finish(3, "SUCCEEDED"));
    assert_eq!(events[0].get("annotations"), None, "without a policy, nothing is noted");
}

#[test]
fn errors_are_results_with_the_status_error() {
    let end = |fields: Value| {
        let source = Source::new("r1", "s", "shop").start(1, "x", &json!({})).end(2, "x", &fields);
        steps(&source.finish(3, "SUCCEEDED")).remove(1)
    };
    let preview = |value: &str| json!({"truncated": false, "result_preview": value});
    let rpc = end(json!({
        "status": "ERROR", "error": {"class": "upstream_error", "message": "no", "code": "-32000"},
        "preview": preview(r#"{"code":-32000,"message":"no","data":{"id":7}}"#),
    }));
    let error = json!({"class": "upstream_error", "message": "no", "code": "-32000", "data": {"id": 7}});
    assert_eq!((&rpc["status"], &rpc["payload_summary"]), (&json!("error"), &json!({ "error": error })));
    let marked = end(json!({
        "status": "ERROR", "error": {"class": "upstream_error", "message": "disk full"},
        "preview": preview(r#"{"content":[],"isError":true}"#),
    }));
    assert_eq!(marked["payload_summary"], json!({"content": [], "isError": true}));
    let gone = json!({"class": "transport", "message": "the server ended"});
    let crashed = end(json!({"status": "ERROR", "error": gone, "preview": {"truncated": false}}));
    assert_eq!((&crashed["status"], &crashed["payload_summary"]), (&json!("error"), &json!({ "error": gone })));
    let cancelled = end(json!({"status": "CANCELLED", "latency_ms": 1.2}));
    assert_eq!((&cancelled["status"], &cancelled["latency_ms"]), (&json!("error"), &json!(2)));
}

#[test]
fn what_a_preview_lacks_is_identified_by_its_hash() {
    let call = json!({"call_id": "x", "tool_name": "t", "args_hash": "abc", "preview": {"truncated": true, "args_preview": "{\"a"}});
    let preview = json!({"truncated": true, "result_preview": "[TRUNCATED]"});
    let source = Source::new("r1", "s", "shop").event("tool_call_start", 1, &json!({ "call": call }));
    let large = json!({"status": "OK", "preview": preview, "result_stream_hash": "def", "bytes_out": 7});
    let events = steps(&source.end(2, "x", &large).finish(3, "SUCCEEDED"));
    assert_eq!(events[0]["args"], json!({"truncated": true, "sha256": "abc", "preview": "{\"a"}));
    assert_eq!(events[0]["tool"], "t", "the server is not known");
    assert_eq!(events[1]["payload_summary"], json!({"truncated": true, "sha256": "def"}));
    let source = Source::new("r1", "s", "shop").start(1, "x", &json!({}));
    let dropped = json!({"status": "OK", "preview": {"truncated": true}, "bytes_out": 7});
    let events = steps(&source.end(2, "x", &dropped).finish(3, "SUCCEEDED"));
    assert_eq!(events[1]["payload_summary"], json!({"truncated": true, "bytes": 7}));
}

#[test]
fn a_large_result_of_another_producer_becomes_an_asset() {
    let text = "x".repeat(70_000);
    let source = Source::new("r1", "s", "shop").start(1, "x", &json!({})).ok(2, "x", &json!({ "text": text }));
    let events = steps(&source.finish(3, "SUCCEEDED"));
    assert_eq!(events[1]["payload_asset_href"], "assets/full_payload_new_coder_e1.json");
}

#[test]
fn the_status_of_a_run_is_that_of_its_worst_process_or_states_that_there_is_no_end() {
    let status = |ends: [Option<&str>; 2], is_lost: bool| {
        let kit = Kit::new();
        let mut store = sqlite(&kit);
        for ((shim, server), end) in [("s1", "shop"), ("s2", "mail")].into_iter().zip(ends) {
            let source = Source::new("r1", shim, server);
            append(
                store.as_mut(),
                &match end {
                    Some(end) => source.finish(5, end),
                    None => source.events,
                },
            );
        }
        if is_lost {
            store.mark_lost(&SourceId { run_id: "r1".to_owned(), shim_id: "s2".to_owned() }).unwrap();
        }
        Runs::new().case(store.as_mut(), "r1")["final_output"]["content"].clone()
    };
    let [done, failed] = [Some("SUCCEEDED"), Some("FAILED")];
    assert_eq!(status([done, done], false), json!({"status": "SUCCEEDED"}));
    assert_eq!(status([done, failed], false), json!({"status": "FAILED", "servers": {"mail": "FAILED"}}));
    let both = json!({"shop": "CANCELLED", "mail": "FAILED"});
    assert_eq!(status([Some("CANCELLED"), failed], false)["servers"], both);
    assert_eq!(status([done, None], false), json!({"status": "NOT_ENDED", "servers": {"mail": "NOT_ENDED"}}));
    assert_eq!(status([failed, None], true)["status"], "LOST");
    assert_eq!(status([done, Some("")], false)["status"], "UNKNOWN");
}

#[test]
fn runs_with_the_same_case_are_not_exported_together_and_nothing_is_written() {
    let kit = Kit::new();
    let mut store = sqlite(&kit);
    for run in ["r1", "r2"] {
        append(store.as_mut(), &Source::new(run, "s", "shop").finish(5, "SUCCEEDED"));
    }
    let selected = ["r1", "r2"].map(|run| record(store.as_mut(), run));
    let runs = Runs::new();
    let refused = runs.export(store.as_mut(), &selected);
    assert!(matches!(refused, Err(ExportError::DuplicateCaseId { .. })), "{refused:?}");
    assert_eq!(runs.path().read_dir().unwrap().count(), 0);
    runs.export(store.as_mut(), &selected[..1]).unwrap();
    let exists = runs.export(store.as_mut(), &selected[..1]);
    assert!(matches!(exists, Err(ExportError::Create(_))), "{exists:?}");
}

#[test]
fn the_cases_file_gets_new_cases_and_keeps_what_people_changed() {
    let kit = Kit::new();
    let mut store = sqlite(&kit);
    append(store.as_mut(), &Source::new("r1", "s", "shop").finish(5, "SUCCEEDED"));
    let run = record(store.as_mut(), "r1");
    let runs = Runs::new();
    let selected = |id: &str| SelectedRun { run: run.clone(), case_id: id.parse().unwrap() };
    write_cases(runs.path(), &[selected("one")]).unwrap();
    let path = runs.path().join(CASES_FILE);
    let mut cases = json_file(&path);
    let expected = json!({"no_refused_calls": true, "expect": [{"name": "the run succeeds", "expr": "final_output.content == {'status': 'SUCCEEDED'}"}]});
    let user = "Recorded run of coder";
    assert_eq!(cases, json!([{"id": "one", "title": user, "input": {"user": user}, "expected": expected}]));
    cases[0]["title"] = json!("mine");
    write(&path, cases.to_string().as_bytes(), Durability::Cached).unwrap();
    write_cases(runs.path(), &[selected("one"), selected("another")]).unwrap();
    let cases = json_file(&path);
    assert_eq!((&cases[0]["id"], &cases[1]["title"]), (&json!("another"), &json!("mine")));
}

/// Any value that a field of an event can have.
fn any_value() -> impl Strategy<Value = Value> + Clone {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<f64>().prop_map(Value::from),
        ".{0,12}".prop_map(Value::from),
        Just(json!("OK")),
        Just(json!("\u{0}\u{1b}[31m\u{202e}<b>")),
        Just(json!("[".repeat(126) + &"]".repeat(126))),
        Just(json!(format!("{{\"a\":{}1{}}}", "[".repeat(120), "]".repeat(120)))),
        Just(json!("x".repeat(70_000))),
        Just(json!(format!("{{\"a\":\"{}\"}}", "y".repeat(70_000)))),
    ];
    leaf.prop_recursive(3, 12, 3, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..3).prop_map(Value::from),
            prop::collection::hash_map("[a-z_]{1,8}", inner, 0..3).prop_map(|map| json!(map)),
        ]
    })
}

/// An event of a type of the guard, with fields of the right names and often of the wrong types.
fn any_event() -> impl Strategy<Value = Value> {
    let kinds = ["run_start", "tool_call_start", "tool_call_decision", "tool_call_end", "run_end", "other"];
    let times = ["2026-01-31T12:00:00Z", "2026-01-31T12:00:01.5Z", "-000044-03-15T12:00:00Z", "9999-12-30T22:00:00Z"];
    let nested = prop::collection::hash_map(
        prop::sample::select(vec![
            "server_name",
            "tool_name",
            "args_hash",
            "preview",
            "tags",
            "action",
            "rule_id",
            "explain",
            "hint",
            "observed",
            "status",
            "meta",
            "policy",
            "mode",
            "class",
            "message",
            "code",
            "truncated",
            "args_preview",
            "result_preview",
        ]),
        any_value(),
        0..8,
    );
    let parts = (nested.clone(), nested.clone(), nested.clone(), nested.clone(), nested);
    let ids = prop::sample::select(vec![json!("c1"), json!("c2"), json!(7), Value::Null, json!("")]);
    let shims = prop::sample::select(vec!["s1", "s2", ""]);
    let head = (prop::sample::select(kinds.to_vec()), prop::sample::select(times.to_vec()), shims, ids);
    let fields = prop::collection::hash_map(
        prop::sample::select(vec!["status", "latency_ms", "bytes_out", "result_stream_hash", "agent_id", "workload"]),
        any_value(),
        0..4,
    );
    (head, parts, fields).prop_map(|((kind, ts, shim, id), (mut call, decision, error, preview, run), fields)| {
        call.insert("call_id", id);
        let mut event = json!({
            "type": kind, "ts": ts, "source": {"shim_id": shim}, "call": call, "decision": decision,
            "error": error, "preview": preview, "run": run,
        });
        for (name, value) in fields {
            event[name] = value;
        }
        event
    })
}

#[test]
fn any_events_give_a_valid_artifact() {
    let kit = Kit::new();
    let store = std::cell::RefCell::new(sqlite(&kit));
    let (number, exports) = (std::cell::Cell::new(0), std::cell::Cell::new(0));
    let mut runner = TestRunner::new(Config { failure_persistence: None, cases: 48, ..Config::default() });
    let tested = runner.run(&prop::collection::vec(any_event(), 1..12), |mut events| {
        let mut store = store.borrow_mut();
        number.set(number.get() + 1);
        let run = format!("run {}/\u{7}", number.get());
        // The ledger skips events with a number that it has.
        for (number, event) in events.iter_mut().enumerate() {
            event["run_id"] = json!(run);
            event["seq"] = json!(number + 1);
        }
        append(store.as_mut(), &events);
        let calls: std::collections::BTreeSet<_> = events
            .iter()
            .filter(|it| it["type"].as_str().is_some_and(|kind| kind.starts_with("tool_call")))
            .filter_map(|it| it["call"]["call_id"].as_str())
            .collect();
        // The ledger may have refused all events.
        let Some(run) = find_run(store.as_mut(), &run).unwrap() else { return Ok(()) };
        let exported = Runs::new().export(store.as_mut(), &[run]).unwrap();
        exports.set(exports.get() + 1);
        prop_assert!(exported.cases[0].calls >= calls.len());
        Ok(())
    });
    tested.unwrap();
    assert!(exports.get() > number.get() / 2, "{exports:?} of {number:?}");
}

#[test]
fn the_run_document_has_the_policies_of_the_guards_and_the_statuses_of_the_runs() {
    let kit = Kit::new();
    let mut store = sqlite(&kit);
    let policy = json!({"policy_id": "p", "policy_version": "2", "policy_hash": "1f3870be274f6c49b3e31a0c6728957f"});
    let agent = json!({"run": {"mode": "guardrails", "meta": {"kind": "agent"}, "policy": policy}});
    append(store.as_mut(), &guarded("r1", "guardrails", &policy));
    append(store.as_mut(), &guarded("r2", "observe", &json!({"policy_id": "q"})));
    let alone = Source { run: "r3", shim: "a", events: Vec::new() };
    append(store.as_mut(), &alone.event("run_start", 0, &agent).finish(1, "FAILED"));
    let document = |store: &mut dyn EventStore, run: &str| {
        let runs = Runs::new();
        let run = record(store, run);
        let exported = runs.export(store, &[run]).unwrap();
        json_file(&exported.folder.join("run.json"))
    };
    let first = document(store.as_mut(), "r1");
    assert_eq!(first["policies"], json!(["p version 2 (guardrails, hash 1f3870be274f)"]));
    assert_eq!(first["stats"]["statuses"], json!({"SUCCEEDED": 1}));
    assert_eq!(document(store.as_mut(), "r2")["policies"], json!(["q (observe)"]));
    let alone = document(store.as_mut(), "r3");
    assert_eq!((alone.get("policies"), &alone["stats"]["statuses"]), (None, &json!({"FAILED": 1})));
}
