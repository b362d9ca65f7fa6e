//! Differences in words: one short sentence each, with the values that moved. The same words stand in every output.

use std::fmt::Write as _;

use counterproof_artifact::evaluation::{Bound, Gate, GateOutcome, GateRule};
use counterproof_artifact::{FailureClass, ProposedAction, RunnerFailure};

use crate::diff::actions::{ActionRow, EvidenceChange};
use crate::diff::align::Row;
use crate::diff::json::JsonChange;
use crate::diff::output::OutputChange;
use crate::diff::text::{Line, Origin, Part, TextChanges};
use crate::words;

/// How many changed places one sentence names.
const PLACES_NAMED: usize = 3;

/// Characters of an output that one sentence quotes.
const WORDS_NAMED: usize = 60;

/// What the gate says, with its numbers.
pub fn gate(gate: &Gate) -> String {
    let total = gate.rules.len();
    let over = gate.rules.iter().filter(|rule| !rule.passed).count();
    match gate.outcome {
        GateOutcome::Passed => format!("Good enough: all {total} rules hold"),
        GateOutcome::Failed => {
            let verb = if over == 1 { "rule is" } else { "rules are" };
            format!("Not good enough: {over} of {total} {verb} broken")
        }
        GateOutcome::NotEnoughData => "Not enough data: too few cases were answered on both sides".to_owned(),
    }
}

/// A rule's limit: `at most 0`.
pub fn limit(rule: &GateRule) -> String {
    match (rule.limit, rule.bound) {
        (None, _) => "no limit".to_owned(),
        (Some(limit), Bound::AtMost) => format!("at most {limit}"),
        (Some(limit), Bound::AtLeast) => format!("at least {limit}"),
    }
}

/// Why there is no answer: `http_error 500 (server_error), after 3 attempts`.
pub fn failure(failure: &RunnerFailure) -> String {
    let mut sentence = failure.class.to_string();
    if let Some(status) = failure.status {
        let _ = write!(sentence, " {}", status.get());
    }
    if let Some(name) = &failure.error_name {
        let _ = write!(sentence, " ({})", words::text(name, 60));
    }
    // What a status or a time-out means needs no more words.
    let plain = matches!(failure.class, FailureClass::HttpError | FailureClass::Timeout);
    if let Some(message) = failure.error_message.as_ref().filter(|_| !plain) {
        let _ = write!(sentence, ", {}", words::text(message, 120));
    }
    let attempts = failure.attempt.get();
    if attempts > 1 {
        let _ = write!(sentence, ", after {attempts} attempts");
    }
    sentence
}

/// The changed places of a pair: `amount 50 → 500, note added "x" and 2 more`.
pub fn changes(changes: &[JsonChange]) -> String {
    let mut sentences: Vec<_> = changes.iter().take(PLACES_NAMED).map(change).collect();
    if changes.len() > PLACES_NAMED {
        sentences.push(format!("{} more", changes.len() - PLACES_NAMED));
    }
    words::list(&sentences)
}

fn change(change: &JsonChange) -> String {
    let place = place_name(change.pointer());
    match (&change.baseline, &change.new) {
        (Some(old), Some(new)) => {
            let (old, new) = words::two_values(&old.value, &new.value);
            format!("{place} {old} → {new}")
        }
        (Some(old), None) => format!("{place} gone, was {}", words::value(&old.value)),
        (None, Some(new)) => format!("{place} added {}", words::value(&new.value)),
        (None, None) => place,
    }
}

/// A pointer into an artifact as a reader would say it: without the list, the index and the field that hold everything.
pub fn place_name(pointer: &str) -> String {
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
    words::text(&name, 80)
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
    words::text(&action.tool_name, 60)
}

/// How the final outputs differ.
pub fn output(change: &OutputChange) -> String {
    match change {
        OutputChange::Same => "output the same".to_owned(),
        OutputChange::Form => "output of another type".to_owned(),
        OutputChange::Json(list) => format!("output: {}", changes(list)),
        OutputChange::Text(text) => texts(text),
    }
}

/// Two texts: what was said and what is said instead where that is one line, the number of lines otherwise.
fn texts(text: &TextChanges) -> String {
    let only = |side: Origin| text.lines.iter().filter(|line| line.origin == side).collect::<Vec<_>>();
    let (old, new) = (only(Origin::Baseline), only(Origin::New));
    if let ([old], [new]) = (&old[..], &new[..]) {
        let (old, new) = words::two_texts(&what_differs(old), &what_differs(new), WORDS_NAMED);
        return format!("output: “{old}” → “{new}”");
    }
    let lines = |lines: usize| words::count(lines, "line", "lines");
    format!("output: {} of baseline and {} of new differ", lines(old.len()), lines(new.len()))
}

/// The words that differ within a line, or all of it where no word is singled out.
fn what_differs(line: &Line) -> String {
    let text = |part: &Part| part.text.trim().to_owned();
    let marked: Vec<_> =
        line.parts.iter().filter(|part| part.differs).map(text).filter(|text| !text.is_empty()).collect();
    let all = || line.parts.iter().map(|part| part.text.as_str()).collect();
    if marked.is_empty() { all() } else { marked.join(" … ") }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::diff::json::diff;

    #[test]
    fn a_changed_place_is_named_with_both_values() {
        let mut found =
            diff(&json!({"params": {"amount": 50, "to": {"id": 1}}}), &json!({"params": {"amount": 500, "to": {}}}));
        for change in &mut found {
            change.prefix("/proposed_actions/0", "/proposed_actions/0");
        }
        assert_eq!(changes(&found), "amount 50 → 500 and to.id gone, was 1");
    }
}
