//! The value of an expression, independent of the JSON that it was computed from.

use std::fmt;

use serde_json::Value as Json;

use crate::budget::{Budget, Stop, failed};
use crate::operations::MAX_VALUE_DEPTH;
use crate::values::{Value, double_text};

/// A value that an expression computes. `Display` writes it as an expression.
#[derive(Debug, Clone, PartialEq)]
pub enum Computed {
    /// `null`
    Null,
    /// A boolean.
    Bool(bool),
    /// A signed integer.
    Int(i64),
    /// An unsigned integer.
    Uint(u64),
    /// A number with a fraction or an exponent.
    Double(f64),
    String(String),
    Bytes(Vec<u8>),
    List(Vec<Computed>),
    /// The entries of a map, in order.
    Map(Vec<(Computed, Computed)>),
    /// A timestamp of RFC 3339.
    Timestamp(String),
    /// A duration in seconds, such as `1.5s`.
    Duration(String),
    /// The name of a type.
    Type(&'static str),
}

impl Computed {
    /// Copies a value. Parts that the value has several times are copied as often, so the copy is charged.
    pub(crate) fn copy(budget: &mut Budget, value: &Value<'_>) -> Result<Self, Stop> {
        copy_at(budget, value, 0)
    }

    /// Converts the value to JSON. What JSON has no type for becomes the text of an expression; a number that is not finite becomes null.
    pub fn into_json(self) -> Json {
        match self {
            Computed::Null => Json::Null,
            Computed::Bool(value) => value.into(),
            Computed::Int(value) => value.into(),
            Computed::Uint(value) => value.into(),
            Computed::Double(value) => value.into(),
            Computed::String(text) | Computed::Timestamp(text) | Computed::Duration(text) => text.into(),
            Computed::Type(name) => name.into(),
            Computed::List(elements) => elements.into_iter().map(Computed::into_json).collect(),
            Computed::Map(entries) => {
                let name = |key: Computed| match key {
                    Computed::String(text) => text,
                    other => other.to_string(),
                };
                let fields = entries.into_iter().map(|(key, value)| (name(key), value.into_json()));
                Json::Object(fields.collect())
            }
            bytes @ Computed::Bytes(_) => bytes.to_string().into(),
        }
    }
}

fn copy_at(budget: &mut Budget, value: &Value<'_>, depth: usize) -> Result<Computed, Stop> {
    // The copy recurses, and a computed value can be nested deeper than the stack allows.
    if depth > MAX_VALUE_DEPTH {
        return failed(format!("the value is nested deeper than {MAX_VALUE_DEPTH} levels"));
    }
    budget.create_element()?;
    Ok(match value {
        Value::Null => Computed::Null,
        Value::Bool(value) => Computed::Bool(*value),
        Value::Int(value) => Computed::Int(*value),
        Value::Uint(value) => Computed::Uint(*value),
        Value::Double(value) => Computed::Double(*value),
        Value::String(text) => {
            budget.create(text.as_str().len())?;
            Computed::String(text.as_str().to_owned())
        }
        Value::Bytes(bytes) => {
            budget.create(bytes.len())?;
            Computed::Bytes(bytes.to_vec())
        }
        Value::List(list) => {
            Computed::List(list.iter().map(|element| copy_at(budget, &element, depth + 1)).collect::<Result<_, _>>()?)
        }
        Value::Map(map) => {
            let mut entries = Vec::new();
            for (key, value) in map.iter() {
                entries.push((copy_at(budget, &key, depth + 1)?, copy_at(budget, &value, depth + 1)?));
            }
            Computed::Map(entries)
        }
        Value::Timestamp(time) => Computed::Timestamp(time.to_string()),
        Value::Duration(duration) => Computed::Duration(duration.to_string()),
        Value::Type(kind) => Computed::Type(kind.as_str()),
    })
}

impl fmt::Display for Computed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Computed::Null => f.write_str("null"),
            Computed::Bool(value) => value.fmt(f),
            Computed::Int(value) => value.fmt(f),
            Computed::Uint(value) => write!(f, "{value}u"),
            Computed::Double(value) if !value.is_finite() => write!(f, "double('{}')", double_text(*value)),
            // A point or an exponent distinguishes it from an integer.
            Computed::Double(value) => write!(f, "{value:?}"),
            // A JSON string is a string of the language as well.
            Computed::String(text) => serde_json::Value::from(text.as_str()).fmt(f),
            Computed::Bytes(bytes) => {
                f.write_str("b'")?;
                bytes.iter().try_for_each(|byte| write!(f, "\\x{byte:02x}"))?;
                f.write_str("'")
            }
            Computed::List(elements) => {
                f.write_str("[")?;
                for (index, element) in elements.iter().enumerate() {
                    write!(f, "{}{element}", if index > 0 { ", " } else { "" })?;
                }
                f.write_str("]")
            }
            Computed::Map(entries) => {
                f.write_str("{")?;
                for (index, (key, value)) in entries.iter().enumerate() {
                    write!(f, "{}{key}: {value}", if index > 0 { ", " } else { "" })?;
                }
                f.write_str("}")
            }
            Computed::Timestamp(time) => write!(f, "timestamp('{time}')"),
            Computed::Duration(duration) => write!(f, "duration('{duration}')"),
            Computed::Type(name) => f.write_str(name),
        }
    }
}
