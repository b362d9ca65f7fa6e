//! Rows of two aligned lists: one cell per side, or one shared cell if both sides are equal. Changed parts are highlighted within
//! a value on one line, so that a short value is read once, in its context.

use std::cell::RefCell;
use std::collections::{HashMap, HashSet};

use counterproof_artifact::{Side, Sides};
use counterproof_evaluator::{ChangeKind, JsonChanges, LocatedValue, Operation, Payload, Row};
use serde::Serialize;
use serde_json::{Value, json};

use crate::files::FileLink;
use crate::view::changes::ChangesView;
use crate::view::display::{self, Budget, DisplayText};

/// Longer values are folded.
const OPEN_UP_TO_BYTES: usize = 240;

const LONGEST_VALUE: usize = 64 * 1024;

/// A text of an object with more lines than this is folded.
const LINES_OPEN: usize = 6;

const MOST_TEXTS: usize = 8;

pub(crate) const NOISE: &str = "Noise: baseline runs also differ from each other here, or in other cases.";

/// A row of two aligned lists.
#[derive(Debug, Clone)]
pub(crate) struct RowView {
    /// The CSS class: `same`, `changed`, `changed moved`, `removed`, `added`, or `plain` where nothing was compared. The style
    /// sheet adds the sign in the margin and its alternative text.
    pub(crate) class: &'static str,
    /// One shared cell, or the cells of baseline and new.
    pub(crate) cells: Vec<Option<CellView>>,
    pub(crate) changes: ChangesView,
    /// A note on evidence, position or noise; may be empty.
    pub(crate) note: String,
    pub(crate) is_first: bool,
}

impl RowView {
    pub(crate) fn differs(&self) -> bool {
        !matches!(self.class, "same" | "plain")
    }

    /// Returns whether the row is one cell without notes, which needs less markup.
    pub(crate) fn is_bare(&self) -> bool {
        self.cells.len() == 1 && self.changes.list.is_empty() && self.note.is_empty() && !self.is_first
    }
}

/// An element of one side, or of both sides.
#[derive(Debug, Clone, Default)]
pub(crate) struct CellView {
    /// The ids of the element; at least one.
    pub(crate) anchors: Vec<String>,
    /// The side; empty for a shared cell.
    pub(crate) side: String,
    /// The position in the list, counted from 1.
    pub(crate) number: String,
    pub(crate) kind: String,
    pub(crate) name: String,
    pub(crate) risk: Option<&'static str>,
    /// Whether the tool failed, or every call of the action failed.
    pub(crate) failed: bool,
    /// Short facts: ids, times, tags.
    pub(crate) facts: Vec<String>,
    /// Parameters, arguments or results.
    pub(crate) values: Vec<ValueView>,
    pub(crate) evidence: Vec<EvidenceView>,
    pub(crate) has_evidence: bool,
    pub(crate) files: Vec<FileLink>,
    /// Whether the content is shown in the output section instead.
    pub(crate) sees_output: bool,
}

/// A named value within a cell.
#[derive(Debug, Clone)]
pub(crate) struct ValueView {
    /// The name, such as `arguments` or `payload`.
    pub(crate) name: String,
    pub(crate) content: DisplayText,
    /// The value in parts, where changes are highlighted in it; otherwise empty.
    pub(crate) parts: Vec<HighlightedPart>,
    /// The summary of a folded value; empty for an open one.
    pub(crate) summary: String,
}

/// A resolved or unresolved evidence reference.
#[derive(Debug, Clone)]
pub(crate) struct EvidenceView {
    /// The side, where a cell shows the evidence of both sides.
    pub(crate) side: Option<&'static str>,
    pub(crate) kind: &'static str,
    pub(crate) id: String,
    /// The link to the target: an anchor of the page, or a file.
    pub(crate) href: Option<String>,
    pub(crate) target: String,
    pub(crate) resolved: bool,
}

pub(crate) const fn class(operation: Operation) -> &'static str {
    match operation {
        Operation::Same => "same",
        Operation::Changed => "changed",
        Operation::Moved => "changed moved",
        Operation::Removed => "removed",
        Operation::Added => "added",
    }
}

/// A value, folded unless it is short.
pub(crate) fn value(name: &'static str, value: &impl Serialize, budget: &Budget) -> ValueView {
    // A short value is read in its context. A long one would hide the rows after it.
    if let Some(compact) = display::on_one_line(value, OPEN_UP_TO_BYTES) {
        let content = budget.text(&compact, OPEN_UP_TO_BYTES);
        return ValueView { name: name.to_owned(), content, parts: Vec::new(), summary: String::new() };
    }
    let content = budget.json(value, LONGEST_VALUE);
    let summary = format!("{name}, {} lines", content.lines());
    ValueView { name: name.to_owned(), content, parts: Vec::new(), summary }
}

/// What the values of one compared element share.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ElementContext<'a, 'h> {
    /// The JSON pointer of the element within its answer.
    pub(crate) pointer: &'a str,
    pub(crate) highlights: &'a Highlights<'h>,
    pub(crate) budget: &'a Budget,
}

