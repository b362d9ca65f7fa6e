//! A row, and how two rows with the same key become one.

use super::cell::Cell;
use super::table::{Merge, Table};

/// A row of a table: one value for each column.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Row<'a>(Vec<Cell<'a>>);

impl<'a> Row<'a> {
    /// Creates a row from the values of all columns, in their order.
    pub(crate) fn new<const N: usize>(table: &Table, cells: [Cell<'a>; N]) -> Self {
        debug_assert_eq!(N, table.columns.len(), "{}", table.name);
        Self(cells.into())
    }

    /// Returns the values.
    pub fn cells(&self) -> &[Cell<'a>] {
        &self.0
    }

    /// Returns the values.
    pub fn into_cells(self) -> Vec<Cell<'a>> {
        self.0
    }

    /// Returns the values of the key.
    pub(crate) fn key(&self, table: &Table) -> &[Cell<'a>] {
        &self.0[..table.key]
    }

    /// Creates a row from the values of a query.
    pub(crate) fn from_cells(cells: Vec<Cell<'a>>) -> Self {
        Self(cells)
    }

    /// Returns the value of a column. A column that does not exist has no value.
    pub(crate) fn get(&self, table: &Table, name: &str) -> &Cell<'a> {
        let found = table.columns.iter().zip(&self.0).find(|(column, _)| column.name == name);
        debug_assert!(found.is_some(), "{}.{name}", table.name);
        found.map_or(&Cell::Null, |(_, cell)| cell)
    }

    /// Adds the values of another row with the same key.
    pub(crate) fn merge(&mut self, table: &Table, other: Row<'a>) {
        for ((mine, theirs), column) in self.0.iter_mut().zip(other.0).zip(table.columns) {
            match column.merge {
                Merge::Replace => *mine = theirs,
                Merge::Min if *mine == Cell::Null || theirs != Cell::Null && theirs < *mine => *mine = theirs,
                // No value is smaller than any value.
                Merge::Max if theirs > *mine => *mine = theirs,
                Merge::Key | Merge::Min | Merge::Max => {}
                Merge::Bits => {
                    let bits = mine.as_integer().unwrap_or(0) | theirs.as_integer().unwrap_or(0);
                    *mine = Cell::Integer(bits);
                }
            }
        }
    }
}
