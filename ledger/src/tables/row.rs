//! Tables and rows, and how two rows with the same key become one.

use std::borrow::Cow;
use std::collections::HashMap;

/// A row of a table: one value for each column.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Row<'a>(Vec<Cell<'a>>);

impl<'a> Row<'a> {
    /// Creates a row from the values of all columns, in their order.
    pub(crate) fn new<const N: usize>(table: &Table, cells: [Cell<'a>; N]) -> Self {
        debug_assert_eq!(N, table.columns.len(), "{}", table.name);
        Self(cells.into())
    }

    pub fn cells(&self) -> &[Cell<'a>] {
        &self.0
    }

    pub fn into_cells(self) -> Vec<Cell<'a>> {
        self.0
    }

    pub(crate) fn key(&self, table: &Table) -> &[Cell<'a>] {
        &self.0[..table.key]
    }

    pub(crate) fn from_cells(cells: Vec<Cell<'a>>) -> Self {
        Self(cells)
    }

    pub(crate) fn get(&self, table: &Table, name: &str) -> &Cell<'a> {
        // A column that does not exist has no value.
        let found = table.columns.iter().zip(&self.0).find(|(column, _)| column.name == name);
        debug_assert!(found.is_some(), "{}.{name}", table.name);
        found.map_or(&Cell::Null, |(_, cell)| cell)
    }

    /// Adds the values of another row with the same key.
    pub(crate) fn merge(&mut self, table: &Table, other: Row<'a>) {
        for ((mine, theirs), column) in self.0.iter_mut().zip(other.0).zip(table.columns) {
            match column.merge {
                // Computed anew from all sources, so also `NULL` replaces an older value.
                Merge::Replace => *mine = theirs,
                // A stated value counts before a missing one, whatever arrives first.
                Merge::Min if *mine == Cell::Null || theirs != Cell::Null && theirs < *mine => *mine = theirs,
                // No value is smaller than any value.
                Merge::Max if theirs > *mine => *mine = theirs,
                Merge::Key | Merge::Min | Merge::Max => {}
                Merge::Bits => {
                    // The arguments and the result of a call come in different events.
                    let bits = mine.as_integer().unwrap_or(0) | theirs.as_integer().unwrap_or(0);
                    *mine = Cell::Integer(bits);
                }
            }
        }
    }
}

#[derive(Debug)]
pub(crate) struct Table {
    pub(crate) name: &'static str,
    /// Its columns. The first ones are the key.
    pub(crate) columns: &'static [Column],
    pub(crate) key: usize,
}

#[derive(Debug)]
pub(crate) struct Column {
    pub(crate) name: &'static str,
    pub(crate) kind: Kind,
    pub(crate) merge: Merge,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    /// Text, compared byte by byte.
    Text,
    Integer,
}

/// How two values for a column of the same row become one. No value loses against any value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Merge {
    /// A part of the key: the values are equal.
    Key,
    Min,
    Max,
    Bits,
    /// The new value, also if it is `NULL`: the column is computed anew.
    Replace,
}

#[derive(Debug)]
pub(crate) struct Index {
    pub(crate) name: &'static str,
    pub(crate) table: &'static str,
    pub(crate) columns: &'static str,
}

impl Table {
    pub(crate) fn column_names(&self) -> String {
        let names: Vec<_> = self.columns.iter().map(|column| column.name).collect();
        names.join(", ")
    }

    /// Returns the names of the columns of the key, separated by commas.
    pub(crate) fn key_names(&self) -> String {
        let names: Vec<_> = self.columns[..self.key].iter().map(|column| column.name).collect();
        names.join(", ")
    }
}

/// A value of a column. Texts may be parts of the lines that they come from.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Cell<'a> {
    Null,
    Integer(i64),
    Text(Cow<'a, str>),
}

impl Cell<'_> {
    pub fn as_text(&self) -> Option<&str> {
        match self {
            Cell::Text(text) => Some(text),
            Cell::Null | Cell::Integer(_) => None,
        }
    }

    pub fn as_integer(&self) -> Option<i64> {
        match self {
            Cell::Integer(number) => Some(*number),
            Cell::Null | Cell::Text(_) => None,
        }
    }

    /// Returns the same value without a copy of its text.
    pub(crate) fn borrow(&self) -> Cell<'_> {
        match self {
            Cell::Null => Cell::Null,
            Cell::Integer(number) => Cell::Integer(*number),
            Cell::Text(text) => Cell::Text(Cow::Borrowed(text)),
        }
    }

    /// Copies a text that is a part of a line.
    pub fn into_owned(self) -> Cell<'static> {
        match self {
            Cell::Null => Cell::Null,
            Cell::Integer(number) => Cell::Integer(number),
            Cell::Text(text) => Cell::Text(Cow::Owned(text.into_owned())),
        }
    }
}

impl<'a> From<Cow<'a, str>> for Cell<'a> {
    fn from(text: Cow<'a, str>) -> Self {
        Cell::Text(text)
    }
}

impl From<String> for Cell<'_> {
    fn from(text: String) -> Self {
        Cell::Text(Cow::Owned(text))
    }
}

impl<'a> From<&'a str> for Cell<'a> {
    fn from(text: &'a str) -> Self {
        Cell::Text(Cow::Borrowed(text))
    }
}

impl<'a, T: Into<Cell<'a>>> From<Option<T>> for Cell<'a> {
    fn from(value: Option<T>) -> Self {
        value.map_or(Cell::Null, Into::into)
    }
}

impl From<bool> for Cell<'_> {
    fn from(value: bool) -> Self {
        Cell::Integer(i64::from(value))
    }
}

impl From<i64> for Cell<'_> {
    fn from(value: i64) -> Self {
        Cell::Integer(value)
    }
}

impl From<u64> for Cell<'_> {
    fn from(value: u64) -> Self {
        // Databases have signed numbers: one that is too large becomes the largest one.
        Cell::Integer(i64::try_from(value).unwrap_or(i64::MAX))
    }
}

/// Rows of a table with different keys, in the order in which the keys first appear.
#[derive(Debug)]
pub(crate) struct MergedRows<'a> {
    pub(crate) table: &'static Table,
    pub(crate) rows: Vec<Row<'a>>,
}

impl<'a> MergedRows<'a> {
    pub(crate) fn new(table: &'static Table, rows: Vec<Row<'a>>) -> Self {
        // Merged in memory first: one statement for each key instead of one for each event.
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
