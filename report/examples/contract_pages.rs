//! Writes stores with contracts of every kind, their control rooms and their graphs, for the tests in a browser.
//!
//! `contract_pages FOLDER` writes `demo`, `hostile` and `large` into the folder, each with `room/` and `graph/`.

#![allow(clippy::unwrap_used, clippy::print_stdout, reason = "a program for tests: any error ends it")]

use std::num::NonZeroU32;

use camino::{Utf8Path, Utf8PathBuf};
use counterproof_contracts::control_room::{ControlRoom, ControlRoomOptions, WorkProcess};
use counterproof_contracts::graph::{Graph, GraphQuery, MAX_HTML_NODES};
use counterproof_contracts::store::{Editor, NewTransition, Note, NoteKind};
use counterproof_contracts::{Actor, Contract, ContractId, ContractKey, Details, State, Store};
use counterproof_report::contracts::{RoomLinks, write_control_room, write_graph};
use counterproof_report::{GuardedCall, GuardedRun, Outcome, write_guarded_runs};
use counterproof_store::line_log::LockOptions;
use counterproof_store::write::{Durability, create_folder, write};
use jiff::{SignedDuration, Timestamp};
use serde_json::{Value, json};

/// What an agent could try. Each would run a script, load a file or change the texts around it.
const HOSTILE: &str = "</title></svg><script>injected=1</script><img src=x onerror=injected=1>\" onmouseover='injected=1' \
                       <base href='https://outside.example/'>{{7*7}} \u{202e}desrever\u{2066} \u{1b}[31mred\u{0} ]]> -->";

/// The contracts of a web shop: id, summary and dependencies.
const SHOP: [(&str, &str, &[&str]); 18] = [
    ("shop/setup-test-env/001", "Set up the test environment", &[]),
    ("shop/inventory-schema/001", "Add the table of reservations", &["shop/setup-test-env/001"]),
    ("shop/tax-table/001", "Update the tax table for 2026", &["shop/setup-test-env/001"]),
    ("shop/fix-memory-leak/001", "Fix memory leak in dataset processing", &["shop/setup-test-env/001"]),
    ("shop/refund/001", "Refund orders that were paid twice", &["shop/inventory-schema/001", "shop/tax-table/001"]),
    ("shop/refund/002", "Report refunds to the accounting system", &["shop/refund/001"]),
    ("shop/checkout/001", "Reserve items during the checkout", &["shop/inventory-schema/001"]),
    ("shop/checkout/002", "Show delivery dates in the checkout", &["shop/checkout/001", "shop/delivery-dates/001"]),
    ("shop/delivery-dates/001", "Compute delivery dates per region", &["shop/tax-table/001"]),
    ("shop/rate-limits/001", "Limit requests per customer", &["shop/fix-memory-leak/001"]),
    ("shop/release/2026-02", "Release the shop", &["shop/refund/002", "shop/checkout/002", "shop/rate-limits/001"]),
    ("website/prices/001", "Publish the new prices", &["shop/tax-table/001"]),
    ("website/images/001", "Convert images of products to WebP", &[]),
    ("website/images/002", "Remove images without a product", &["website/images/001"]),
    ("website/search/001", "Index descriptions of products", &["website/images/002"]),
    ("billing/invoices/001", "Number invoices per country", &[]),
    ("billing/invoices/002", "Send invoices as PDF", &["billing/invoices/001", "shop/tax-table/001"]),
    ("billing/reminders/001", "", &["billing/invoices/002"]),
];

fn main() {
    let folder = Utf8PathBuf::from(std::env::args().nth(1).unwrap_or_else(|| "contract-pages".to_owned()));
    for (name, build) in [("demo", demo as fn(&Store)), ("hostile", hostile), ("large", large)] {
        create_folder(&folder.join(name)).unwrap();
        let path = folder.join(name).join("contracts.jsonl");
        let store = Store::new(path);
        build(&store);
        write_pages(&folder.join(name), &store);
        println!("{}", folder.join(name));
    }
    guarded(&folder.join("guarded"));
}

