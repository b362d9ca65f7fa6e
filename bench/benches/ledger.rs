//! The speed of adding events to a SQLite ledger, against bare SQLite: the same tables, indexes, settings, transactions and rows.
//!
//! `ledger [FOLDER] [CALLS]`: a scratch folder on the disk to measure, and the number of calls of each round.
//!
//! The ledger starts from lines of JSON: it reads them, recognises repeated events, and merges the events of a call into its row. The
//! bare database receives rows that were built before, and each row once.

#![allow(clippy::print_stdout, clippy::unwrap_used, reason = "a benchmark prints its figures and may panic")]

use std::time::{Duration, Instant};

use camino::{Utf8Path, Utf8PathBuf};
use counterproof_bench::{arguments, machine, target_folder};
use counterproof_ledger::line::EventLine;
use counterproof_ledger::location::LedgerLocation;
use counterproof_ledger::open_or_create;
use rusqlite::types::Value;
use rusqlite::{Connection, params_from_iter};
use serde_json::json;

/// The allocator of the program.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// Events of a transaction, as the recorder has them.
const BATCH: usize = 1000;

/// Rounds of each kind, in turns.
const ROUNDS: usize = 7;

const SERVERS: [&str; 2] = ["github", "filesystem"];

/// The tables with their rows, in the order in which they are filled.
const TABLES: [&str; 6] = ["events", "run_sources", "tool_calls", "previews", "policy_versions", "runs"];

fn main() {
    println!("machine: {}", machine());
    let mut arguments = arguments().into_iter();
    let folder = arguments.next().map_or_else(target_folder, Utf8PathBuf::from);
    let calls = arguments.next().map_or(20_000, |calls| calls.parse().unwrap());
    let scratch = tempfile::Builder::new().prefix("bench-ledger-").tempdir_in(&folder).unwrap();
    let scratch = Utf8Path::from_path(scratch.path()).unwrap();
    let lines = lines(calls);
    let bytes: usize = lines.iter().map(String::len).sum();
    println!("ledger: {} events, {} bytes each, transactions of {BATCH} events", lines.len(), bytes / lines.len());
    let rows = rows(&scratch.join("rows.db"), &lines);
    let mut times: [Vec<Duration>; 2] = Default::default();
    for round in 0..ROUNDS {
        times[0].push(ledger(&scratch.join(format!("ledger-{round}.db")), &lines));
        times[1].push(bare(&scratch.join(format!("bare-{round}.db")), &rows));
    }
    let [ledger, bare] = times.map(|mut times| {
        times.sort();
        times[ROUNDS / 2]
    });
    let rate = |time: Duration| lines.len() as f64 / time.as_secs_f64();
    println!(
        "ledger: {:.0} events/s, bare SQLite: {:.0} events/s (medians of {ROUNDS} rounds)",
        rate(ledger),
        rate(bare)
    );
    println!("ledger: {:.2} of bare SQLite (aim: at least 0.8)", bare.as_secs_f64() / ledger.as_secs_f64());
}

