//! Ways into a JSON value that has not been parsed into a type, so that one wrong field hides no other finding.

use serde_json::Value;

/// The elements of an array field with their indices; none where the field is something else.
pub(super) fn items<'a>(document: &'a Value, field: &str) -> impl Iterator<Item = (usize, &'a Value)> {
    document.get(field).and_then(Value::as_array).into_iter().flatten().enumerate()
}

/// A count, as [`counterproof_artifact::Count`] reads it.
pub(super) fn count(value: &Value) -> Option<u64> {
    serde::Deserialize::deserialize(value).map(counterproof_artifact::Count::get).ok()
}
