//! The changes between two JSON values, each with the baseline value and the new value next to each other.

use serde_json::Value;

use super::display::{self, Budget, DisplayText};
use super::text_diff::{self, TextDiffView};
use counterproof_evaluator::diff_texts;
use counterproof_evaluator::messages;
use counterproof_evaluator::{ChangeKind, JsonChange, JsonChanges, LocatedValue};

/// The maximum number of listed changes of a pair.
const MOST_CHANGES: usize = 100;

/// Longer texts are shown once, with the changed words marked.
const SIDE_BY_SIDE_UP_TO: usize = 80;

/// Longer values are indented.
const ONE_LINE_UP_TO: usize = 160;

/// The size limit of a displayed value.
const LONGEST_VALUE: usize = 4_000;

/// The changes of a pair.
#[derive(Debug, Clone, Default)]
pub(crate) struct ChangesView {
    pub(crate) list: Vec<ChangeView>,
    /// What is not listed; empty where everything is.
    pub(crate) more: String,
}

#[derive(Debug, Clone)]
pub(crate) struct ChangeView {
    /// The location within the pair.
    pub(crate) location: String,
    pub(crate) kind: String,
    pub(crate) baseline: Option<DisplayText>,
    pub(crate) new: Option<DisplayText>,
    /// The difference of two long texts, in place of the two values.
    pub(crate) text: Option<TextDiffView>,
}

/// The changes of a pair in order.
pub(crate) fn view(changes: &JsonChanges, budget: &Budget) -> ChangesView {
    let list = changes.iter().take(MOST_CHANGES).map(|change| change_view(change, budget)).collect();
    let hidden = changes.count().saturating_sub(MOST_CHANGES.min(changes.len()));
    let more = if hidden > 0 { format!("{hidden} more changes") } else { String::new() };
    ChangesView { list, more }
}

fn change_view(change: &JsonChange, budget: &Budget) -> ChangeView {
    let kind = match change.kind() {
        ChangeKind::Added => "added",
        ChangeKind::Removed => "removed",
        ChangeKind::Changed => "changed",
        ChangeKind::TypeChanged => "type changed",
        ChangeKind::Reordered => "reordered",
    };
    let kind = match (&change.baseline, &change.new) {
        (Some(LocatedValue { value: Value::Array(old), .. }), Some(LocatedValue { value: Value::Array(new), .. })) => {
            format!("{kind}: {}", display::visible(&messages::reordering(old, new)))
        }
        _ => kind.to_owned(),
    };
    let location = messages::field_path(change.pointer());
    if let Some((old, new)) = long_texts(change) {
        let text = Some(text_diff::view(&diff_texts(old, new), "", budget));
        return ChangeView { location, kind, baseline: None, new: None, text };
    }
    let value = |place: &Option<LocatedValue>| place.as_ref().map(|place| value(&place.value, budget));
    ChangeView { location, kind, baseline: value(&change.baseline), new: value(&change.new), text: None }
}

fn value(value: &Value, budget: &Budget) -> DisplayText {
    match display::on_one_line(value, ONE_LINE_UP_TO) {
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
