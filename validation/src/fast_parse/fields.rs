//! Building blocks of the fast path: borrowed keys, and early exit at the first unexpected value.

use std::borrow::Cow;
use std::fmt;

use serde::de::{DeserializeSeed, Deserializer, Error, MapAccess, SeqAccess, Visitor};
use serde_json::{Map, Value};

use crate::parse::{ParseBuffers, ValueSeed};
use counterproof_artifact::{Content, ContentType, RiskLevel};

/// Objects with more fields take the slow path: duplicate keys are found by a linear search.
const MAX_FIELDS: usize = 64;

/// Leaves the fast path. The slow path reports the reason.
pub(super) fn bail<E: Error>() -> E {
    E::custom("undecided")
}

/// Returns a required value, or leaves the fast path.
pub(super) fn required<T, E: Error>(value: Option<T>) -> Result<T, E> {
    value.ok_or_else(bail)
}

/// Sets a field, or leaves the fast path where it is already set.
pub(super) fn put<T, E: Error>(field: &mut Option<T>, value: T) -> Result<(), E> {
    match field.replace(value) {
        None => Ok(()),
        Some(_) => Err(bail()),
    }
}

/// Stores an unknown field.
pub(super) fn keep<E: Error>(extra: &mut Map<String, Value>, name: Cow<'_, str>, value: Value) -> Result<(), E> {
    match extra.insert(name.into_owned(), value) {
        None => Ok(()),
        Some(_) => Err(bail()),
    }
}

/// A string, borrowed where it has no escapes.
#[derive(Clone, Copy)]
pub(super) struct TextSeed;

impl<'de> DeserializeSeed<'de> for TextSeed {
    type Value = Cow<'de, str>;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Self::Value, D::Error> {
        deserializer.deserialize_str(self)
    }
}

impl<'de> Visitor<'de> for TextSeed {
    type Value = Cow<'de, str>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a string")
    }

    fn visit_borrowed_str<E>(self, text: &'de str) -> Result<Self::Value, E> {
        Ok(Cow::Borrowed(text))
    }

    fn visit_str<E>(self, text: &str) -> Result<Self::Value, E> {
        Ok(Cow::Owned(text.to_owned()))
    }
}

/// An array whose elements are read by the same seed.
pub(super) struct Each<S>(pub(super) S);

impl<'de, S: DeserializeSeed<'de> + Copy> DeserializeSeed<'de> for Each<S> {
    type Value = Vec<S::Value>;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Self::Value, D::Error> {
        deserializer.deserialize_seq(self)
    }
}

impl<'de, S: DeserializeSeed<'de> + Copy> Visitor<'de> for Each<S> {
    type Value = Vec<S::Value>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an array")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Self::Value, A::Error> {
        let mut list = Vec::new();
        while let Some(item) = items.next_element_seed(self.0)? {
            list.push(item);
        }
        Ok(list)
    }
}

/// All fields of an object, in order.
#[derive(Clone, Copy)]
pub(super) struct FieldsSeed<'g>(pub(super) &'g ParseBuffers);

impl<'de> DeserializeSeed<'de> for FieldsSeed<'_> {
    type Value = Vec<(Cow<'de, str>, Value)>;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Self::Value, D::Error> {
        deserializer.deserialize_map(self)
    }
}

impl<'de> Visitor<'de> for FieldsSeed<'_> {
    type Value = Vec<(Cow<'de, str>, Value)>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut entries: A) -> Result<Self::Value, A::Error> {
        let mut fields: Self::Value = Vec::with_capacity(8);
        while let Some(name) = entries.next_key_seed(TextSeed)? {
            if fields.len() == MAX_FIELDS || fields.iter().any(|(known, _)| *known == name) {
                return Err(bail());
            }
            fields.push((name, entries.next_value_seed(ValueSeed(self.0))?));
        }
        Ok(fields)
    }
}

/// Reads a string and converts it with `parse`.
pub(super) fn word<'de, T, A: MapAccess<'de>>(
    entries: &mut A,
    parse: impl FnOnce(&str) -> Option<T>,
) -> Result<T, A::Error> {
    required(parse(&entries.next_value_seed(TextSeed)?))
}

/// Reads an object.
pub(super) fn object<'de, A: MapAccess<'de>>(
    entries: &mut A,
    buffers: &ParseBuffers,
) -> Result<Map<String, Value>, A::Error> {
    match entries.next_value_seed(ValueSeed(buffers))? {
        Value::Object(fields) => Ok(fields),
        _ => Err(bail()),
    }
}

/// Converts a text or an object.
pub(super) fn content(value: Value) -> Option<Content> {
    match value {
        Value::String(text) => Some(Content::Text(text)),
        Value::Object(fields) => Some(Content::Json(fields)),
        _ => None,
    }
}

pub(super) fn content_type(word: &str) -> Option<ContentType> {
    [ContentType::Text, ContentType::Json].into_iter().find(|known| known.as_str() == word)
}

pub(super) fn risk(word: &str) -> Option<RiskLevel> {
    [RiskLevel::High, RiskLevel::Medium, RiskLevel::Low, RiskLevel::Unknown]
        .into_iter()
        .find(|level| level.as_str() == word)
}