/// Calls of each outcome, with hostile texts.
fn guarded(folder: &Utf8Path) {
    let outcomes =
        [Outcome::Refused, Outcome::WouldRefuse, Outcome::Failed, Outcome::Open, Outcome::Succeeded, Outcome::Refused];
    let text = |text: &str| Some(text.to_owned());
    let call = |(index, outcome): (usize, Outcome)| GuardedCall {
        time: "2026-01-31 08:00:00".to_owned(),
        run_id: if index == 5 { HOSTILE.to_owned() } else { "run-1".to_owned() },
        call_id: index.to_string(),
        server: text("shop"),
        tool: text(if index == 5 { HOSTILE } else { "create_refund" }),
        outcome,
        decision: text(if matches!(outcome, Outcome::Refused | Outcome::WouldRefuse) { "BLOCK" } else { "ALLOW" }),
        rule: text(if index == 5 { HOSTILE } else { "refund-limit" }),
        reason: text(if index == 5 { HOSTILE } else { "a refund of more than 100 needs an approval" }),
        arguments: text(if index == 5 { HOSTILE } else { r#"{"order_id": "A-1", "amount": 500}"# }),
        result: None,
        latency_ms: Some(12),
    };
    let calls: Vec<GuardedCall> = outcomes.into_iter().enumerate().map(call).collect();
    let run = GuardedRun {
        run_id: "run-1".to_owned(),
        started: "2026-01-31 08:00:00".to_owned(),
        agent: text(HOSTILE),
        status: "ended".to_owned(),
        calls: 6,
        refused: 2,
        errors: 1,
    };
    write_guarded_runs(folder, &[run], &calls, true).unwrap();
}

fn write_pages(folder: &Utf8Path, store: &Store) {
    let is_running = |process: &WorkProcess| Some(process.pid != 4711);
    let options = ControlRoomOptions::new(minute(600), &is_running);
    let room = ControlRoom::read(store, &options).unwrap();
    let graph = Graph::read(store, &GraphQuery { around: &[], max_nodes: MAX_HTML_NODES }).unwrap();
    let files = store.files_folder();
    let links = RoomLinks { graph: Some(&graph), evidence: Some(&files) };
    write_control_room(&room, &links, &folder.join("room")).unwrap();
    write_graph(&graph, &folder.join("graph")).unwrap();
    let first = graph.nodes()[graph.nodes().len() / 2].id.clone();
    let part = Graph::read(store, &GraphQuery { around: &[first], max_nodes: MAX_HTML_NODES }).unwrap();
    write_graph(&part, &folder.join("part")).unwrap();
}

/// The shop, with contracts in every state and every tier.
fn demo(store: &Store) {
    let contracts: Vec<Contract> =
        SHOP.iter().map(|(id, summary, dependencies)| contract(id, summary, dependencies)).collect();
    add(store, &contracts);
    let mut editor = store.edit(&LockOptions::default()).unwrap();
    for (index, id) in
        ["shop/setup-test-env/001", "shop/inventory-schema/001", "shop/tax-table/001", "website/images/001"]
            .into_iter()
            .enumerate()
    {
        let at = i64::try_from(index).unwrap() * 20;
        work(&mut editor, id, at, State::Verifying);
        change(&mut editor, id, at + 12, State::Completed, passed(index as u64 + 2));
    }
    work(&mut editor, "shop/refund/001", 120, State::Verifying);
    let request = "the check passed, and a person must approve the work";
    note(&mut editor, "shop/refund/001", 131, NoteKind::ApprovalRequested, request, passed(3));
    work(&mut editor, "website/prices/001", 140, State::Verifying);
    let evidence = "website~prices~001/v1/1/verification.json";
    write_new_folders(&store.files_folder().join(evidence));
    let mut document = failed("assertion not met: output.published == true; output.published is false");
    let assertion =
        json!({"expression": "output.published == true", "outcome": "not_met", "got": "output.published is false"});
    document["verification"]["assertions"] = json!([assertion]);
    document["verification"]["evidence"] = json!([evidence, "website~prices~001/v1/1/missing.log"]);
    change(&mut editor, "website/prices/001", 149, State::Failed, document);
    let rollback = json!({"rollback": {
        "strategy": "git_reset", "outcome": "refused",
        "message": "`prices.csv` was changed before the execution began; its changes would be lost",
    }});
    let refused = "the rollback would remove work that is not of this contract";
    note(&mut editor, "website/prices/001", 150, NoteKind::NotRolledBack, refused, rollback);
    work(&mut editor, "shop/fix-memory-leak/001", 200, State::Verifying);
    let reason = "verification: the command ended with exit code 101 in the last of 3 attempts";
    change(&mut editor, "shop/fix-memory-leak/001", 231, State::Failed, failed(reason));
    work(&mut editor, "website/images/002", 240, State::Verifying);
    change(&mut editor, "website/images/002", 250, State::Failed, failed("verification: the time limit was exceeded"));
    change(&mut editor, "website/images/002", 251, State::RollingBack, json!({}));
    let rollback = json!({"rollback": {
        "strategy": "restore_snapshot", "outcome": "rolled_back", "message": "restored 212 files",
        "way_back": "cp -a .counterproof/before-rollback/images/. images/",
    }});
    change(&mut editor, "website/images/002", 252, State::RolledBack, rollback);
    work(&mut editor, "shop/checkout/001", 570, State::Executing);
    work(&mut editor, "shop/delivery-dates/001", 580, State::Verifying);
    change(&mut editor, "billing/invoices/001", 598, State::Claimed, json!({}));
    drop(editor);
    add(store, &[contract("billing/vat-report/001", "Report the VAT", &[])]);
    let mut editor = store.edit(&LockOptions::default()).unwrap();
    work(&mut editor, "billing/vat-report/001", 560, State::Claimed);
    let process = json!({"execution": {"pid": 4711, "host": "build-3"}});
    change(&mut editor, "billing/vat-report/001", 561, State::Executing, process);
}

fn write_new_folders(path: &Utf8Path) {
    create_folder(path.parent().unwrap()).unwrap();
    write(path, b"{}\n", Durability::Cached).unwrap();
}

/// Texts that try to leave their places.
fn hostile(store: &Store) {
    let ids: Vec<String> =
        (0..12).map(|index| format!("a.very-long.project_name/of-a-contract-that-has-a-long-name/{index}")).collect();
    let long = format!("{HOSTILE} {}", "unbroken".repeat(40));
    let contracts = ids.iter().enumerate().map(|(index, id)| {
        let dependencies: Vec<&str> = ids[..index].iter().map(String::as_str).collect();
        let mut document =
            serde_json::to_value(contract(id, &long, if index == 2 { &dependencies } else { &[] })).unwrap();
        document["metadata"]["project"] = HOSTILE.into();
        serde_json::from_value(document).unwrap()
    });
    add(store, &contracts.collect::<Vec<_>>());
    let mut editor = store.edit(&LockOptions::default()).unwrap();
    let evidence = json!({
        "verification": {"passed": false, "reasons": [long], "evidence": ["../contracts.jsonl", "javascript:injected=1", long],
            "changes": {"files": u64::MAX, "insertions": u64::MAX, "deletions": u64::MAX}},
        "rollback": {"outcome": HOSTILE, "message": long, "way_back": long},
    });
    work(&mut editor, &ids[0], 1, State::Verifying);
    note(&mut editor, &ids[0], 2, NoteKind::ApprovalRequested, &long, evidence.clone());
    work(&mut editor, &ids[3], 1, State::Verifying);
    change(&mut editor, &ids[3], 2, State::Failed, evidence.clone());
    work(&mut editor, &ids[4], 1, State::Verifying);
    change(&mut editor, &ids[4], 2, State::Completed, evidence);
    work(&mut editor, &ids[5], 599, State::Executing);
}

/// More contracts than a drawing has.
fn large(store: &Store) {
    let id = |index: usize| format!("bulk/{index:04}");
    let contracts = (0..700).map(|index| {
        let dependencies = if index < 20 { Vec::new() } else { vec![id(index - 20), id(index / 2)] };
        contract(&id(index), "One of many", &dependencies.iter().map(String::as_str).collect::<Vec<_>>())
    });
    add(store, &contracts.collect::<Vec<_>>());
}

fn minute(minute: i64) -> Timestamp {
    "2026-01-31T08:00:00Z".parse::<Timestamp>().unwrap() + SignedDuration::from_mins(minute)
}

fn contract(id: &str, summary: &str, dependencies: &[&str]) -> Contract {
    let mut document = json!({
        "id": id, "version": 1, "created_at": minute(0).to_string(), "dependencies": dependencies,
        "input": {"type": "task", "data": {}}, "output": {"type": "result", "schema": {"ok": "boolean"}},
        "verification": {"command": "true"}, "rollback": {"strategy": "git_reset"},
        "metadata": {"project": id.split('/').next(), "human_summary": summary},
    });
    if summary.is_empty() {
        document["metadata"]["human_summary"] = Value::Null;
    }
    serde_json::from_value(document).unwrap()
}

fn add(store: &Store, contracts: &[Contract]) {
    store.edit(&LockOptions::default()).unwrap().add(contracts, minute(0)).unwrap();
}

/// Claims a contract and moves it on to a state.
fn work(editor: &mut Editor<'_>, id: &str, at: i64, until: State) {
    for (delay, state) in [State::Claimed, State::Executing, State::Verifying].into_iter().enumerate() {
        change(editor, id, at + i64::try_from(delay).unwrap() * 4, state, json!({}));
        if state == until {
            return;
        }
    }
}

fn change(editor: &mut Editor<'_>, id: &str, at: i64, to: State, evidence: Value) {
    let actor = match to {
        State::Completed | State::Failed | State::RollingBack | State::RolledBack => Actor::System,
        _ => Actor::Agent("claude-code".to_owned()),
    };
    let key = ContractKey { id: id.parse().unwrap(), version: None };
    let reason = match to {
        State::Failed => "the verification failed",
        State::RollingBack => "the work of a failed verification is undone",
        State::RolledBack => "the work is undone",
        _ => "next step",
    };
    let reason = reason.to_owned();
    let request = NewTransition { key, to, actor, reason, owner: None, details: details(evidence) };
    editor.transition(request, minute(at)).unwrap();
}

fn note(editor: &mut Editor<'_>, id: &str, at: i64, kind: NoteKind, reason: &str, evidence: Value) {
    let id: ContractId = id.parse().unwrap();
    let (version, at, actor) = (NonZeroU32::MIN, minute(at), Actor::System);
    editor.note(Note { id, version, at, actor, kind, reason: reason.to_owned(), details: details(evidence) }).unwrap();
}

fn details(document: Value) -> Details {
    serde_json::from_value(document).unwrap()
}

fn passed(files: u64) -> Value {
    let changes = json!({"files": files, "insertions": files * 37, "deletions": files * 5});
    json!({"verification": {"passed": true, "exit_code": 0, "duration_ms": 9_000, "reasons": [], "changes": changes}})
}

fn failed(reason: &str) -> Value {
    let changes = json!({"files": 2, "insertions": 31, "deletions": 4});
    json!({"verification": {"passed": false, "exit_code": 1, "duration_ms": 9_000, "reasons": [reason], "changes": changes}})
}
