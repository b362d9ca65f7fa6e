//! A field with three states: absent, null, or a value. v1 never narrows such a field to fewer states.

use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// A field that is absent, null, or a value, where each state has its own meaning.
///
/// Use it with `#[serde(default, skip_serializing_if = "Nullable::is_absent")]`.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum Nullable<T> {
    /// The field is missing: its writer made no statement.
    #[default]
    Absent,
    /// The field is null: its writer states that there is no value.
    Null,
    /// The field has a value.
    Value(T),
}

impl<T> Nullable<T> {
    /// True where the field is missing.
    pub const fn is_absent(&self) -> bool {
        matches!(self, Nullable::Absent)
    }

    /// The value, if there is one.
    pub const fn value(&self) -> Option<&T> {
        match self {
            Nullable::Value(value) => Some(value),
            Nullable::Absent | Nullable::Null => None,
        }
    }
}

impl<T> From<Option<T>> for Nullable<T> {
    fn from(option: Option<T>) -> Self {
        option.map_or(Nullable::Null, Nullable::Value)
    }
}

impl<T: Serialize> Serialize for Nullable<T> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.value().serialize(serializer)
    }
}

impl<'de, T: Deserialize<'de>> Deserialize<'de> for Nullable<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Option::<T>::deserialize(deserializer).map(Nullable::from)
    }
}
