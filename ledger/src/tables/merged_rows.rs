//! The rows of a batch, one for each key.

use std::collections::HashMap;

use super::cell::Cell;
use super::row::Row;
use super::table::Table;

/// Rows of a table with different keys, in the order in which the keys were first added.
#[derive(Debug)]
pub(crate) struct MergedRows {
    table: &'static Table,
    rows: Vec<Row>,
    numbers: HashMap<Vec<Cell>, usize>,
}

impl MergedRows {
    /// Creates an empty set of rows.
    pub(crate) fn new(table: &'static Table) -> Self {
        Self { table, rows: Vec::new(), numbers: HashMap::new() }
    }

    /// Adds rows.
    pub(crate) fn extend(&mut self, rows: impl IntoIterator<Item = Row>) {
        for row in rows {
            self.add(row);
        }
    }

    /// Adds a row, or merges it into the row with the same key.
    pub(crate) fn add(&mut self, row: Row) {
        let key = row.key(self.table);
        if let Some(number) = self.numbers.get(key) {
            self.rows[*number].merge(self.table, row);
        } else {
            self.numbers.insert(key.to_vec(), self.rows.len());
            self.rows.push(row);
        }
    }

    /// Returns the table.
    pub(crate) fn table(&self) -> &'static Table {
        self.table
    }

    /// Returns the rows.
    pub(crate) fn rows(&self) -> &[Row] {
        &self.rows
    }
}
