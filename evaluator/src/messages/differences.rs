//! Differences in words: one short sentence each, with the values that moved. The same words stand in every output.

use std::fmt::Write as _;

use counterproof_artifact::evaluation::MeasureCode;
use counterproof_artifact::{FailureClass, ProposedAction, RunnerFailure};
use serde_json::Value;

use crate::diff::actions::{ActionRow, EvidenceChange};
use crate::diff::align::Row;
use crate::diff::elements::{self, Moved};
use crate::diff::json::{JsonChange, JsonChanges, LocatedValue};
use crate::diff::output::OutputChange;
use crate::diff::text::{self as line_diff, Line, Origin, Part, TextChanges};
use crate::values::text;

/// How many changed places one sentence names.
const PLACES_NAMED: usize = 3;

/// Characters of an output that one sentence quotes.
const WORDS_NAMED: usize = 60;

/// A measure in words.
pub(crate) const fn measure(code: MeasureCode) -> &'static str {
    match code {
        MeasureCode::Answered => "answered",
        MeasureCode::Expectations => "expectations met",
        MeasureCode::Evidence => "evidence holds",
    }
}

/// A probability, no finer than it is of use.
pub(crate) fn probability(p: f64) -> String {
    if p < 0.001 { "below 0.001".to_owned() } else { format!("{p:.3}") }
}

/// Why there is no answer: `http_error 500 (server_error), after 3 attempts`.
pub(crate) fn failure(failure: &RunnerFailure) -> String {
    let mut sentence = failure.class.to_string();
    if let Some(status) = failure.status {
        let _ = write!(sentence, " {}", status.get());
    }
    if let Some(name) = &failure.error_name {
        let _ = write!(sentence, " ({})", text::one_line(name, 60));
    }
    // What a status or a time-out means needs no more words.
    let plain = matches!(failure.class, FailureClass::HttpError | FailureClass::Timeout);
    if let Some(limit) = failure.timeout_ms.as_ref().filter(|_| failure.class == FailureClass::Timeout) {
        let _ = write!(sentence, " of {} ms", limit.as_f64());
    }
    match violations(failure).first() {
        Some(first) => {
            let _ = write!(sentence, ", {}", text::one_line(first, 160));
        }
        None => {
            if let Some(message) = failure.error_message.as_ref().filter(|_| !plain) {
                let _ = write!(sentence, ", {}", text::one_line(message, 120));
            }
        }
    }
    let attempts = failure.attempt.get();
    if attempts > 1 {
        let _ = write!(sentence, ", after {attempts} attempts");
    }
    sentence
}

/// Where an answer broke the contract, as our runner lists it beside the contract's own fields.
pub(crate) fn violations(failure: &RunnerFailure) -> Vec<String> {
    let listed = failure.extra.get("violations").and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
    let text =
        |violation: &Value, field: &str| violation.get(field).and_then(Value::as_str).unwrap_or_default().to_owned();
    let sentence = |violation: &Value| {
        let (place, message, expected) =
            (text(violation, "pointer"), text(violation, "message"), text(violation, "expected"));
        let expected = if expected.is_empty() { expected } else { format!(" (expected {expected})") };
        format!("{place}: {message}{expected}").trim_start_matches(": ").to_owned()
    };
    listed.iter().map(sentence).collect()
}

/// The changed places of a pair: `amount 50 → 500, note added "x" and 2 more`.
pub(crate) fn changes(changes: &JsonChanges) -> String {
    let mut sentences: Vec<_> = changes.iter().take(PLACES_NAMED).map(change).collect();
    if changes.count() > sentences.len() {
        sentences.push(format!("{} more", changes.count() - sentences.len()));
    }
    text::list(&sentences)
}

/// A pair that stands in another place, and what else differs in it.
pub(crate) fn moved(changed: &JsonChanges) -> String {
    let and = if changed.is_empty() { String::new() } else { format!(", and {}", changes(changed)) };
    format!("in another place{and}")
}

fn change(change: &JsonChange) -> String {
    let place = place_name(change.pointer());
    match (&change.baseline, &change.new) {
        (Some(LocatedValue { value: Value::Array(old), .. }), Some(LocatedValue { value: Value::Array(new), .. })) => {
            format!("{place}: {}", reordering(old, new))
        }
        (Some(old), Some(new)) => match (&old.value, &new.value) {
            (Value::String(old), Value::String(new)) if differ_by_line(old, new) => {
                let (said, counted) = texts(&line_diff::diff(old, new));
                let counted = if counted.is_empty() { counted } else { format!("({counted})") };
                let parts: Vec<_> = [place, said, counted].into_iter().filter(|part| !part.is_empty()).collect();
                parts.join(" ")
            }
            (old, new) => {
                let (old, new) = text::differing_values(old, new);
                format!("{place} {old} → {new}")
            }
        },
        (Some(old), None) => format!("{place} gone, was {}", text::short_value(&old.value)),
        (None, Some(new)) => format!("{place} added {}", text::short_value(&new.value)),
        (None, None) => place,
    }
}

/// How the order of an array changed whose elements are the same: `"2A" moved from place 1 to 3`. Places are counted from 1.
pub(crate) fn reordering(old: &[Value], new: &[Value]) -> String {
    match elements::moved(old, new) {
        Some(Moved::Exchanged(i, j)) => {
            let (first, second) = text::differing_values(&old[i], &old[j]);
            format!("{first} and {second} changed places ({} and {})", i + 1, j + 1)
        }
        Some(Moved::One(from, to)) => {
            format!("{} moved from place {} to {}", text::short_value(&old[from]), from + 1, to + 1)
        }
        None => format!("the same {} elements in another order", old.len()),
    }
}

