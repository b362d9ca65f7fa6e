//! Values on one line with what changed marked in them, so that a short value is read once, in its context.

use std::cell::RefCell;
use std::collections::{HashMap, HashSet};

use counterproof_artifact::Side;
use serde_json::Value;

use super::shown;
use crate::diff::json::{ChangeKind, JsonChanges, LocatedValue};

/// More places than this are easier to read in a list of their own.
const MOST_MARKS: usize = 8;

/// Texts longer than this differ by words, and not as a whole.
const WHOLE_UP_TO: usize = 80;

/// What differs in one side's element of a pair.
#[derive(Debug, Default)]
pub(super) struct Marks<'a> {
    /// The places, and whether the name there is marked too.
    places: HashMap<&'a str, bool>,
    /// Those that were marked somewhere.
    shown: RefCell<HashSet<&'a str>>,
}

/// A part of a value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct MarkedPart {
    /// The text.
    pub(super) text: String,
    /// True where it is what changed.
    pub(super) marked: bool,
}

impl<'a> Marks<'a> {
    /// The places of a side at which a pair differs.
    pub(super) fn of(changes: &'a JsonChanges, side: Side) -> Self {
        let mut marks = Self::default();
        if changes.count() > MOST_MARKS {
            return marks;
        }
        for change in changes.iter() {
            let place = match side {
                Side::Baseline => &change.baseline,
                Side::New => &change.new,
            };
            // What moved within an array is told in words.
            if let Some(LocatedValue { pointer, value }) = place
                && change.kind() != ChangeKind::Reordered
                && value.as_str().is_none_or(|text| text.len() <= WHOLE_UP_TO && !text.contains('\n'))
            {
                marks.places.insert(pointer, matches!(change.kind(), ChangeKind::Added | ChangeKind::Removed));
            }
        }
        marks
    }

    /// True where every place of the side at which the pair differs was marked somewhere.
    pub(super) fn tell_all(&self, changes: &JsonChanges, side: Side) -> bool {
        let here = changes.iter().filter(|change| match side {
            Side::Baseline => change.baseline.is_some(),
            Side::New => change.new.is_some(),
        });
        changes.count() == changes.len() && here.count() == self.shown.borrow().len()
    }

    /// The value at a pointer on one line, in parts; `None` where nothing in it is marked.
    pub(super) fn on_one_line(&self, value: &Value, pointer: &str) -> Option<Vec<MarkedPart>> {
        if !self.places.keys().any(|place| is_below(place, pointer)) {
            return None;
        }
        let mut line = Line { marks: self, parts: Vec::new() };
        line.value(value, pointer, false);
        line.parts.iter().any(|part| part.marked).then_some(line.parts)
    }
}

/// A line while it is written.
struct Line<'m, 'a> {
    marks: &'m Marks<'a>,
    parts: Vec<MarkedPart>,
}

impl Line<'_, '_> {
    fn value(&mut self, value: &Value, pointer: &str, marked: bool) {
        let marked = self.is_marked(pointer) || marked;
        match value {
            Value::Object(fields) if !marked => {
                self.push("{", false);
                for (index, (key, value)) in fields.iter().enumerate() {
                    let at = format!("{pointer}/{}", key.replace('~', "~0").replace('/', "~1"));
                    let name = self.marks.places.get(at.as_str()) == Some(&true);
                    self.push(if index > 0 { ", " } else { "" }, false);
                    self.push(&format!("{}: ", Value::from(key.as_str())), name);
                    self.value(value, &at, name);
                }
                self.push("}", false);
            }
            Value::Array(values) if !marked => {
                self.push("[", false);
                for (index, value) in values.iter().enumerate() {
                    self.push(if index > 0 { ", " } else { "" }, false);
                    self.value(value, &format!("{pointer}/{index}"), false);
                }
                self.push("]", false);
            }
            value => self.push(&shown::on_one_line(value, usize::MAX).unwrap_or_default(), marked),
        }
    }

    fn is_marked(&self, pointer: &str) -> bool {
        let Some((place, _)) = self.marks.places.get_key_value(pointer) else { return false };
        self.marks.shown.borrow_mut().insert(place);
        true
    }

    fn push(&mut self, text: &str, marked: bool) {
        match self.parts.last_mut() {
            Some(last) if last.marked == marked => last.text.push_str(&shown::visible(text)),
            _ if text.is_empty() => {}
            _ => self.parts.push(MarkedPart { text: shown::visible(text), marked }),
        }
    }
}

fn is_below(place: &str, pointer: &str) -> bool {
    place.strip_prefix(pointer).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::diff::json::diff;

    fn marked(parts: &[MarkedPart]) -> String {
        parts.iter().map(|part| if part.marked { format!("[{}]", part.text) } else { part.text.clone() }).collect()
    }

    #[test]
    fn what_changed_is_marked_within_the_value() {
        let (old, new) = (json!({"a": {"b/c": [1, 2]}, "gone": 1}), json!({"a": {"b/c": [1, 3]}}));
        let changes = diff(&old, &new).below("/events/0/args", "/events/4/args");
        let (before, after) = (Marks::of(&changes, Side::Baseline), Marks::of(&changes, Side::New));
        let line = |marks: &Marks<'_>, value, pointer| marked(&marks.on_one_line(value, pointer).unwrap());
        assert_eq!(line(&before, &old, "/events/0/args"), r#"{"a": {"b/c": [1, [2]]}, ["gone": 1]}"#);
        assert_eq!(line(&after, &new, "/events/4/args"), r#"{"a": {"b/c": [1, [3]]}}"#);
        assert!(before.tell_all(&changes, Side::Baseline) && after.tell_all(&changes, Side::New));
    }

    #[test]
    fn long_texts_are_left_to_the_difference_by_words() {
        let (old, new) = (json!({"a": "x".repeat(100)}), json!({"a": "y".repeat(100)}));
        let changes = diff(&old, &new);
        let marks = Marks::of(&changes, Side::New);
        assert_eq!(marks.on_one_line(&new, ""), None);
        assert!(!marks.tell_all(&changes, Side::New));
    }
}
