//! The content of all tables, as text that is the same for both databases.

use counterproof_ledger::location::LedgerLocation;
use postgres::{Client, NoTls};
use rusqlite::Connection;

/// The tables with their columns. `id` of events depends on the order of arrival.
const TABLES: [(&str, &str); 7] = [
    ("events", "run_id shim_id seq digest type ts line"),
    (
        "run_sources",
        "run_id shim_id first_event last_event_at host_id proc_id agent_id client env principal workload_json started_at \
         ended_at status mode policy_id policy_version policy_hash metadata_json calls_total calls_allowed calls_blocked \
         calls_throttled errors_total duration_ms max_seq is_lost",
    ),
    (
        "runs",
        "run_id agent_id client env principal workload_json started_at last_event_at ended_at status metadata_json",
    ),
    (
        "tool_calls",
        "run_id call_id shim_id server_name tool_name args_hash transport decision rule_id reason_code observed_action \
         status error_class latency_ms bytes_in bytes_out preview_truncated created_at",
    ),
    ("previews", "run_id call_id args_preview result_preview redaction_flags"),
    ("hints", "run_id call_id hint_text hint_kind suggested_args_json created_at"),
    ("policy_versions", "policy_id version rules_hash mode rules_json created_at"),
];

/// Returns the rows of all tables, in order.
pub(crate) fn dump(location: &LedgerLocation) -> String {
    let mut text = String::new();
    for (table, columns) in TABLES {
        let columns: Vec<_> = columns.split(' ').map(|name| format!("coalesce(CAST({name} AS TEXT), '-')")).collect();
        let mut rows = texts(location, &format!("SELECT {} FROM {table}", columns.join(" || '|' || ")));
        rows.sort();
        text.extend([table, "\n", &rows.join("\n"), "\n"]);
    }
    text
}

/// Runs a query that returns one text for each row.
pub(crate) fn texts(location: &LedgerLocation, query: &str) -> Vec<String> {
    match location {
        LedgerLocation::SqliteFile(path) => {
            let connection = Connection::open(path).unwrap();
            let mut statement = connection.prepare(query).unwrap();
            statement.query_map([], |row| row.get(0)).unwrap().map(Result::unwrap).collect()
        }
        LedgerLocation::PostgreSql(url) => {
            let mut client = Client::connect(url.expose(), NoTls).unwrap();
            client.batch_execute("SET search_path = counterproof").unwrap();
            client.query(query, &[]).unwrap().iter().map(|row| row.get(0)).collect()
        }
    }
}

/// Runs a statement: the first one in SQLite, the second one in PostgreSQL.
pub(crate) fn execute(location: &LedgerLocation, [sqlite, postgres]: [&str; 2]) {
    match location {
        LedgerLocation::SqliteFile(path) => Connection::open(path).unwrap().execute_batch(sqlite).unwrap(),
        LedgerLocation::PostgreSql(url) => {
            Client::connect(url.expose(), NoTls).unwrap().batch_execute(postgres).unwrap();
        }
    }
}
