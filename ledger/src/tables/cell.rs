//! A value of a column.

/// A value of a column.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Cell {
    /// No value.
    Null,
    /// A number.
    Integer(i64),
    /// A text.
    Text(String),
}

impl Cell {
    /// Returns a number. Numbers that no database can store become the largest one.
    pub(crate) fn count(value: u64) -> Self {
        Cell::Integer(i64::try_from(value).unwrap_or(i64::MAX))
    }

    /// Returns the text.
    pub fn as_text(&self) -> Option<&str> {
        match self {
            Cell::Text(text) => Some(text),
            Cell::Null | Cell::Integer(_) => None,
        }
    }

    /// Returns the number.
    pub fn as_integer(&self) -> Option<i64> {
        match self {
            Cell::Integer(number) => Some(*number),
            Cell::Null | Cell::Text(_) => None,
        }
    }
}

impl From<String> for Cell {
    fn from(text: String) -> Self {
        Cell::Text(text)
    }
}

impl From<&str> for Cell {
    fn from(text: &str) -> Self {
        Cell::Text(text.to_owned())
    }
}

impl<T: Into<Cell>> From<Option<T>> for Cell {
    fn from(value: Option<T>) -> Self {
        value.map_or(Cell::Null, Into::into)
    }
}

impl From<bool> for Cell {
    fn from(value: bool) -> Self {
        Cell::Integer(i64::from(value))
    }
}

impl From<i64> for Cell {
    fn from(value: i64) -> Self {
        Cell::Integer(value)
    }
}

impl From<u64> for Cell {
    fn from(value: u64) -> Self {
        Cell::count(value)
    }
}
