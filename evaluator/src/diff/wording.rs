//! Changes that say the same in another way: a value in another form, and the text with which an agent hands over to a person.

use std::collections::HashSet;

use serde_json::Value;

use super::json::{JsonChange, JsonChanges};
use crate::load::tool_names;
use crate::values::text;

/// Fewest words of a sentence. A text of fewer is a name or a code, such as that of a department.
const SENTENCE: usize = 4;

/// Marks changes that all say the same in another way. `tool` is that of the call or the action.
pub(super) fn mark(changes: &mut JsonChanges, tool: Option<&str>) {
    changes.reworded = changes.are_form_only() || is_summary(changes, tool);
}

/// True if all changes are in the words of a summary for the person who takes over.
fn is_summary(changes: &JsonChanges, tool: Option<&str>) -> bool {
    // A person reads the summary, so that its wording has no effect.
    let is_reworded = |change: &JsonChange| change.is_form_only() || is_paraphrase(change);
    changes.omitted == 0
        && !changes.is_empty()
        && changes.iter().all(is_reworded)
        && tool.is_some_and(tool_names::is_hand_over)
}

/// True for two sentences of which neither exchanges an id or a number of the other for another one.
fn is_paraphrase(change: &JsonChange) -> bool {
    let values = change.baseline.as_ref().zip(change.new.as_ref()).map(|(old, new)| (&old.value, &new.value));
    let Some((Value::String(old), Value::String(new))) = values else { return false };
    let is_sentence = |text: &str| text.split_whitespace().count() >= SENTENCE;
    is_sentence(old) && is_sentence(new) && !exchanges_id(old, new)
}

/// True if each text names an id or a number that the other does not, and these have one form: `W1` and `W2`. If one
/// summary names the customer and the other the order, their forms differ.
fn exchanges_id(old: &str, new: &str) -> bool {
    let (old, new) = (ids(old), ids(new));
    let only = |mine: &HashSet<String>, theirs: &HashSet<String>| -> HashSet<String> {
        mine.difference(theirs).map(|id| form(id)).collect()
    };
    !only(&old, &new).is_disjoint(&only(&new, &old))
}

fn ids(text: &str) -> HashSet<String> {
    text::words_with_digits(text).map(str::to_lowercase).collect()
}

/// The kinds of characters of an id, each run of one kind once: `a9` for `W12`.
fn form(id: &str) -> String {
    let kind = |c: char| match c {
        c if c.is_numeric() => '9',
        c if c.is_alphabetic() => 'a',
        other => other,
    };
    let mut form: Vec<_> = id.chars().map(kind).collect();
    form.dedup();
    form.into_iter().collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::diff::json::diff;

    #[test]
    fn the_summary_of_a_hand_over_may_have_other_words_but_not_another_id() {
        let only = |tool: &str, old: &str, new: &str| {
            let mut changes = diff(&json!({"summary": old}), &json!({"summary": new}));
            mark(&mut changes, Some(tool));
            changes.are_only_reworded()
        };
        let (old, new) = ("User ann_1 wants a refund for W1.", "The customer asks for the money of order W1 back.");
        assert!(only("transfer_to_human_agents", old, new));
        assert!(!only("refund", old, new), "another tool");
        assert!(!only("transfer_to_human_agents", old, "User ann_1 wants a refund for W2."));
        assert!(!only("transfer_to_human_agents", "billing", "technical support"), "a department");
    }

    #[test]
    fn a_list_written_as_text_is_the_same_list_whatever_the_tool() {
        let mut changes = diff(&json!({"items": ["1", "2"]}), &json!({"items": "['1', '2']"}));
        mark(&mut changes, None);
        assert!(changes.are_only_reworded());
        let mut none = JsonChanges::default();
        mark(&mut none, None);
        assert!(!none.are_only_reworded(), "no change");
    }
}
