//! Reads the values of a row in the order of its columns.

use crate::store::{Cell, Row};

/// The values of a row that were not read yet.
pub(super) struct Fields(std::vec::IntoIter<Cell<'static>>);

impl Fields {
    pub(super) fn new(row: Row<'static>) -> Self {
        Self(row.into_cells().into_iter())
    }

    /// Returns the next value, if it is a text.
    pub(super) fn text(&mut self) -> Option<String> {
        match self.0.next() {
            Some(Cell::Text(text)) => Some(text.into_owned()),
            _ => None,
        }
    }

    /// Returns the next value, which is a text in every row.
    pub(super) fn required(&mut self) -> String {
        self.text().unwrap_or_default()
    }

    /// Returns the next value, if it is a number.
    pub(super) fn integer(&mut self) -> Option<i64> {
        self.0.next().and_then(|cell| cell.as_integer())
    }

    /// Returns the next value, which is a count.
    pub(super) fn count(&mut self) -> u64 {
        self.integer().and_then(|count| u64::try_from(count).ok()).unwrap_or_default()
    }
}
