//! The places at which two JSON values differ, ready to be shown: each with the old and the new value next to each other.

use serde_json::Value;

use super::diff_lines::{self, DiffShown};
use super::shown::{self, Budget, Shown};
use crate::diff::json::{ChangeKind, JsonChange, JsonChanges, LocatedValue};
use crate::diff::text;
use crate::messages;

/// Most places of one pair that are listed.
const MOST_PLACES: usize = 100;

/// Texts longer than this are shown once, with what changed marked in them.
const SIDE_BY_SIDE_UP_TO: usize = 80;

/// Values longer than this are indented.
const ONE_LINE_UP_TO: usize = 160;

/// Longest value that is shown.
const LONGEST_VALUE: usize = 4_000;

/// The changed places of a pair.
#[derive(Debug, Clone, Default)]
pub(super) struct ChangesShown {
    /// The places.
    pub(super) places: Vec<ChangeShown>,
    /// How many are not listed, in words; empty where all are.
    pub(super) more: String,
}

/// A changed place.
#[derive(Debug, Clone)]
pub(super) struct ChangeShown {
    /// Its name within the pair.
    pub(super) place: String,
    /// What happened, in a word or in a few.
    pub(super) word: String,
    /// The baseline's value.
    pub(super) baseline: Option<Shown>,
    /// New's value.
    pub(super) new: Option<Shown>,
    /// Two long texts in one, instead of the two values.
    pub(super) text: Option<DiffShown>,
}

/// The changed places of a pair, in their order.
pub(super) fn show(changes: &JsonChanges, budget: &Budget) -> ChangesShown {
    let places = changes.iter().take(MOST_PLACES).map(|change| place(change, budget)).collect();
    let hidden = changes.count().saturating_sub(MOST_PLACES.min(changes.len()));
    let more = if hidden > 0 { format!("{hidden} more places differ") } else { String::new() };
    ChangesShown { places, more }
}

fn place(change: &JsonChange, budget: &Budget) -> ChangeShown {
    let word = match change.kind() {
        ChangeKind::Added => "added",
        ChangeKind::Removed => "gone",
        ChangeKind::Changed => "changed",
        ChangeKind::TypeChanged => "other type",
        ChangeKind::Reordered => "reordered",
    };
    let word = match (&change.baseline, &change.new) {
        (Some(LocatedValue { value: Value::Array(old), .. }), Some(LocatedValue { value: Value::Array(new), .. })) => {
            format!("{word}: {}", shown::visible(&messages::reordering(old, new)))
        }
        _ => word.to_owned(),
    };
    let place = messages::place_name(change.pointer());
    if let Some((old, new)) = long_texts(change) {
        let text = Some(diff_lines::show(&text::diff(old, new), "", budget));
        return ChangeShown { place, word, baseline: None, new: None, text };
    }
    let value = |place: &Option<LocatedValue>| place.as_ref().map(|place| value(&place.value, budget));
    ChangeShown { place, word, baseline: value(&change.baseline), new: value(&change.new), text: None }
}

fn value(value: &Value, budget: &Budget) -> Shown {
    match shown::on_one_line(value, ONE_LINE_UP_TO) {
        Some(line) => budget.text(&line, ONE_LINE_UP_TO),
        None => budget.json(value, LONGEST_VALUE),
    }
}

fn long_texts(change: &JsonChange) -> Option<(&str, &str)> {
    let (Value::String(old), Value::String(new)) = (&change.baseline.as_ref()?.value, &change.new.as_ref()?.value)
    else {
        return None;
    };
    let long = |text: &str| text.len() > SIDE_BY_SIDE_UP_TO || text.contains('\n');
    (long(old) && long(new)).then_some((old, new))
}
