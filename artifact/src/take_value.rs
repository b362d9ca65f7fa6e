//! Moves large values from a parsed document into a type. Deserialising them would copy them.
//!
//! A value of the expected kind is replaced by an empty one of the same kind, so the derived code can deserialise the rest
//! of the object. A value of another kind stays in place, and the derived code rejects it.

use std::mem;

use serde_json::{Map, Value};

use crate::Content;

/// Takes an object field.
pub(crate) fn object(fields: &mut Map<String, Value>, name: &str) -> Option<Map<String, Value>> {
    match fields.get_mut(name)? {
        Value::Object(object) => Some(mem::take(object)),
        _ => None,
    }
}

/// Takes an array field.
pub(crate) fn array(fields: &mut Map<String, Value>, name: &str) -> Option<Vec<Value>> {
    match fields.get_mut(name)? {
        Value::Array(items) => Some(mem::take(items)),
        _ => None,
    }
}

/// Takes a field that is a text or an object.
pub(crate) fn content(fields: &mut Map<String, Value>, name: &str) -> Option<Content> {
    match fields.get_mut(name)? {
        Value::Object(object) => Some(Content::Json(mem::take(object))),
        Value::String(text) => Some(Content::Text(mem::take(text))),
        _ => None,
    }
}
