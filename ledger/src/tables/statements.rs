//! The statements that create tables and merge rows, in the SQL of each database.

use super::table::{Column, Index, Kind, Merge, Table};

/// The SQL of a database.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Dialect {
    /// SQLite.
    Sqlite,
    /// PostgreSQL.
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

/// Returns the statement that creates a table if it does not exist.
pub(crate) fn create_table(table: &Table, dialect: Dialect) -> String {
    let columns = table.columns.iter().map(|column| {
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

/// Returns the statement that creates an index if it does not exist.
pub(crate) fn create_index(index: &Index) -> String {
    let Index { name, table, columns } = index;
    format!("CREATE INDEX IF NOT EXISTS {name} ON {table} ({columns})")
}

/// Returns the end of an `INSERT` statement: how a new row is merged into the one with the same key.
pub(crate) fn on_conflict(table: &Table, dialect: Dialect) -> String {
    let updates: Vec<_> = table.columns[table.key..].iter().map(|column| update(table.name, column, dialect)).collect();
    let key = table.key_names();
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
