//! Rows of two aligned lists, ready to be shown: what one side has stands in its cell, and where both have the same they
//! share one.

use counterproof_artifact::Side;
use serde::Serialize;
use serde_json::Value;

use super::changes::ChangesShown;
use super::files::FileLink;
use super::marks::{MarkedPart, Marks};
use super::shown::{self, Budget, Shown};
use crate::diff::align::Row;
use crate::diff::rows::Operation;

/// Values longer than this are folded.
const OPEN_UP_TO_BYTES: usize = 240;

/// Longest value that a fold holds.
const LONGEST_VALUE: usize = 64 * 1024;

/// A text of more lines that is taken out of an object is folded.
const LINES_OPEN: usize = 6;

/// Texts of several lines that are taken out of one object.
const MOST_TEXTS: usize = 8;

/// What is said of a difference that is noise.
pub(super) const NOISE: &str = "Noise: the baseline differs from itself here as well, or does so in other cases.";

/// A row.
#[derive(Debug, Clone)]
pub(super) struct RowShown {
    /// `same`, `changed`, `changed moved`, `removed`, `added`, or `plain` where nothing was compared. The sign in its margin and
    /// the sign's word come with it, from the style sheet.
    pub(super) class: &'static str,
    /// One cell where the sides share it, otherwise the baseline's and new's.
    pub(super) cells: Vec<Option<CellShown>>,
    /// What differs within a pair.
    pub(super) changes: ChangesShown,
    /// What became of the evidence or of the place; empty where there is nothing to say.
    pub(super) note: String,
    /// True for the first row at which the sides differ, in more than noise where that is known.
    pub(super) is_first: bool,
}

impl RowShown {
    /// True where the two sides do not have the same.
    pub(super) fn differs(&self) -> bool {
        !matches!(self.class, "same" | "plain")
    }

    /// True where the row is one cell and nothing is said of it, as rows are that both sides share.
    pub(super) fn is_bare(&self) -> bool {
        self.cells.len() == 1 && self.changes.places.is_empty() && self.note.is_empty() && !self.is_first
    }
}

/// What one side has, or both.
#[derive(Debug, Clone, Default)]
pub(super) struct CellShown {
    /// Ids for links to lead to; never none.
    pub(super) anchors: Vec<String>,
    /// Whose it is, in words; empty where it is both sides'.
    pub(super) side: String,
    /// Its place in its list, counted from 1.
    pub(super) number: String,
    /// What it is.
    pub(super) kind: String,
    /// The name of the tool, or what else it is known by.
    pub(super) name: String,
    /// The stated risk.
    pub(super) risk: Option<&'static str>,
    /// True where a tool failed, or every call that carried the action out.
    pub(super) failed: bool,
    /// Small facts: status, time, ids.
    pub(super) facts: Vec<String>,
    /// What was said, given or returned.
    pub(super) values: Vec<ValueShown>,
    /// What it rests on.
    pub(super) evidence: Vec<EvidenceShown>,
    /// True where evidence belongs to it.
    pub(super) has_evidence: bool,
    /// The files that it links to.
    pub(super) files: Vec<FileLink>,
    /// True where what it says stands in the section of the output.
    pub(super) sees_output: bool,
}

/// A value within a cell.
#[derive(Debug, Clone)]
pub(super) struct ValueShown {
    /// What it is: `args`, `payload`.
    pub(super) name: String,
    /// The value.
    pub(super) shown: Shown,
    /// The same in parts, where what changed is marked in it; otherwise empty.
    pub(super) parts: Vec<MarkedPart>,
    /// What a folded value says of itself; empty where it is open.
    pub(super) summary: String,
}

/// An evidence ref, followed.
#[derive(Debug, Clone)]
pub(super) struct EvidenceShown {
    /// Whose it is, where a cell holds that of both sides.
    pub(super) side: Option<&'static str>,
    /// What it says that it points at.
    pub(super) kind: &'static str,
    /// The identifier it gives.
    pub(super) id: String,
    /// Where it leads: an anchor of the page, or a file.
    pub(super) href: Option<String>,
    /// What is there, in words; or that nothing is.
    pub(super) target: String,
    /// True where something is there.
    pub(super) resolved: bool,
}