/// A pointer into an artifact as a reader would say it: without the list, the index and the field that hold everything.
pub(crate) fn place_name(pointer: &str) -> String {
    let mut segments: Vec<_> =
        pointer.split('/').skip(1).map(|part| part.replace("~1", "/").replace("~0", "~")).collect();
    let within = match segments.first().map(String::as_str) {
        Some("proposed_actions" | "events") => 2,
        Some("final_output") => 1,
        _ => 0,
    };
    segments.drain(..within.min(segments.len()));
    let holder = ["params", "args", "payload_summary", "content"];
    let name = match segments.as_slice() {
        [first, rest @ ..] if !rest.is_empty() && holder.contains(&first.as_str()) => rest.join("."),
        all => all.join("."),
    };
    text::one_line(&name, 80)
}

/// A row of the aligned actions that is not the same on both sides.
pub fn action(row: &ActionRow, baseline: &[ProposedAction], new: &[ProposedAction]) -> String {
    match row.row {
        Row::Removed(index) => format!("{} no longer proposed", tool(&baseline[index])),
        Row::Added(index) => format!("{} proposed, was not (risk {})", tool(&new[index]), new[index].risk_level),
        Row::Both { new: index, .. } => {
            let name = tool(&new[index]);
            match (row.changes.is_empty(), row.evidence) {
                (false, _) => format!("{name}: {}", changes(&row.changes)),
                (true, EvidenceChange::Lost) => format!("{name}: its evidence is gone"),
                (true, _) => format!("{name}: it rests on other evidence"),
            }
        }
    }
}

fn tool(action: &ProposedAction) -> String {
    text::one_line(&action.tool_name, 60)
}

/// How the final outputs differ.
pub fn output(change: &OutputChange) -> String {
    match change {
        OutputChange::Same => "output the same".to_owned(),
        OutputChange::Form => "output of another type".to_owned(),
        OutputChange::Json(list) => format!("output: {}", changes(list)),
        OutputChange::Text(text) => {
            let said = texts(text);
            let said: Vec<_> = [said.0, said.1].into_iter().filter(|part| !part.is_empty()).collect();
            format!("output: {}", said.join("; "))
        }
    }
}

/// True for texts of which one has several lines, where it is not only their ends that differ.
fn differ_by_line(old: &str, new: &str) -> bool {
    let has_lines = |text: &str| text.trim_end_matches('\n').contains('\n');
    (has_lines(old) || has_lines(new)) && !old.lines().eq(new.lines())
}

/// Two texts: what was said and what is said instead, and the number of lines where it is not one; either may be empty.
fn texts(text: &TextChanges) -> (String, String) {
    let only = |side: Origin| text.lines.iter().filter(|line| line.origin == side).collect::<Vec<_>>();
    let (old, new) = (only(Origin::Baseline), only(Origin::New));
    if let ([old], [new]) = (&old[..], &new[..]) {
        let (old, new) = text::differing_texts(&what_differs(old), &what_differs(new), WORDS_NAMED);
        return (format!("“{old}” → “{new}”"), String::new());
    }
    let lines = |lines: usize| text::count(lines, "line", "lines");
    let counted = format!("{} gone, {} new", lines(old.len()), lines(new.len()));
    let first = |side: &[&Line]| side.iter().map(|line| whole(line)).find(|text| !text.trim().is_empty());
    match (first(&old), first(&new)) {
        (Some(old), Some(new)) => {
            let (old, new) = text::differing_texts(&old, &new, WORDS_NAMED);
            (format!("“{old}” → “{new}”"), counted)
        }
        _ => (String::new(), counted),
    }
}

/// The words that differ within a line, or all of it where no word is singled out.
fn what_differs(line: &Line) -> String {
    let text = |part: &Part| part.text.trim().to_owned();
    let marked: Vec<_> =
        line.parts.iter().filter(|part| part.differs).map(text).filter(|text| !text.is_empty()).collect();
    if marked.is_empty() { whole(line) } else { marked.join(" … ") }
}

fn whole(line: &Line) -> String {
    line.parts.iter().map(|part| part.text.as_str()).collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::diff::json::diff;

    #[test]
    fn a_changed_place_is_named_with_both_values() {
        let found =
            diff(&json!({"params": {"amount": 50, "to": {"id": 1}}}), &json!({"params": {"amount": 500, "to": {}}}))
                .below("/proposed_actions/0", "/proposed_actions/0");
        assert_eq!(changes(&found), "amount 50 → 500 and to.id gone, was 1");
    }

    #[test]
    fn of_texts_of_several_lines_the_lines_that_differ_are_named() {
        let said = |old: &str, new: &str| changes(&diff(&json!({"stdout": old}), &json!({"stdout": new})));
        assert_eq!(said("a\nold\nz\n", "a\nnew\nz\n"), "stdout “old” → “new”");
        assert_eq!(said("a\nz\n", "a\nb\nc\nz\n"), "stdout (0 lines gone, 2 lines new)");
        assert_eq!(said("a\nb\nz\n", "a\nx\ny\nz\n"), "stdout “b” → “x” (1 line gone, 2 lines new)");
        assert_eq!(said("one\n", "two\n"), r#"stdout "one\n" → "two\n""#);
    }
}
