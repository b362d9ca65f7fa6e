//! The differences between two versions of a contract.

use serde::Serialize;
use serde_json::Value;

use counterproof_artifact::pointer;

/// A place at which two documents differ.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Change {
    /// A JSON Pointer.
    pub pointer: String,
    /// The value in the first document. `None` if it has none there.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub before: Option<Value>,
    /// The value in the second document. `None` if it has none there.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub after: Option<Value>,
}

/// Compares two documents. Elements of lists are compared from both ends, thus one insertion is one change.
pub fn changes(before: &Value, after: &Value) -> Vec<Change> {
    let mut changes = Vec::new();
    compare(String::new(), Some(before), Some(after), &mut changes);
    changes
}

fn compare(place: String, before: Option<&Value>, after: Option<&Value>, changes: &mut Vec<Change>) {
    match (before, after) {
        (Some(before), Some(after)) if before == after => {}
        (Some(Value::Object(before)), Some(Value::Object(after))) => {
            let added = after.keys().filter(|key| !before.contains_key(*key));
            for key in before.keys().chain(added) {
                compare(pointer::child(&place, key), before.get(key), after.get(key), changes);
            }
        }
        (Some(Value::Array(before)), Some(Value::Array(after))) => compare_lists(&place, before, after, changes),
        (before, after) => {
            changes.push(Change { pointer: place, before: before.cloned(), after: after.cloned() });
        }
    }
}

fn compare_lists(place: &str, before: &[Value], after: &[Value], changes: &mut Vec<Change>) {
    let equal = |pair: &(&Value, &Value)| pair.0 == pair.1;
    let start = before.iter().zip(after).take_while(equal).count();
    let (before, after) = (&before[start..], &after[start..]);
    let end = before.iter().rev().zip(after.iter().rev()).take_while(equal).count();
    let (before, after) = (&before[..before.len() - end], &after[..after.len() - end]);
    for index in 0..before.len().max(after.len()) {
        let place = format!("{place}/{}", start + index);
        compare(place, before.get(index), after.get(index), changes);
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn changes_name_the_smallest_part_that_differs() {
        let before = json!({"a": 1, "b": {"c/d": [1, 2, 3]}, "e": "x"});
        let after = json!({"a": 1, "b": {"c/d": [0, 1, 2, 3]}, "f": null});
        let found: Vec<(String, Option<Value>, Option<Value>)> =
            changes(&before, &after).into_iter().map(|it| (it.pointer, it.before, it.after)).collect();
        let expected = [
            ("/b/c~1d/0".to_owned(), None, Some(json!(0))),
            ("/e".to_owned(), Some(json!("x")), None),
            ("/f".to_owned(), None, Some(Value::Null)),
        ];
        assert_eq!(found, expected);
        assert!(changes(&before, &before).is_empty());
    }
}