/// How a row looks.
pub(super) const fn look(operation: Operation) -> &'static str {
    match operation {
        Operation::Same => "same",
        Operation::Changed => "changed",
        Operation::Moved => "changed moved",
        Operation::Removed => "removed",
        Operation::Added => "added",
    }
}

/// A value, open where it is short.
pub(super) fn value(name: &'static str, value: &impl Serialize, budget: &Budget) -> ValueShown {
    if let Some(compact) = shown::on_one_line(value, OPEN_UP_TO_BYTES) {
        let shown = budget.text(&compact, OPEN_UP_TO_BYTES);
        return ValueShown { name: name.to_owned(), shown, parts: Vec::new(), summary: String::new() };
    }
    let shown = budget.json(value, LONGEST_VALUE);
    let summary = format!("{name}, {} lines", shown.lines());
    ValueShown { name: name.to_owned(), shown, parts: Vec::new(), summary }
}

/// A value that stands at a pointer into its artifact: where it is short, with what changed marked in it.
pub(super) fn marked(
    name: &'static str,
    value: &Value,
    pointer: &str,
    marks: &Marks<'_>,
    budget: &Budget,
) -> ValueShown {
    let mut shown = self::value(name, value, budget);
    if shown.summary.is_empty() && shown.shown.more.is_empty() {
        shown.parts = marks.on_one_line(value, pointer).unwrap_or_default();
    }
    shown
}

/// What a tool returned. The texts of several lines that an object holds are read as texts, behind the rest of it.
pub(super) fn payload(value: &Value, pointer: &str, marks: &Marks<'_>, budget: &Budget) -> Vec<ValueShown> {
    let fields = match value {
        Value::String(text) => return vec![self::text("payload", text, budget)],
        Value::Object(fields) => fields,
        other => return vec![marked("payload", other, pointer, marks, budget)],
    };
    let has_lines = |value: &Value| value.as_str().is_some_and(|text| text.trim_end_matches('\n').contains('\n'));
    let texts: Vec<_> = fields.iter().filter(|(_, value)| has_lines(value)).take(MOST_TEXTS).collect();
    let mut rest = fields.clone();
    rest.retain(|key, _| !texts.iter().any(|(name, _)| *name == key));
    let mut values = Vec::new();
    if !rest.is_empty() || texts.is_empty() {
        values.push(marked("payload", &Value::Object(rest), pointer, marks, budget));
    }
    let texts = texts.into_iter().filter_map(|(name, value)| Some((shown::visible(name), value.as_str()?)));
    values.extend(texts.map(|(name, text)| {
        let mut shown = self::text(&name, text, budget);
        if shown.summary.is_empty() && shown.shown.lines() > LINES_OPEN {
            shown.summary = format!("{name}, {} lines", shown.shown.lines());
        }
        shown
    }));
    values
}

/// A text, open where it is short.
pub(super) fn text(name: &str, text: &str, budget: &Budget) -> ValueShown {
    let mut shown = budget.text(text, LONGEST_VALUE);
    if text.is_empty() {
        "empty".clone_into(&mut shown.more);
    }
    let folded = text.len() > 4 * OPEN_UP_TO_BYTES;
    let summary = if folded { format!("{name}, {} lines", shown.lines()) } else { String::new() };
    ValueShown { name: name.to_owned(), shown, parts: Vec::new(), summary }
}

/// The place of an element in the lists that have it, counted from 1.
pub(super) fn number(row: Row) -> String {
    match row {
        Row::Both { baseline, new } if baseline == new => (new + 1).to_string(),
        Row::Both { baseline, new } => format!("{} | {}", baseline + 1, new + 1),
        Row::Removed(index) | Row::Added(index) => (index + 1).to_string(),
    }
}

/// Two names that both sides have of a thing: one where they are the same.
pub(super) fn both(baseline: &str, new: &str) -> String {
    if baseline == new {
        shown::visible(new)
    } else {
        format!("{} | {}", shown::visible(baseline), shown::visible(new))
    }
}

/// The row of one side's element, where nothing was compared.
pub(super) const fn alone(side: Side, index: usize) -> Row {
    match side {
        Side::Baseline => Row::Removed(index),
        Side::New => Row::Added(index),
    }
}
