//! Adds events to a SQLite database.

use std::thread;

use rusqlite::{Connection, Result, ToSql, params, params_from_iter, types::ToSqlOutput};

use crate::line::EventLine;
use crate::store::{Appended, BatchRows, run_row};
use crate::tables::{Cell, Dialect, MergedRows, RUN_SOURCES, RUNS, Row, Table, on_conflict};

/// The statements of a batch. Their texts are made once.
#[derive(Debug)]
pub(super) struct Statements {
    upserts: Vec<(&'static str, String)>,
    sources: String,
}

impl Statements {
    pub(super) fn new() -> Self {
        let upserts = crate::tables::ALL.iter().map(|table| (table.name, upsert(table))).collect();
        let sources = format!("SELECT {} FROM run_sources WHERE run_id = ?1", RUN_SOURCES.column_names());
        Self { upserts, sources }
    }

    /// Adds events within a transaction.
    pub(super) fn append(&self, connection: &Connection, events: &[EventLine<'_>]) -> Result<Appended> {
        let mut appended = Appended::default();
        let mut new = Vec::with_capacity(events.len());
        let text =
            "INSERT INTO events (run_id, shim_id, seq, digest, type, ts, line) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)
                    ON CONFLICT DO NOTHING";
        let mut insert = connection.prepare_cached(text)?;
        for event in events {
            // A batch takes milliseconds. On a busy machine the threads that forward messages go first.
            thread::yield_now();
            let values = params![
                event.run_id(),
                event.shim_id(),
                event.seq(),
                event.digest(),
                event.kind(),
                event.ts(),
                event.line()
            ];
            if insert.execute(values)? == 0 {
                appended.repeated += 1;
            } else {
                appended.added += 1;
                new.push(event);
            }
        }
        let rows = BatchRows::new(&new);
        for table in rows.tables() {
            self.upsert(connection, table)?;
        }
        for run in rows.runs() {
            self.update_run(connection, run)?;
        }
        Ok(appended)
    }

    /// Computes the row of a run anew.
    pub(super) fn update_run(&self, connection: &Connection, run_id: &str) -> Result<()> {
        let mut statement = connection.prepare_cached(&self.sources)?;
        let sources: Vec<Row<'static>> =
            statement.query_map([run_id], |row| read(row, RUN_SOURCES.columns.len()))?.collect::<Result<_>>()?;
        let row = run_row(&sources).into_iter().collect();
        self.upsert(connection, &MergedRows::new(&RUNS, row))
    }

    fn upsert(&self, connection: &Connection, rows: &MergedRows<'_>) -> Result<()> {
        let name = rows.table().name;
        let Some((_, text)) = self.upserts.iter().find(|(table, _)| *table == name) else { return Ok(()) };
        let mut statement = connection.prepare_cached(text)?;
        for row in rows.rows() {
            statement.execute(params_from_iter(row.cells()))?;
        }
        Ok(())
    }
}

fn upsert(table: &Table) -> String {
    let values: Vec<_> = (1..=table.columns.len()).map(|number| format!("?{number}")).collect();
    let (name, columns) = (table.name, table.column_names());
    let conflict = on_conflict(table, Dialect::Sqlite);
    format!("INSERT INTO {name} ({columns}) VALUES ({}) {conflict}", values.join(", "))
}

pub(super) fn read(row: &rusqlite::Row<'_>, columns: usize) -> Result<Row<'static>> {
    (0..columns).map(|number| cell(row, number)).collect::<Result<Vec<_>>>().map(Row::from_cells)
}

fn cell(row: &rusqlite::Row<'_>, number: usize) -> Result<Cell<'static>> {
    use rusqlite::types::Value;

    Ok(match row.get(number)? {
        Value::Integer(number) => Cell::Integer(number),
        Value::Text(text) => Cell::from(text),
        Value::Null | Value::Real(_) | Value::Blob(_) => Cell::Null,
    })
}

impl ToSql for Cell<'_> {
    fn to_sql(&self) -> Result<ToSqlOutput<'_>> {
        match self {
            Cell::Null => rusqlite::types::Null.to_sql(),
            Cell::Integer(number) => number.to_sql(),
            Cell::Text(text) => Ok(ToSqlOutput::from(&**text)),
        }
    }
}
