//! A field with three states: absent, null, or a value. Once such, always such: v1 promises never to narrow one.

use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// A field that may be left out, be null, or hold a value, each with a meaning of its own.
///
/// Use it with `#[serde(default, skip_serializing_if = "Nullable::is_absent")]`.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum Nullable<T> {
    /// The field is not there: its writer did not say.
    #[default]
    Absent,
    /// The field is null: its writer says that there is none.
    Null,
    /// The field has a value.
    Value(T),
}

impl<T> Nullable<T> {
    /// True where the field is left out.
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
