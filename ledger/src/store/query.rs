//! A statement with its values, in the SQL that all databases have in common.

use crate::tables::Cell;

/// A statement with its values. `?1` in its text stands for the first value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Query {
    text: String,
    values: Vec<Cell<'static>>,
}

impl Query {
    /// Creates a statement without values.
    pub(crate) fn new(text: impl Into<String>) -> Self {
        Self { text: text.into(), values: Vec::new() }
    }

    /// Adds the next value.
    #[must_use]
    pub(crate) fn with<'a>(mut self, value: impl Into<Cell<'a>>) -> Self {
        self.values.push(value.into().into_owned());
        self
    }

    /// Adds text.
    pub(crate) fn push(&mut self, text: &str) {
        self.text.push_str(text);
    }

    /// Adds a value, and returns its placeholder.
    pub(crate) fn bind<'a>(&mut self, value: impl Into<Cell<'a>>) -> String {
        self.values.push(value.into().into_owned());
        format!("?{}", self.values.len())
    }

    pub fn text(&self) -> &str {
        &self.text
    }

    pub fn values(&self) -> &[Cell<'static>] {
        &self.values
    }
}
