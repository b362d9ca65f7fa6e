//! Adds events to a PostgreSQL database: one statement for each table.

use std::collections::{HashMap, HashSet};

use postgres::types::ToSql;
use postgres::{Error, Transaction};

use super::cells;
use crate::line::EventLine;
use crate::store::{Appended, BatchRows, run_row};
use crate::tables::{Cell, Dialect, Kind, MergedRows, RUN_SOURCES, RUNS, Row, Table, on_conflict};

/// The order of the arrays is that of the events, and `id` follows it.
const INSERT: &str = "INSERT INTO events (run_id, shim_id, seq, digest, type, ts, line) \
                      SELECT run_id, shim_id, seq, digest, type, ts, line FROM UNNEST($1::text[], $2::text[], \
                      $3::bigint[], $4::text[], $5::text[], $6::text[], $7::text[]) WITH ORDINALITY \
                      AS new (run_id, shim_id, seq, digest, type, ts, line, number) ORDER BY number \
                      ON CONFLICT DO NOTHING RETURNING run_id, shim_id, seq, digest";

/// What identifies an event.
type Key = (String, String, Option<i64>, Option<String>);

/// Adds events within a transaction that holds the lock of writers.
pub(super) fn append(transaction: &mut Transaction<'_>, events: &[EventLine<'_>]) -> Result<Appended, Error> {
    let total = events.len() as u64;
    let mut keys = insert(transaction, events)?;
    let added = keys.len() as u64;
    // If a batch has an event twice, the first one was added.
    let new: Vec<&EventLine<'_>> = events.iter().filter(|event| keys.remove(&key(event))).collect();
    let rows = BatchRows::new(&new);
    for table in rows.tables() {
        upsert(transaction, table)?;
    }
    update_runs(transaction, rows.runs())?;
    Ok(Appended { added, repeated: total - added })
}

fn key(event: &EventLine<'_>) -> Key {
    (event.run_id().to_owned(), event.shim_id().to_owned(), event.seq(), event.digest().map(str::to_owned))
}

fn insert(transaction: &mut Transaction<'_>, events: &[EventLine<'_>]) -> Result<HashSet<Key>, Error> {
    fn column<'a, T>(events: &'a [EventLine<'a>], value: impl Fn(&'a EventLine<'a>) -> T) -> Vec<T> {
        events.iter().map(value).collect()
    }
    let statement = transaction.prepare(INSERT)?;
    let inserted = transaction.query(
        &statement,
        &[
            &column(events, EventLine::run_id),
            &column(events, EventLine::shim_id),
            &column(events, EventLine::seq),
            &column(events, EventLine::digest),
            &column(events, EventLine::kind),
            &column(events, EventLine::ts),
            &column(events, EventLine::line),
        ],
    )?;
    let key = |row: &postgres::Row| Ok((row.try_get(0)?, row.try_get(1)?, row.try_get(2)?, row.try_get(3)?));
    inserted.iter().map(key).collect()
}

/// Computes the rows of runs anew.
pub(super) fn update_runs(transaction: &mut Transaction<'_>, runs: &[&str]) -> Result<(), Error> {
    let text = format!("SELECT {} FROM run_sources WHERE run_id = ANY($1::text[])", RUN_SOURCES.column_names());
    let mut sources: HashMap<String, Vec<Row<'static>>> = HashMap::new();
    for row in transaction.query(&text, &[&runs])? {
        sources.entry(row.try_get(0)?).or_default().push(cells::row(&row)?);
    }
    let rows = sources.values().filter_map(|sources| run_row(sources)).collect();
    upsert(transaction, &MergedRows::new(&RUNS, rows))
}

fn upsert(transaction: &mut Transaction<'_>, rows: &MergedRows<'_>) -> Result<(), Error> {
    if rows.rows().is_empty() {
        return Ok(());
    }
    let table = rows.table();
    let columns: Vec<Array> = (0..table.columns.len()).map(|number| Array::new(table, rows.rows(), number)).collect();
    let values: Vec<&(dyn ToSql + Sync)> = columns.iter().map(Array::as_sql).collect();
    let statement = transaction.prepare(&upsert_text(table))?;
    transaction.execute(&statement, &values).map(drop)
}

fn upsert_text(table: &Table) -> String {
    let array = |(number, kind): (usize, Kind)| match kind {
        Kind::Text => format!("${number}::text[]"),
        Kind::Integer => format!("${number}::bigint[]"),
    };
    let arrays: Vec<_> = (1..).zip(table.columns.iter().map(|column| column.kind)).map(array).collect();
    let (name, columns, conflict) = (table.name, table.column_names(), on_conflict(table, Dialect::Postgres));
    format!("INSERT INTO {name} ({columns}) SELECT * FROM UNNEST({}) {conflict}", arrays.join(", "))
}

/// The values of one column.
enum Array {
    Texts(Vec<Option<String>>),
    Numbers(Vec<Option<i64>>),
}

impl Array {
    fn new(table: &Table, rows: &[Row<'_>], number: usize) -> Self {
        let cells = rows.iter().map(|row| &row.cells()[number]);
        match table.columns[number].kind {
            Kind::Text => Array::Texts(cells.map(|cell| cell.as_text().map(str::to_owned)).collect()),
            Kind::Integer => Array::Numbers(cells.map(Cell::as_integer).collect()),
        }
    }

    fn as_sql(&self) -> &(dyn ToSql + Sync) {
        match self {
            Array::Texts(texts) => texts,
            Array::Numbers(numbers) => numbers,
        }
    }
}
