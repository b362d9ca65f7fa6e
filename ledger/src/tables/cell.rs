//! A value of a column.

use std::borrow::Cow;

/// A value of a column. Texts may be parts of the lines that they come from.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Cell<'a> {
    /// No value.
    Null,
    /// A number.
    Integer(i64),
    Text(Cow<'a, str>),
}

impl Cell<'_> {
    /// Returns a number. Numbers that are too large for databases become the largest one.
    pub(crate) fn count(value: u64) -> Self {
        Cell::Integer(i64::try_from(value).unwrap_or(i64::MAX))
    }

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
        Cell::count(value)
    }
}
