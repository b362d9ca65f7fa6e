//! Changed parts highlighted within a value on one line, so that a short value is read once, in its context.

use std::cell::RefCell;
use std::collections::{HashMap, HashSet};

use counterproof_artifact::{Side, Sides};
use serde_json::Value;

use crate::view::display;
use counterproof_evaluator::{ChangeKind, JsonChanges, LocatedValue};

/// Pairs with more changes than this get a list of changes instead of highlights.
const MOST_HIGHLIGHTS: usize = 8;

/// Longer texts get a difference by words instead of a highlight of the whole text.
const WHOLE_UP_TO_BYTES: usize = 80;

/// The highlights of both sides of a pair.
#[derive(Debug)]
pub(crate) struct PairHighlights<'a> {
    sides: Sides<Highlights<'a>>,
}

impl<'a> PairHighlights<'a> {
    /// The highlights of a pair with these changes.
    pub(crate) fn new(changes: &'a JsonChanges) -> Self {
        Self { sides: Sides::from_fn(|side| Highlights::new(changes, side)) }
    }

    pub(crate) const fn get(&self, side: Side) -> &Highlights<'a> {
        self.sides.get(side)
    }

    /// Returns whether the highlights show every change, so that a list of changes would only repeat them.
    pub(crate) fn cover(&self, changes: &JsonChanges) -> bool {
        self.sides.iter().all(|(side, highlights)| highlights.cover(changes, side))
    }
}

/// The changes of one side of a pair.
#[derive(Debug, Default)]
pub(crate) struct Highlights<'a> {
    /// The pointers of the changed values, and whether the field name is highlighted too.
    changed: HashMap<&'a str, bool>,
    /// The pointers that were highlighted in some value.
    highlighted: RefCell<HashSet<&'a str>>,
}

/// A part of a value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct HighlightedPart {
    pub(crate) text: String,
    /// Whether the part changed.
    pub(crate) marked: bool,
}

impl<'a> Highlights<'a> {
    /// The changes of one side of a pair.
    fn new(changes: &'a JsonChanges, side: Side) -> Self {
        let mut highlights = Self::default();
        if changes.count() > MOST_HIGHLIGHTS {
            return highlights;
        }
        for change in changes.iter() {
            let place = match side {
                Side::Baseline => &change.baseline,
                Side::New => &change.new,
            };
            // A new order within an array is described in words.
            if let Some(LocatedValue { pointer, value }) = place
                && change.kind() != ChangeKind::Reordered
                && value.as_str().is_none_or(|text| text.len() <= WHOLE_UP_TO_BYTES && !text.contains('\n'))
            {
                let with_name = matches!(change.kind(), ChangeKind::Added | ChangeKind::Removed);
                highlights.changed.insert(pointer, with_name);
            }
        }
        highlights
    }

    /// Returns whether nothing is highlighted in any value.
    pub(crate) fn is_empty(&self) -> bool {
        self.changed.is_empty()
    }

    /// Returns whether every change of the side was highlighted in some value.
    fn cover(&self, changes: &JsonChanges, side: Side) -> bool {
        let here = changes.iter().filter(|change| match side {
            Side::Baseline => change.baseline.is_some(),
            Side::New => change.new.is_some(),
        });
        // A list of changes can be truncated. Then some changes are not known here and cannot be highlighted.
        changes.count() == changes.len() && here.count() == self.highlighted.borrow().len()
    }

    /// The value at a pointer on one line, in parts; `None` where nothing in it is highlighted.
    pub(crate) fn on_one_line(&self, value: &Value, pointer: &str) -> Option<Vec<HighlightedPart>> {
        if !self.changed.keys().any(|changed| is_below(changed, pointer)) {
            return None;
        }
        let mut line = Line { highlights: self, parts: Vec::new() };
        line.value(value, pointer, Inherited::No);
        line.parts.iter().any(|part| part.marked).then_some(line.parts)
    }
}

/// Whether a value is highlighted because the field name before it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Inherited {
    Yes,
    No,
}

