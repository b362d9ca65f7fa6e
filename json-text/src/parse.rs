//! Parses JSON into values and detects duplicate keys, which `serde_json` silently resolves to the last value.

use std::cell::{Cell, RefCell};
use std::fmt;

use serde::de::{DeserializeSeed, Deserializer, MapAccess, SeqAccess, Visitor};
use serde_json::{Map, Number, Value};

use crate::locate::duplicate_keys;
use crate::strings::decode;

/// A parsed text.
#[derive(Debug, Clone, PartialEq)]
pub struct Parsed {
    /// The value. Of a duplicate key, the last value counts.
    pub value: Value,
    /// True if an object has a key twice. [`duplicate_keys`] returns them.
    pub has_duplicate_keys: bool,
}

/// Parses a text as `serde_json` does.
///
/// Only detects duplicate keys: texts without them, nearly all, do not pay for positions and pointers.
pub fn parse(text: &str) -> Result<Parsed, serde_json::Error> {
    let buffers = ParseBuffers::default();
    let mut reader = serde_json::Deserializer::from_str(text);
    let value = ValueSeed(&buffers).deserialize(&mut reader)?;
    reader.end()?;
    Ok(Parsed { value, has_duplicate_keys: buffers.has_duplicates.get() })
}

/// Why a text is not strict JSON.
#[derive(Debug, thiserror::Error)]
pub enum StrictError {
    /// A key occurs twice in an object. Parsers disagree on which value counts.
    #[error("the key `{0}` occurs twice in an object")]
    DuplicateKey(String),
    #[error("not UTF-8")]
    NotUtf8,
    /// Not JSON, nested too deeply, or JSON that `serde_json` cannot represent: see [`check`](crate::check).
    #[error("invalid JSON: {0}")]
    Invalid(serde_json::Error),
}

/// Parses JSON in which no object has the same key twice.
pub fn parse_strict(bytes: &[u8]) -> Result<Value, StrictError> {
    let text = std::str::from_utf8(bytes).map_err(|_| StrictError::NotUtf8)?;
    let parsed = parse(text);
    if let Ok(Parsed { value, has_duplicate_keys: false }) = parsed {
        return Ok(value);
    }
    // Duplicates first: which value another parser takes matters more than a number that this one cannot represent.
    match (duplicate_keys(text).listed.first(), parsed) {
        (Some(duplicate), _) => Err(StrictError::DuplicateKey(decode(&text[duplicate.span.clone()]).into_owned())),
        (None, Err(error)) => Err(StrictError::Invalid(error)),
        (None, Ok(parsed)) => Ok(parsed.value),
    }
}

/// The elements of open arrays and objects. Their number is known only at the end; collecting them here lets each container
/// be allocated once, at its final size.
#[derive(Debug, Default)]
struct ParseBuffers {
    has_duplicates: Cell<bool>,
    items: RefCell<Vec<Value>>,
    fields: RefCell<Vec<(String, Value)>>,
}

/// Builds a [`Value`] as `serde_json` does, and detects duplicate keys, which `serde_json` silently resolves to the last
/// value.
#[derive(Clone, Copy)]
struct ValueSeed<'a>(&'a ParseBuffers);

impl<'de> DeserializeSeed<'de> for ValueSeed<'_> {
    type Value = Value;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Value, D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for ValueSeed<'_> {
    type Value = Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("any JSON value")
    }

    fn visit_unit<E>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_bool<E>(self, value: bool) -> Result<Value, E> {
        Ok(Value::Bool(value))
    }

    fn visit_i64<E>(self, value: i64) -> Result<Value, E> {
        Ok(Value::Number(value.into()))
    }

    fn visit_u64<E>(self, value: u64) -> Result<Value, E> {
        Ok(Value::Number(value.into()))
    }

    fn visit_f64<E: serde::de::Error>(self, value: f64) -> Result<Value, E> {
        Number::from_f64(value).map(Value::Number).ok_or_else(|| E::custom("number out of range"))
    }

    fn visit_str<E>(self, value: &str) -> Result<Value, E> {
        Ok(Value::String(value.to_owned()))
    }

    fn visit_string<E>(self, value: String) -> Result<Value, E> {
        Ok(Value::String(value))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Value, A::Error> {
        let read = &self.0.items;
        // One buffer for all nesting levels: each array owns the part after `start`, so vectors are allocated at their final size.
        let start = read.borrow().len();
        while let Some(item) = items.next_element_seed(self)? {
            read.borrow_mut().push(item);
        }
        Ok(Value::Array(read.borrow_mut().drain(start..).collect()))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut entries: A) -> Result<Value, A::Error> {
        let read = &self.0.fields;
        let start = read.borrow().len();
        while let Some(key) = entries.next_key::<String>()? {
            let value = entries.next_value_seed(self)?;
            read.borrow_mut().push((key, value));
        }
        // Borrowed only now: the values within the object use the same buffer.
        let mut read = read.borrow_mut();
        let mut object = Map::with_capacity(read.len() - start);
        for (key, value) in read.drain(start..) {
            if object.insert(key, value).is_some() {
                self.0.has_duplicates.set(true);
            }
        }
        Ok(Value::Object(object))
    }
}
