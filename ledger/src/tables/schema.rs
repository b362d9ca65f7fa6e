//! The tables and indexes, and the statements that create and fill them. docs/ledger.md describes them for people who query the
//! database.

use super::row::{Column, Index, Kind, Merge, Table};

/// Changes with the tables and with the meaning of their columns.
pub(crate) const SCHEMA_VERSION: i64 = 1;

/// Lists columns by what they have in common, in their order: the type, how values are merged, and the names.
macro_rules! columns {
    ($($kind:ident $merge:ident: $($name:ident)*;)*) => {
        &[$($(Column { name: stringify!($name), kind: Kind::$kind, merge: Merge::$merge },)*)*]
    };
}

/// The processes that emitted events of a run.
pub(crate) const RUN_SOURCES: Table = Table {
    name: "run_sources",
    columns: columns! {
        Text Key: run_id shim_id;
        Text Min: first_event;
        Text Max: last_event_at;
        Text Min: host_id proc_id agent_id client env principal workload_json started_at;
        Text Max: ended_at;
        Text Min: status mode policy_id policy_version policy_hash metadata_json;
        Integer Max: calls_total calls_allowed calls_blocked calls_throttled errors_total duration_ms max_seq is_lost;
    },
    key: 2,
};

pub(crate) const RUNS: Table = Table {
    name: "runs",
    columns: columns! {
        Text Key: run_id;
        Text Replace: agent_id client env principal workload_json started_at last_event_at ended_at status
            metadata_json;
    },
    key: 1,
};

pub(crate) const TOOL_CALLS: Table = Table {
    name: "tool_calls",
    columns: columns! {
        Text Key: run_id call_id;
        Text Min: shim_id server_name tool_name args_hash transport decision rule_id reason_code observed_action
            status error_class;
        Integer Min: latency_ms bytes_in bytes_out;
        Integer Max: preview_truncated;
        Text Min: created_at;
    },
    key: 2,
};

pub(crate) const PREVIEWS: Table = Table {
    name: "previews",
    columns: columns! {
        Text Key: run_id call_id;
        Text Min: args_preview result_preview;
        Integer Bits: redaction_flags;
    },
    key: 2,
};

pub(crate) const HINTS: Table = Table {
    name: "hints",
    columns: columns! {
        Text Key: run_id call_id;
        Text Min: hint_text hint_kind suggested_args_json created_at;
    },
    key: 2,
};

pub(crate) const POLICY_VERSIONS: Table = Table {
    name: "policy_versions",
    columns: columns! {
        Text Key: policy_id version rules_hash;
        Text Min: mode rules_json created_at;
    },
    key: 3,
};

pub(crate) const ALL: [&Table; 6] = [&RUN_SOURCES, &RUNS, &TOOL_CALLS, &PREVIEWS, &HINTS, &POLICY_VERSIONS];

/// The indexes next to those of the keys.
pub(crate) const INDEXES: [Index; 10] = [
    Index { name: "idx_tool_calls_run_created", table: "tool_calls", columns: "run_id, created_at" },
    Index { name: "idx_tool_calls_created", table: "tool_calls", columns: "created_at" },
    Index { name: "idx_tool_calls_tool", table: "tool_calls", columns: "tool_name, created_at" },
    Index { name: "idx_tool_calls_server", table: "tool_calls", columns: "server_name, created_at" },
    Index { name: "idx_tool_calls_decision_status", table: "tool_calls", columns: "decision, status, created_at" },
    Index { name: "idx_tool_calls_status", table: "tool_calls", columns: "status, created_at" },
    Index { name: "idx_tool_calls_args_hash", table: "tool_calls", columns: "args_hash, created_at" },
    Index { name: "idx_runs_started", table: "runs", columns: "started_at" },
    Index { name: "idx_runs_last_event", table: "runs", columns: "last_event_at" },
    Index { name: "idx_run_sources_open", table: "run_sources", columns: "ended_at, is_lost" },
];

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Dialect {
    Sqlite,
    Postgres,
}

