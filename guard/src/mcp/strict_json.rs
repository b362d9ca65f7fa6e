//! JSON in which no object has the same key twice. Parsers disagree on which value counts, so what was inspected might not be
//! what the server executes.

use std::cell::RefCell;
use std::fmt;

use serde::de::{DeserializeSeed, Deserializer, Error as _, MapAccess, SeqAccess, Visitor};
use serde_json::{Map, Number, Value};

/// Why a text is not strict JSON.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum StrictError {
    #[error("the key `{0}` occurs twice in an object")]
    DuplicateKey(String),
    #[error("the message is not UTF-8")]
    NotUtf8,
    #[error("invalid JSON: {0}")]
    Invalid(String),
}

pub(super) fn parse_strict(bytes: &[u8]) -> Result<Value, StrictError> {
    let duplicate = RefCell::new(None);
    let mut deserializer = serde_json::Deserializer::from_slice(bytes);
    let parsed = Strict { duplicate: &duplicate }
        .deserialize(&mut deserializer)
        .and_then(|value| deserializer.end().map(|()| value));
    match (parsed, duplicate.into_inner()) {
        (_, Some(key)) => Err(StrictError::DuplicateKey(key)),
        (Ok(value), None) => Ok(value),
        (Err(error), None) => Err(StrictError::Invalid(error.to_string())),
    }
}

#[derive(Clone, Copy)]
struct Strict<'a> {
    /// The key that occurs twice. Errors of serde carry only text.
    duplicate: &'a RefCell<Option<String>>,
}

impl<'de> DeserializeSeed<'de> for Strict<'_> {
    type Value = Value;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Value, D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Strict<'_> {
    type Value = Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a JSON value")
    }

    fn visit_unit<E>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_bool<E>(self, value: bool) -> Result<Value, E> {
        Ok(Value::Bool(value))
    }

    fn visit_u64<E>(self, value: u64) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_i64<E>(self, value: i64) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_f64<E>(self, value: f64) -> Result<Value, E> {
        Ok(Number::from_f64(value).map_or(Value::Null, Value::Number))
    }

    fn visit_str<E>(self, value: &str) -> Result<Value, E> {
        Ok(Value::String(value.to_owned()))
    }

    fn visit_string<E>(self, value: String) -> Result<Value, E> {
        Ok(Value::String(value))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Value, A::Error> {
        let mut array = Vec::new();
        while let Some(item) = items.next_element_seed(self)? {
            array.push(item);
        }
        Ok(Value::Array(array))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut entries: A) -> Result<Value, A::Error> {
        let mut object = Map::new();
        while let Some(key) = entries.next_key::<String>()? {
            if object.contains_key(&key) {
                *self.duplicate.borrow_mut() = Some(key);
                return Err(A::Error::custom("duplicate key"));
            }
            let value = entries.next_value_seed(self)?;
            object.insert(key, value);
        }
        Ok(Value::Object(object))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    #[test]
    fn a_key_that_occurs_twice_at_any_depth_is_an_error() {
        for text in [r#"{"a":1,"a":1}"#, r#"[{"b":{"a":1,"\u0061":2}}]"#] {
            assert_eq!(parse_strict(text.as_bytes()), Err(StrictError::DuplicateKey("a".to_owned())), "{text}");
        }
        assert_eq!(parse_strict(br#"{"a":{"a":1},"b":[{"a":1}]}"#), Ok(json!({"a": {"a": 1}, "b": [{"a": 1}]})));
    }

    #[test]
    fn other_text_than_json_is_an_error() {
        let deep = "[".repeat(100_000);
        for text in ["", "{", "{} {}", "NaN", "{'a':1}", "{\"a\":1,}", &deep] {
            assert!(
                matches!(parse_strict(text.as_bytes()), Err(StrictError::Invalid(_))),
                "{}",
                &text[..text.len().min(20)]
            );
        }
    }

    proptest! {
        #[test]
        fn a_value_is_parsed_as_by_the_library(text in r#"[\[\]{}:,"a0-9eE.\\u -]{0,40}"#) {
            let expected = serde_json::from_str::<Value>(&text).ok();
            match parse_strict(text.as_bytes()) {
                Ok(value) => prop_assert_eq!(Some(value), expected),
                Err(StrictError::Invalid(_)) => prop_assert_eq!(None, expected),
                Err(StrictError::DuplicateKey(_)) => {}
                Err(StrictError::NotUtf8) => prop_assert!(false, "the text is UTF-8"),
            }
        }
    }
}
