//! A value of an evaluation and its type. Values borrow from the JSON of the variables where they can.

use std::rc::Rc;

use serde_json::Value as Json;

use super::containers::List;
use super::containers::Str;
use super::containers::{Entries, Object};
use super::number::Number;
use super::time::Duration;
use super::time::Timestamp;

/// A value that is cheap to clone.
#[derive(Debug, Clone)]
pub(crate) enum Value<'j> {
    Null,
    Bool(bool),
    Int(i64),
    Uint(u64),
    Double(f64),
    String(Str<'j>),
    Bytes(Rc<[u8]>),
    List(List<'j>),
    Map(Object<'j>),
    Timestamp(Timestamp),
    Duration(Duration),
    Type(Type),
}

impl<'j> Value<'j> {
    /// Borrows a JSON value. A number without a fraction or an exponent is an integer if it fits into 64 bits.
    pub(crate) fn from_json(json: &'j Json) -> Self {
        match json {
            Json::Null => Value::Null,
            Json::Bool(value) => Value::Bool(*value),
            Json::Number(number) => match (number.as_i64(), number.as_u64()) {
                (Some(value), _) => Value::Int(value),
                (None, Some(value)) => Value::Uint(value),
                // JSON numbers are finite, so that NaN is never used.
                (None, None) => Value::Double(number.as_f64().unwrap_or(f64::NAN)),
            },
            Json::String(text) => Value::String(Str::Borrowed(text)),
            // Borrowed: an answer can be large, and an expression reads few of its fields.
            Json::Array(items) => Value::List(List::Borrowed(items)),
            Json::Object(map) => Value::Map(Object::Borrowed(map)),
        }
    }

    pub(crate) fn string(text: impl Into<Rc<str>>) -> Self {
        Value::String(Str::Owned(text.into()))
    }

    pub(crate) fn list(items: Vec<Value<'j>>) -> Self {
        Value::List(List::Owned(Rc::new(items)))
    }

    pub(crate) fn map(entries: Entries<'j>) -> Self {
        Value::Map(Object::Owned(Rc::new(entries)))
    }

    /// Returns a count as an integer.
    pub(crate) fn count(count: usize) -> Self {
        // A larger count does not fit into memory.
        Value::Int(i64::try_from(count).unwrap_or(i64::MAX))
    }

    pub(crate) fn number(&self) -> Option<Number> {
        match self {
            Value::Int(value) => Some(Number::Int(*value)),
            Value::Uint(value) => Some(Number::Uint(*value)),
            Value::Double(value) => Some(Number::Double(*value)),
            _ => None,
        }
    }

    pub(crate) const fn type_of(&self) -> Type {
        match self {
            Value::Null => Type::Null,
            Value::Bool(_) => Type::Bool,
            Value::Int(_) => Type::Int,
            Value::Uint(_) => Type::Uint,
            Value::Double(_) => Type::Double,
            Value::String(_) => Type::String,
            Value::Bytes(_) => Type::Bytes,
            Value::List(_) => Type::List,
            Value::Map(_) => Type::Map,
            Value::Timestamp(_) => Type::Timestamp,
            Value::Duration(_) => Type::Duration,
            Value::Type(_) => Type::Kind,
        }
    }

    /// Returns whether keys of maps are compared with values of this type.
    pub(crate) const fn can_be_key(&self) -> bool {
        matches!(self, Value::Bool(_) | Value::Int(_) | Value::Uint(_) | Value::Double(_) | Value::String(_))
    }

    /// Describes the type for messages.
    pub(crate) const fn describe(&self) -> &'static str {
        match self {
            Value::Null => "null",
            Value::Bool(_) => "a boolean",
            Value::Int(_) | Value::Uint(_) | Value::Double(_) => "a number",
            Value::String(_) => "a string",
            Value::Bytes(_) => "bytes",
            Value::List(_) => "a list",
            Value::Map(_) => "an object",
            Value::Timestamp(_) => "a timestamp",
            Value::Duration(_) => "a duration",
            Value::Type(_) => "a type",
        }
    }
}

impl From<Number> for Value<'_> {
    fn from(number: Number) -> Self {
        match number {
            Number::Int(value) => Value::Int(value),
            Number::Uint(value) => Value::Uint(value),
            Number::Double(value) => Value::Double(value),
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Type {
    Null,
    Bool,
    Int,
    Uint,
    Double,
    String,
    Bytes,
    List,
    Map,
    Timestamp,
    Duration,
    Kind,
}

impl Type {
    const ALL: [Type; 12] = [
        Type::Null,
        Type::Bool,
        Type::Int,
        Type::Uint,
        Type::Double,
        Type::String,
        Type::Bytes,
        Type::List,
        Type::Map,
        Type::Timestamp,
        Type::Duration,
        Type::Kind,
    ];

    /// Returns the type with this name in an expression.
    pub(crate) fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| kind.as_str() == name)
    }

    pub(crate) const fn as_str(self) -> &'static str {
        match self {
            Type::Null => "null_type",
            Type::Bool => "bool",
            Type::Int => "int",
            Type::Uint => "uint",
            Type::Double => "double",
            Type::String => "string",
            Type::Bytes => "bytes",
            Type::List => "list",
            Type::Map => "map",
            Type::Timestamp => "google.protobuf.Timestamp",
            Type::Duration => "google.protobuf.Duration",
            Type::Kind => "type",
        }
    }
}
