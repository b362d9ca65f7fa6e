//! The rows of a batch, one for each key.

use std::collections::HashMap;

use super::row::Row;
use super::table::Table;

/// Rows of a table with different keys, in the order in which the keys first appear.
#[derive(Debug)]
pub(crate) struct MergedRows<'a> {
    table: &'static Table,
    rows: Vec<Row<'a>>,
}

impl<'a> MergedRows<'a> {
    /// Merges the rows with equal keys.
    pub(crate) fn new(table: &'static Table, rows: Vec<Row<'a>>) -> Self {
        let places = places(table, &rows);
        let mut merged: Vec<Row<'a>> = Vec::with_capacity(rows.len());
        for (row, place) in rows.into_iter().zip(places) {
            match merged.get_mut(place) {
                Some(first) => first.merge(table, row),
                None => merged.push(row),
            }
        }
        Self { table, rows: merged }
    }

    pub(crate) fn table(&self) -> &'static Table {
        self.table
    }

    pub(crate) fn rows(&self) -> &[Row<'a>] {
        &self.rows
    }
}

/// Returns the number of the key of each row.
fn places(table: &Table, rows: &[Row<'_>]) -> Vec<usize> {
    let mut numbers = HashMap::with_capacity(rows.len());
    let place = |row| {
        let next = numbers.len();
        *numbers.entry(Row::key(row, table)).or_insert(next)
    };
    rows.iter().map(place).collect()
}