impl ElementContext<'_, '_> {
    /// The value of a field of the element, with highlighted changes if it is short.
    pub(crate) fn highlighted(&self, name: &'static str, field: &str, value: &impl Serialize) -> ValueView {
        let mut view = self::value(name, value, self.budget);
        // Only an open and complete value is shown in parts: highlights cannot be cut together with the text.
        if self.highlights.is_empty() || !view.summary.is_empty() || !view.content.more.is_empty() {
            return view;
        }
        let parts = self.highlights.on_one_line(&json!(value), &format!("{}/{field}", self.pointer));
        view.parts = parts.unwrap_or_default();
        view
    }
}

/// The result of a tool. Multi-line texts of an object are shown as texts, after the rest of the object.
pub(crate) fn payload(element: &ElementContext<'_, '_>, field: &str, payload: Payload<'_>) -> Vec<ValueView> {
    let budget = element.budget;
    let fields = match payload {
        Payload::Text(text) => return vec![self::text("payload", text, budget)],
        Payload::Object(fields) => fields,
        Payload::Other(value) => return vec![element.highlighted("payload", field, value)],
    };
    // A final newline alone does not make a text of several lines.
    let has_lines = |value: &Value| value.as_str().is_some_and(|text| text.trim_end_matches('\n').contains('\n'));
    // Further texts stay in the object, so that one result cannot fill the page.
    let texts: Vec<_> = fields.iter().filter(|(_, value)| has_lines(value)).take(MOST_TEXTS).collect();
    if texts.is_empty() {
        return vec![element.highlighted("payload", field, fields)];
    }
    let mut rest = fields.clone();
    rest.retain(|key, _| !texts.iter().any(|(name, _)| *name == key));
    let mut values = Vec::new();
    if !rest.is_empty() {
        values.push(element.highlighted("payload", field, &rest));
    }
    let texts = texts.into_iter().filter_map(|(name, value)| Some((display::visible(name), value.as_str()?)));
    values.extend(texts.map(|(name, text)| {
        let mut view = self::text(&name, text, budget);
        if view.summary.is_empty() && view.content.lines() > LINES_OPEN {
            view.summary = format!("{name}, {} lines", view.content.lines());
        }
        view
    }));
    values
}

/// A text, folded unless it is short.
pub(crate) fn text(name: &str, text: &str, budget: &Budget) -> ValueView {
    let mut content = budget.text(text, LONGEST_VALUE);
    if text.is_empty() {
        // An element without text would look like a missing value.
        "empty".clone_into(&mut content.more);
    }
    let folded = text.len() > 4 * OPEN_UP_TO_BYTES;
    let summary = if folded { format!("{name}, {} lines", content.lines()) } else { String::new() };
    ValueView { name: name.to_owned(), content, parts: Vec::new(), summary }
}

/// The position of an element in its lists, counted from 1.
pub(crate) fn number(row: Row) -> String {
    match row {
        // The positions differ where elements before this one were added or removed.
        Row::Both { baseline, new } if baseline == new => (new + 1).to_string(),
        Row::Both { baseline, new } => format!("{} | {}", baseline + 1, new + 1),
        Row::Removed(index) | Row::Added(index) => (index + 1).to_string(),
    }
}

/// The names of one thing on both sides; one name where they are equal.
pub(crate) fn both(baseline: &str, new: &str) -> String {
    if baseline == new {
        display::visible(new)
    } else {
        format!("{} | {}", display::visible(baseline), display::visible(new))
    }
}

/// The row of an element of the only side with an answer.
pub(crate) const fn alone(side: Side, index: usize) -> Row {
    match side {
        Side::Baseline => Row::Removed(index),
        Side::New => Row::Added(index),
    }
}

/// Pairs with more changes than this get a list of changes instead of highlights.
const MOST_HIGHLIGHTS: usize = 8;

/// Longer texts get a difference by words instead of a highlight of the whole text.
const WHOLE_UP_TO_BYTES: usize = 80;

#[derive(Debug)]
pub(crate) struct PairHighlights<'a> {
    sides: Sides<Highlights<'a>>,
}

impl<'a> PairHighlights<'a> {
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

#[derive(Debug, Default)]
pub(crate) struct Highlights<'a> {
    /// The pointers of the changed values, and whether the field name is highlighted too.
    changed: HashMap<&'a str, bool>,
    /// The pointers that were highlighted in some value. Rendering fills the set, and only borrows the highlights.
    highlighted: RefCell<HashSet<&'a str>>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct HighlightedPart {
    pub(crate) text: String,
    pub(crate) marked: bool,
}

impl<'a> Highlights<'a> {
    fn new(changes: &'a JsonChanges, side: Side) -> Self {
        let mut highlights = Self::default();
        // A line with many marks is harder to read than a list of the changes.
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

struct Line<'h, 'a> {
    highlights: &'h Highlights<'a>,
    parts: Vec<HighlightedPart>,
}

impl Line<'_, '_> {
    fn value(&mut self, value: &Value, pointer: &str, inherited: Inherited) {
        // Looked up in every case, because the lookup records that the pointer was highlighted.
        let marked = self.is_highlighted(pointer) || inherited == Inherited::Yes;
        match value {
            // A list or an object that changed as a whole is marked as a whole, and not searched further.
            Value::Object(fields) if !marked => {
                self.plain("{");
                for (index, (key, value)) in fields.iter().enumerate() {
                    // Escaped as in a JSON pointer (RFC 6901).
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
    // Without the slash, `/a` would be above `/ab`.
    pointer.strip_prefix(parent).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
}

#[cfg(test)]
mod tests {
    use counterproof_evaluator::diff_json as diff;
    use serde_json::json;

    use super::*;

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