/// The lines of a run with calls, three events each.
fn lines(calls: usize) -> Vec<String> {
    let policy = json!({"policy_id": "default", "policy_version": "1.2.0", "policy_hash": "5".repeat(64)});
    let mut lines = Vec::new();
    let mut add = |kind: &str, fields: serde_json::Value| {
        let mut event = json!({
            "v": "0.1.0", "ts": format!("2026-01-31T12:00:{:02}.{:06}Z", lines.len() / 1_000_000, lines.len() % 1_000_000),
            "run_id": "0198c0de-0000-7000-8000-000000000001", "seq": lines.len() + 1, "agent_id": "coder", "client": "codex",
            "env": "dev", "principal": "ada@example.com",
            "source": {"host_id": "laptop", "proc_id": "4711", "shim_id": "0198c0de-0000-7000-8000-000000000002"},
            "workload": {"repo": "acme/shop", "branch": "main"}, "type": kind,
        });
        event.as_object_mut().unwrap().extend(fields.as_object().unwrap().clone());
        lines.push(event.to_string());
    };
    add("run_start", json!({"run": {"started_at": "2026-01-31T12:00:00Z", "mode": "guardrails", "policy": policy}}));
    for number in 0..calls {
        let call = json!({
            "call_id": format!("0198c0de-0000-7000-9000-{number:012x}"), "server_name": SERVERS[number % 2],
            "tool_name": format!("tool_{}", number % 23), "args_hash": format!("{:064x}", number % 5000),
        });
        let mut start = call.clone();
        let preview =
            json!({"truncated": false, "args_preview": format!("{{\"path\":\"src/file-{number}.rs\",\"limit\":200}}")});
        let more = json!({"transport": "mcp_stdio", "bytes_in": 180, "preview": preview, "seq": number + 1});
        start.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        add("tool_call_start", json!({ "call": start }));
        let explain = json!({"summary": "Allowed by default policy", "reason_code": "DEFAULT_ALLOW"});
        let decision =
            json!({"action": "ALLOW", "rule_id": null, "severity": "info", "explain": explain, "policy": policy});
        add("tool_call_decision", json!({"call": call, "decision": decision}));
        let preview = json!({"truncated": false, "result_preview": format!("[{{\"type\":\"text\",\"text\":\"{}\"}}]", "line ".repeat(40))});
        let end = json!({"call": call, "status": "OK", "latency_ms": 12, "bytes_out": 900, "preview": preview});
        add("tool_call_end", end);
    }
    lines
}

/// Adds the lines to a new ledger.
fn ledger(path: &Utf8Path, lines: &[String]) -> Duration {
    let mut store = open_or_create(&LedgerLocation::SqliteFile(path.to_owned())).unwrap();
    let start = Instant::now();
    for batch in lines.chunks(BATCH) {
        let events = batch.iter().map(|line| EventLine::parse(line.as_bytes()).unwrap());
        store.append(&events.collect::<Vec<_>>()).unwrap();
    }
    start.elapsed()
}

/// The rows of a table: the texts of its columns, and the values of each row.
type Rows = (String, Vec<Vec<Value>>);

/// Returns the rows that the lines become.
fn rows(path: &Utf8Path, lines: &[String]) -> Vec<Rows> {
    ledger(path, lines);
    let connection = Connection::open(path).unwrap();
    let rows = TABLES.map(|table| {
        let mut statement = connection.prepare(&format!("SELECT * FROM {table}")).unwrap();
        let columns = statement.column_count();
        let places: Vec<_> = (1..=columns).map(|number| format!("?{number}")).collect();
        let insert = format!(
            "INSERT INTO {table} ({}) VALUES ({})",
            statement.column_names().collect::<Vec<_>>().join(", "),
            places.join(", ")
        );
        let row = |row: &rusqlite::Row<'_>| (0..columns).map(|number| row.get(number)).collect();
        let rows = statement.query_map([], row).unwrap().map(Result::unwrap).collect();
        (insert, rows)
    });
    rows.into()
}

/// Inserts the rows into new tables of the same kind, in as many transactions.
fn bare(path: &Utf8Path, tables: &[Rows]) -> Duration {
    drop(open_or_create(&LedgerLocation::SqliteFile(path.to_owned())).unwrap());
    let connection = Connection::open(path).unwrap();
    connection.pragma_update(None, "synchronous", "full").unwrap();
    connection.pragma_update(None, "wal_autocheckpoint", 4000).unwrap();
    let transactions = tables[0].1.len().div_ceil(BATCH);
    let start = Instant::now();
    for number in 0..transactions {
        connection.execute_batch("BEGIN IMMEDIATE").unwrap();
        for (insert, rows) in tables {
            // An equal part of each table.
            let part = rows.len() * number / transactions..rows.len() * (number + 1) / transactions;
            let mut statement = connection.prepare_cached(insert).unwrap();
            for row in &rows[part] {
                statement.execute(params_from_iter(row)).unwrap();
            }
        }
        connection.execute_batch("COMMIT").unwrap();
    }
    start.elapsed()
}