/// A line under construction.
struct Line<'h, 'a> {
    highlights: &'h Highlights<'a>,
    parts: Vec<HighlightedPart>,
}

impl Line<'_, '_> {
    fn value(&mut self, value: &Value, pointer: &str, inherited: Inherited) {
        // Looked up in every case, because the lookup records that the pointer was highlighted.
        let marked = self.is_highlighted(pointer) || inherited == Inherited::Yes;
        match value {
            Value::Object(fields) if !marked => {
                self.plain("{");
                for (index, (key, value)) in fields.iter().enumerate() {
                    let at = format!("{pointer}/{}", key.replace('~', "~0").replace('/', "~1"));
                    let name = Value::from(key.as_str());
                    self.plain(if index > 0 { ", " } else { "" });
                    if self.highlights.changed.get(at.as_str()) == Some(&true) {
                        self.marked(&format!("{name}: "));
                        self.value(value, &at, Inherited::Yes);
                    } else {
                        self.plain(&format!("{name}: "));
                        self.value(value, &at, Inherited::No);
                    }
                }
                self.plain("}");
            }
            Value::Array(values) if !marked => {
                self.plain("[");
                for (index, value) in values.iter().enumerate() {
                    self.plain(if index > 0 { ", " } else { "" });
                    self.value(value, &format!("{pointer}/{index}"), Inherited::No);
                }
                self.plain("]");
            }
            value => {
                let text = display::on_one_line(value, usize::MAX).unwrap_or_default();
                if marked { self.marked(&text) } else { self.plain(&text) }
            }
        }
    }

    fn is_highlighted(&self, pointer: &str) -> bool {
        let Some((changed, _)) = self.highlights.changed.get_key_value(pointer) else { return false };
        self.highlights.highlighted.borrow_mut().insert(changed);
        true
    }

    fn plain(&mut self, text: &str) {
        self.push(HighlightedPart { text: display::visible(text), marked: false });
    }

    fn marked(&mut self, text: &str) {
        self.push(HighlightedPart { text: display::visible(text), marked: true });
    }

    fn push(&mut self, part: HighlightedPart) {
        match self.parts.last_mut() {
            Some(last) if last.marked == part.marked => last.text.push_str(&part.text),
            // An empty part would be an empty element on the page.
            _ if part.text.is_empty() => {}
            _ => self.parts.push(part),
        }
    }
}

fn is_below(pointer: &str, parent: &str) -> bool {
    pointer.strip_prefix(parent).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use counterproof_evaluator::diff_json as diff;

    fn marked(parts: &[HighlightedPart]) -> String {
        parts.iter().map(|part| if part.marked { format!("[{}]", part.text) } else { part.text.clone() }).collect()
    }

    #[test]
    fn changed_parts_are_highlighted_within_the_value() {
        let (old, new) = (json!({"a": {"b/c": [1, 2]}, "gone": 1}), json!({"a": {"b/c": [1, 3]}}));
        let changes = diff(&old, &new).below("/events/0/args", "/events/4/args");
        let (before, after) = (Highlights::new(&changes, Side::Baseline), Highlights::new(&changes, Side::New));
        let line = |marks: &Highlights<'_>, value, pointer| marked(&marks.on_one_line(value, pointer).unwrap());
        assert_eq!(line(&before, &old, "/events/0/args"), r#"{"a": {"b/c": [1, [2]]}, ["gone": 1]}"#);
        assert_eq!(line(&after, &new, "/events/4/args"), r#"{"a": {"b/c": [1, [3]]}}"#);
        assert!(before.cover(&changes, Side::Baseline) && after.cover(&changes, Side::New));
    }

    #[test]
    fn long_texts_are_not_highlighted() {
        let (old, new) = (json!({"a": "x".repeat(100)}), json!({"a": "y".repeat(100)}));
        let changes = diff(&old, &new);
        let marks = Highlights::new(&changes, Side::New);
        assert_eq!(marks.on_one_line(&new, ""), None);
        assert!(!marks.cover(&changes, Side::New));
    }
}
