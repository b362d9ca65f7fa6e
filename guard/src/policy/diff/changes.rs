//! The smallest parts in which two values differ.

use counterproof_artifact::pointer;
use serde_json::Value;

use super::policy_diff::FieldChange;

/// Compares two values. Objects are compared field by field, and other values as a whole.
pub(super) fn changes(before: &Value, after: &Value) -> Vec<FieldChange> {
    let mut changes = Vec::new();
    compare(String::new(), Some(before), Some(after), &mut changes);
    changes
}

fn compare(place: String, before: Option<&Value>, after: Option<&Value>, changes: &mut Vec<FieldChange>) {
    match (before, after) {
        (Some(before), Some(after)) if before == after => {}
        (Some(Value::Object(before)), Some(Value::Object(after))) => {
            let added = after.keys().filter(|key| !before.contains_key(*key));
            for key in before.keys().chain(added) {
                compare(pointer::child(&place, key), before.get(key), after.get(key), changes);
            }
        }
        (before, after) => {
            changes.push(FieldChange { pointer: place, before: before.cloned(), after: after.cloned() });
        }
    }
}
