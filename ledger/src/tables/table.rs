//! The definition of a table.

#[derive(Debug)]
pub(crate) struct Table {
    pub(crate) name: &'static str,
    /// Its columns. The first ones are the key.
    pub(crate) columns: &'static [Column],
    /// Number of columns of the key.
    pub(crate) key: usize,
}

#[derive(Debug)]
pub(crate) struct Column {
    pub(crate) name: &'static str,
    /// The type of its values.
    pub(crate) kind: Kind,
    /// How two values become one.
    pub(crate) merge: Merge,
}

/// The type of the values of a column.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    /// Text, compared byte by byte.
    Text,
    /// A number of 64 bits.
    Integer,
}

/// How two values for a column of the same row become one. No value loses against any value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Merge {
    /// A part of the key: the values are equal.
    Key,
    /// The smaller value.
    Min,
    /// The larger value.
    Max,
    /// All bits of both numbers.
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

impl Column {
    const fn new(name: &'static str, kind: Kind, merge: Merge) -> Self {
        Self { name, kind, merge }
    }

    pub(super) const fn text(name: &'static str, merge: Merge) -> Self {
        Self::new(name, Kind::Text, merge)
    }

    /// A column of numbers.
    pub(super) const fn integer(name: &'static str, merge: Merge) -> Self {
        Self::new(name, Kind::Integer, merge)
    }
}

impl Table {
    /// Returns the names of all columns, separated by commas.
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
