//! Access to untyped JSON values. The rules avoid types, so that one invalid field hides no other finding.

use serde_json::Value;

/// Returns the elements of an array field with their indices; none where the field is not an array.
pub(crate) fn items<'a>(document: &'a Value, field: &str) -> impl Iterator<Item = (usize, &'a Value)> {
    document.get(field).and_then(Value::as_array).into_iter().flatten().enumerate()
}

/// Parses a count as [`counterproof_artifact::Count`] does.
pub(crate) fn count(value: &Value) -> Option<u64> {
    serde::Deserialize::deserialize(value).map(counterproof_artifact::Count::get).ok()
}