impl Dialect {
    const fn type_name(self, kind: Kind) -> &'static str {
        match (self, kind) {
            (Dialect::Sqlite, Kind::Text) => "TEXT",
            (Dialect::Sqlite, Kind::Integer) => "INTEGER",
            // Compared byte by byte, as in memory: merging must not depend on the language of the server.
            (Dialect::Postgres, Kind::Text) => "TEXT COLLATE \"C\"",
            (Dialect::Postgres, Kind::Integer) => "BIGINT",
        }
    }

    const fn options(self) -> &'static str {
        match self {
            // Types are checked, as PostgreSQL does.
            Dialect::Sqlite => " STRICT",
            Dialect::Postgres => "",
        }
    }
}

pub(crate) fn create_table(table: &Table, dialect: Dialect) -> String {
    let columns = table.columns.iter().map(|column| {
        // SQLite allows NULL in the columns of a primary key.
        let required = if matches!(column.merge, Merge::Key) { " NOT NULL" } else { "" };
        format!("{} {}{required}", column.name, dialect.type_name(column.kind))
    });
    let columns: Vec<_> = columns.collect();
    let (name, key) = (table.name, table.key_names());
    format!("CREATE TABLE IF NOT EXISTS {name} ({}, PRIMARY KEY ({key})){}", columns.join(", "), dialect.options())
}

/// Returns the statements that create the table of events and its indexes if they do not exist.
///
/// An event of a recorder is identified by run, shim and number, any other event by the digest of its line. `id` grows in the order
/// of arrival.
pub(crate) fn create_events(dialect: Dialect) -> String {
    let id = match dialect {
        // Numbers of deleted rows are not used again: readers continue after the last number that they saw.
        Dialect::Sqlite => "INTEGER PRIMARY KEY AUTOINCREMENT",
        Dialect::Postgres => "BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY",
    };
    let (text, integer, options) = (dialect.type_name(Kind::Text), dialect.type_name(Kind::Integer), dialect.options());
    format!(
        "CREATE TABLE IF NOT EXISTS events (id {id}, run_id {text} NOT NULL, shim_id {text} NOT NULL, seq {integer}, \
         digest {text}, type {text} NOT NULL, ts {text} NOT NULL, line {text} NOT NULL){options}; \
         CREATE UNIQUE INDEX IF NOT EXISTS idx_events_source ON events (run_id, shim_id, seq); \
         CREATE UNIQUE INDEX IF NOT EXISTS idx_events_digest ON events (digest) WHERE digest IS NOT NULL"
    )
}

pub(crate) fn create_index(index: &Index) -> String {
    let Index { name, table, columns } = index;
    format!("CREATE INDEX IF NOT EXISTS {name} ON {table} ({columns})")
}

/// Returns the end of an `INSERT` statement: how a new row is merged into the one with the same key.
pub(crate) fn on_conflict(table: &Table, dialect: Dialect) -> String {
    let updates: Vec<_> = table.columns[table.key..].iter().map(|column| update(table.name, column, dialect)).collect();
    let key = table.key_names();
    // An `UPDATE` needs at least one column.
    if updates.is_empty() {
        return format!("ON CONFLICT ({key}) DO NOTHING");
    }
    format!("ON CONFLICT ({key}) DO UPDATE SET {}", updates.join(", "))
}

fn update(table: &str, column: &Column, dialect: Dialect) -> String {
    let name = column.name;
    let (old, new) = (format!("{table}.{name}"), format!("excluded.{name}"));
    let extreme = |sqlite: &str, postgres: &str| match dialect {
        // `min` and `max` of SQLite are NULL if one value is.
        Dialect::Sqlite => format!("coalesce({sqlite}({old}, {new}), {old}, {new})"),
        Dialect::Postgres => format!("{postgres}({old}, {new})"),
    };
    let value = match column.merge {
        Merge::Key | Merge::Replace => new,
        Merge::Min => extreme("min", "LEAST"),
        Merge::Max => extreme("max", "GREATEST"),
        Merge::Bits => format!("coalesce({old}, 0) | coalesce({new}, 0)"),
    };
    format!("{name} = {value}")
}
