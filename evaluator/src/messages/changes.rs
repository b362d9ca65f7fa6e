//! Messages about changed JSON values.

use serde_json::Value;

use super::output::TextSummary;
use crate::diff::json::{self, Moved};
use crate::diff::output;
use crate::diff::{JsonChange, JsonChanges, LocatedValue};
use crate::values::text;

/// Most changes that one message lists.
const CHANGES_LISTED: usize = 3;

/// Characters of a field path.
const PATH_LENGTH: usize = 80;

/// Lists changed values: `amount 50 → 500, note added "x" and 2 more`.
pub(crate) fn changes(changes: &JsonChanges) -> String {
    let mut messages: Vec<_> = changes.iter().take(CHANGES_LISTED).map(change).collect();
    if changes.count() > messages.len() {
        messages.push(format!("{} more", changes.count() - messages.len()));
    }
    text::list(&messages)
}

/// Describes a pair that moved within its list, and what else changed in it.
pub(crate) fn moved(changed: &JsonChanges) -> String {
    if changed.is_empty() { "moved".to_owned() } else { format!("moved; {}", changes(changed)) }
}

fn change(change: &JsonChange) -> String {
    let path = field_path(change.pointer());
    match (&change.baseline, &change.new) {
        (Some(LocatedValue { value: Value::Array(old), .. }), Some(LocatedValue { value: Value::Array(new), .. })) => {
            format!("{path}: {}", reordering(old, new))
        }
        (Some(old), Some(new)) => match (&old.value, &new.value) {
            (Value::String(old), Value::String(new)) if differ_by_line(old, new) => {
                let TextSummary { quote, counts } = TextSummary::new(&output::diff_texts(old, new));
                let counts = counts.map(|counts| format!("({counts})"));
                let path = Some(path).filter(|path| !path.is_empty());
                let parts: Vec<_> = [path, quote, counts].into_iter().flatten().collect();
                parts.join(" ")
            }
            (old, new) => {
                let (old, new) = text::differing_values(old, new);
                format!("{path} {old} → {new}")
            }
        },
        (Some(old), None) => format!("{path} removed (was {})", text::short_value(&old.value)),
        (None, Some(new)) => format!("{path} added {}", text::short_value(&new.value)),
        (None, None) => path,
    }
}

/// Describes a reordered array with the same elements: `"2A" moved from position 1 to 3`. Positions are counted from 1.
pub fn reordering(old: &[Value], new: &[Value]) -> String {
    match json::moved(old, new) {
        Some(Moved::Exchanged(i, j)) => {
            let (first, second) = text::differing_values(&old[i], &old[j]);
            format!("{first} and {second} swapped (positions {} and {})", i + 1, j + 1)
        }
        Some(Moved::One(from, to)) => {
            format!("{} moved from position {} to {}", text::short_value(&old[from]), from + 1, to + 1)
        }
        None => format!("same {} elements in a different order", old.len()),
    }
}

/// Returns a pointer into an artifact as a short path: `to.id` for `/proposed_actions/0/params/to/id`.
pub fn field_path(pointer: &str) -> String {
    let mut segments: Vec<_> =
        pointer.split('/').skip(1).map(|part| part.replace("~1", "/").replace("~0", "~")).collect();
    let prefix = match segments.first().map(String::as_str) {
        Some("proposed_actions" | "events") => 2,
        Some("final_output") => 1,
        _ => 0,
    };
    segments.drain(..prefix.min(segments.len()));
    // The field that holds all arguments, results or contents is implied, unless the pointer ends there.
    let implied = ["params", "args", "payload_summary", "content"];
    let path = match segments.as_slice() {
        [first, rest @ ..] if !rest.is_empty() && implied.contains(&first.as_str()) => rest.join("."),
        all => all.join("."),
    };
    text::one_line(&path, PATH_LENGTH)
}

/// True if one of the texts has several lines and they differ in more than their line breaks at the end.
fn differ_by_line(old: &str, new: &str) -> bool {
    let has_lines = |text: &str| text.trim_end_matches('\n').contains('\n');
    (has_lines(old) || has_lines(new)) && !old.lines().eq(new.lines())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::diff::json::diff;

    #[test]
    fn a_changed_value_is_listed_with_its_path_and_both_values() {
        let found =
            diff(&json!({"params": {"amount": 50, "to": {"id": 1}}}), &json!({"params": {"amount": 500, "to": {}}}))
                .below("/proposed_actions/0", "/proposed_actions/0");
        assert_eq!(changes(&found), "amount 50 → 500 and to.id removed (was 1)");
    }

    #[test]
    fn a_change_in_a_multi_line_text_quotes_the_changed_lines() {
        let said = |old: &str, new: &str| changes(&diff(&json!({"stdout": old}), &json!({"stdout": new})));
        assert_eq!(said("a\nold\nz\n", "a\nnew\nz\n"), "stdout “old” → “new”");
        assert_eq!(said("a\nz\n", "a\nb\nc\nz\n"), "stdout (0 lines removed, 2 lines added)");
        assert_eq!(said("a\nb\nz\n", "a\nx\ny\nz\n"), "stdout “b” → “x” (1 line removed, 2 lines added)");
        assert_eq!(said("one\n", "two\n"), r#"stdout "one\n" → "two\n""#);
    }
}
