//! Checks that no query reads a whole table.

use camino::Utf8Path;
use rusqlite::{Connection, params_from_iter};

use super::calls::{CallFilter, failed_calls_query};
use super::events::{EventFilter, events_of_run_query, last_events_query};
use super::runs::RunFilter;
use super::runs::{delete_policies, deletions, prunable_query};
use super::sources::{
    incomplete_sources_query, lost_runs_query, open_sources_query, source_kinds_query, sources_without_calls_query,
};
use super::sources::{last_event_query, servers_query};
use crate::sqlite::SqliteStore;
use crate::store::Query;

fn plan(connection: &Connection, query: &Query) -> String {
    let mut statement = connection.prepare(&format!("EXPLAIN QUERY PLAN {}", query.text())).unwrap();
    let steps = statement.query_map(params_from_iter(query.values()), |row| row.get::<_, String>(3)).unwrap();
    steps.map(Result::unwrap).collect::<Vec<_>>().join("; ")
}

fn filter(change: impl FnOnce(&mut CallFilter)) -> Query {
    let mut filter = CallFilter { limit: 50, ..CallFilter::default() };
    change(&mut filter);
    filter.query()
}

#[test]
fn led_001_every_query_uses_an_index() {
    let folder = tempfile::tempdir().unwrap();
    let path = Utf8Path::from_path(folder.path()).unwrap().join("ledger.db");
    drop(SqliteStore::open_or_create(&path).unwrap());
    let connection = Connection::open(&path).unwrap();
    let text = |text: &str| Some(text.to_owned());
    let runs = |run_id: Option<String>, since: Option<String>| RunFilter { run_id, since, limit: 9 }.query();
    let events = |run_id: Option<String>, since: Option<String>| EventFilter { run_id, since }.query_after(7, 100);
    let key = "INTEGER PRIMARY KEY";
    let mut queries = vec![
        (filter(|_| {}), vec!["idx_tool_calls_created"]),
        (filter(|it| it.since = text("2026")), vec!["idx_tool_calls_created"]),
        (filter(|it| it.run_id = text("r")), vec!["idx_tool_calls_run_created"]),
        (filter(|it| it.server_name = text("s")), vec!["idx_tool_calls_server"]),
        (filter(|it| it.tool_name = text("t")), vec!["idx_tool_calls_tool"]),
        (filter(|it| it.args_hash = text("h")), vec!["idx_tool_calls_args_hash"]),
        (filter(|it| it.status = text("ERROR")), vec!["idx_tool_calls_status"]),
        (
            filter(|it| (it.decision, it.status) = (text("BLOCK"), text("ERROR"))),
            vec!["idx_tool_calls_decision_status"],
        ),
        (filter(|it| it.would_refuse = true), vec!["idx_tool_calls_created"]),
        (
            filter(|it| (it.run_id, it.with_previews) = (text("r"), true)),
            vec!["idx_tool_calls_run_created", "sqlite_autoindex_previews_1"],
        ),
        (runs(None, None), vec!["idx_runs_started", "idx_tool_calls_run_created"]),
        (runs(None, text("2026")), vec!["idx_runs_started"]),
        (runs(text("r"), None), vec!["sqlite_autoindex_runs_1"]),
        (events(None, None), vec![key]),
        (events(text("r"), text("2026")), vec![key]),
        (events_of_run_query("r"), vec!["idx_events_source"]),
        (last_events_query(10), vec!["SCAN events"]),
        (open_sources_query(), vec!["idx_run_sources_open"]),
        (lost_runs_query(), vec!["idx_run_sources_open"]),
        (failed_calls_query("r"), vec!["idx_tool_calls_run_created"]),
        (servers_query("r"), vec!["sqlite_autoindex_run_sources_1"]),
        (last_event_query("r", "s"), vec!["idx_events_source"]),
        (source_kinds_query("r"), vec!["sqlite_autoindex_run_sources_1"]),
        (incomplete_sources_query(), vec!["idx_events_source"]),
        (sources_without_calls_query(), vec!["idx_events_source"]),
        (prunable_query("2026"), vec!["idx_runs_last_event"]),
        (delete_policies("2026"), vec!["SCAN policy_versions"]),
    ];
    queries.extend(deletions("r").map(|query| (query, vec!["SEARCH", "USING INDEX"])));
    for (query, expected) in queries {
        let plan = plan(&connection, &query);
        for step in expected {
            assert!(plan.contains(step), "{}: {plan}", query.text());
        }
        // Counting different runs needs a set of them.
        let sorts = plan.contains("TEMP B-TREE") && !plan.contains("TEMP B-TREE FOR count(DISTINCT)");
        assert!(!sorts, "{}: {plan}", query.text());
    }
}
