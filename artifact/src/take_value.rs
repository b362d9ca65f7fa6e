//! Large values on their way from a parsed document into a type: moved, where deserialising would make them again.
//!
//! A value of the right kind is taken out, and a small one of the same kind left in its place, so that the rest of the
//! object is read by the same code as ever. A value of the wrong kind stays, for that code to refuse.

use std::mem;

use serde_json::{Map, Value};

use crate::Content;

/// An object.
pub(crate) fn object(fields: &mut Map<String, Value>, name: &str) -> Option<Map<String, Value>> {
    match fields.get_mut(name)? {
        Value::Object(object) => Some(mem::take(object)),
        _ => None,
    }
}

/// An array.
pub(crate) fn array(fields: &mut Map<String, Value>, name: &str) -> Option<Vec<Value>> {
    match fields.get_mut(name)? {
        Value::Array(items) => Some(mem::take(items)),
        _ => None,
    }
}

/// A text or an object.
pub(crate) fn content(fields: &mut Map<String, Value>, name: &str) -> Option<Content> {
    match fields.get_mut(name)? {
        Value::Object(object) => Some(Content::Json(mem::take(object))),
        Value::String(text) => Some(Content::Text(mem::take(text))),
        _ => None,
    }
}
