//! One sentence for each difference, runner failure and measure. Every output uses these sentences, so that a user meets the same words
//! everywhere.

use std::borrow::Cow;
use std::fmt::Write as _;

use counterproof_artifact::evaluation::{CaseMeasure, Divergence, DivergenceKind, MeasureCode, SidePointer};
use counterproof_artifact::{Event, EventBody, FailureClass, ProposedAction, RunnerFailure, Side, Sides};
use serde_json::{Map, Value};

use crate::diff::json::{self, Moved};
use crate::diff::output::{LineOrigin, TextChanges, TextLine, TextPart, diff_texts};
use crate::diff::rows::{output_pointers, row_pointers};
use crate::diff::{
    ActionRow, Differences, EventRow, EvidenceChange, FirstDifference, JsonChange, JsonChanges, LocatedValue,
    OutputChange, PartedStep, Row,
};
use crate::load::case_input::{self, Speaker};
use crate::load::{Artifact, LoadedAnswer};
use crate::values::text;

const NAME_LENGTH: usize = 60;

/// Returns the first divergence of two artifacts: the first difference of two answers that is not noise, or the failures.
pub fn first_divergence(baseline: &Artifact, new: &Artifact, differences: Option<&Differences>) -> Option<Divergence> {
    match (baseline.answer(), new.answer(), differences) {
        (Some(old), Some(other), Some(differences)) => answer_divergence(old, other, differences),
        _ => failure_divergence(baseline, new),
    }
}

fn answer_divergence(baseline: &LoadedAnswer, new: &LoadedAnswer, differences: &Differences) -> Option<Divergence> {
    Some(match differences.first(Sides::new(baseline, new))? {
        FirstDifference::Event(row) => event_divergence(baseline, new, row),
        FirstDifference::Action(row) => Divergence {
            kind: DivergenceKind::ProposedAction,
            pointers: row_pointers("/proposed_actions", row.row),
            message: action(row, &baseline.answer.proposed_actions, &new.answer.proposed_actions),
        },
        FirstDifference::Output(change) => {
            Divergence { kind: DivergenceKind::FinalOutput, pointers: output_pointers(), message: output(change) }
        }
    })
}

/// Returns where two answers go separate ways to the end; `None` if they come together again, or if `first` is the same step.
pub(crate) fn lasting_divergence(
    answers: Sides<&LoadedAnswer>,
    differences: &Differences,
    first: &Divergence,
) -> Option<Divergence> {
    let parting = differences.parting?;
    let is_first = |side: Side, step: PartedStep| {
        let events = [Some(step.event), step.result].into_iter().flatten();
        events.into_iter().any(|index| first.pointers.contains(&SidePointer::new(side, event_pointer(index))))
    };
    let steps: Vec<_> = Side::BOTH.into_iter().filter_map(|side| Some((side, (*parting.get(side))?))).collect();
    if steps.iter().any(|(side, step)| is_first(*side, *step)) {
        return None;
    }
    let named = |side: Side, step: PartedStep| {
        let loaded = answers.get(side);
        step_name(&loaded.answer.events[step.event], loaded)
    };
    let names: Vec<_> = steps.iter().map(|(side, step)| (*side, named(*side, *step))).collect();
    let message = match names.as_slice() {
        [(_, old), (_, new)] if old == new => format!("{new} on both sides"),
        [(_, old), (_, new)] => format!("{old} on baseline, {new} on new"),
        _ => names.iter().map(|(side, name)| format!("{name} only in {side}")).collect::<Vec<_>>().concat(),
    };
    let (side, step) = steps.last()?;
    Some(Divergence {
        kind: sequence_kind(&answers.get(*side).answer.events[step.event]),
        pointers: steps.iter().map(|(side, step)| SidePointer::new(*side, event_pointer(step.event))).collect(),
        message: format!("the two sides go separate ways from here: {message}"),
    })
}

fn event_pointer(index: usize) -> String {
    format!("/events/{index}")
}

fn failure_divergence(baseline: &Artifact, new: &Artifact) -> Option<Divergence> {
    let sides = [(Side::Baseline, baseline), (Side::New, new)];
    let failures: Vec<_> = sides.into_iter().filter_map(|(side, artifact)| Some((side, artifact.failure()?))).collect();
    if failures.is_empty() {
        return None;
    }
    let pointers = failures.iter().map(|(side, _)| SidePointer::new(*side, "/runner_failure")).collect();
    let messages: Vec<_> = failures.iter().map(|(side, it)| format!("{side}: {}", failure(&it.failure))).collect();
    Some(Divergence { kind: DivergenceKind::RunnerError, pointers, message: messages.join("; ") })
}

fn event_divergence(baseline: &LoadedAnswer, new: &LoadedAnswer, row: &EventRow) -> Divergence {
    let (side, index) = row.row.named_by();
    let loaded = if side == Side::Baseline { baseline } else { new };
    let event = &loaded.answer.events[index];
    let name = step_name(event, loaded);
    let (kind, message) = match row.row {
        Row::Both { .. } if row.moved => (sequence_kind(event), format!("{name}: {}", moved(&row.changes))),
        Row::Both { .. } => (changed_kind(event), format!("{name}: {}", changes(&row.changes))),
        Row::Removed(_) => (sequence_kind(event), format!("{name} only in baseline")),
        Row::Added(_) => (sequence_kind(event), format!("{name} only in new")),
    };
    Divergence { kind, pointers: row_pointers("/events", row.row), message }
}

/// Names a step: a call or a result by its tool, any other event by its type.
pub fn step_name(event: &Event, loaded: &LoadedAnswer) -> String {
    match &event.body {
        EventBody::ToolCall(call) => format!("call of {}", text::one_line(&call.tool, NAME_LENGTH)),
        EventBody::ToolResult(result) => {
            let call = loaded.index.call(&loaded.answer.events, &result.call_id);
            let tool = call.map_or("an unknown call", |call| call.tool.as_str());
            format!("result of {}", text::one_line(tool, NAME_LENGTH))
        }
        EventBody::Retrieval(found) => format!("retrieval of “{}”", text::one_line(&found.query, NAME_LENGTH)),
        EventBody::FinalOutput(_) => "final output".to_owned(),
        EventBody::Unknown { kind, .. } => match case_input::speaker(event) {
            Some(Speaker::User) => "message of the user".to_owned(),
            Some(Speaker::Assistant) => "message of the agent".to_owned(),
            None => format!("event {}", text::one_line(kind, NAME_LENGTH)),
        },
    }
}

const fn changed_kind(event: &Event) -> DivergenceKind {
    match event.body {
        EventBody::ToolCall(_) => DivergenceKind::ToolArgs,
        EventBody::ToolResult(_) => DivergenceKind::ToolResult,
        EventBody::Retrieval(_) => DivergenceKind::Retrieval,
        EventBody::FinalOutput(_) => DivergenceKind::FinalOutput,
        EventBody::Unknown { .. } => DivergenceKind::OtherEvent,
    }
}

const fn sequence_kind(event: &Event) -> DivergenceKind {
    match event.body {
        EventBody::ToolCall(_) | EventBody::ToolResult(_) => DivergenceKind::ToolSequence,
        _ => changed_kind(event),
    }
}

const CHANGES_LISTED: usize = 3;

const PATH_LENGTH: usize = 80;

/// Lists changed values: `amount 50 → 500, note added "x" and 2 more`.
pub(crate) fn changes(changes: &JsonChanges) -> String {
    let mut listed: Vec<_> = changes.iter().collect();
    // Stable. Another form of the same content comes last, so that it does not hide what differs.
    listed.sort_by_key(|change| change.is_form_only());
    let mut messages: Vec<_> = listed.into_iter().take(CHANGES_LISTED).map(change).collect();
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
                let TextSummary { quote, counts } = TextSummary::new(&diff_texts(old, new));
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
    // In this order (RFC 6901, section 4): `~01` means `~1` and not `/`.
    let segments = pointer.split('/').skip(1).map(|part| {
        if part.contains('~') { Cow::Owned(part.replace("~1", "/").replace("~0", "~")) } else { Cow::Borrowed(part) }
    });
    let mut segments: Vec<_> = segments.collect();
    let prefix = match segments.first().map(AsRef::as_ref) {
        Some("proposed_actions" | "events") => 2,
        Some("final_output") => 1,
        _ => 0,
    };
    segments.drain(..prefix.min(segments.len()));
    // The field that holds all arguments, results or contents is implied, unless the pointer ends there.
    let implied = ["params", "args", "payload_summary", "content"];
    let path = match segments.as_slice() {
        [first, rest @ ..] if !rest.is_empty() && implied.contains(&first.as_ref()) => rest.join("."),
        all => all.join("."),
    };
    text::one_line(&path, PATH_LENGTH)
}

/// True if one of the texts has several lines and they differ in more than their line breaks at the end.
fn differ_by_line(old: &str, new: &str) -> bool {
    let has_lines = |text: &str| text.trim_end_matches('\n').contains('\n');
    (has_lines(old) || has_lines(new)) && !old.lines().eq(new.lines())
}

const TOOL_LENGTH: usize = 60;

/// Describes a row of the aligned actions that differs.
pub fn action(row: &ActionRow, baseline: &[ProposedAction], new: &[ProposedAction]) -> String {
    match row.row {
        Row::Removed(index) => format!("{} no longer proposed", tool_and_target(&baseline[index])),
        Row::Added(index) => {
            format!("{} newly proposed (risk {})", tool_and_target(&new[index]), new[index].risk_level)
        }
        Row::Both { new: index, .. } => {
            let name = tool(&new[index]);
            match (row.changes.is_empty(), row.evidence) {
                (false, _) => format!("{name}: {}", changes(&row.changes)),
                (true, EvidenceChange::Lost) => format!("{name}: evidence lost"),
                (true, _) => format!("{name}: evidence changed"),
            }
        }
    }
}

fn tool(action: &ProposedAction) -> String {
    text::one_line(&action.tool_name, TOOL_LENGTH)
}

const TARGET_LENGTH: usize = 40;

/// The tool and what it acts on: `cancel_reservation 4XGCCM`.
fn tool_and_target(action: &ProposedAction) -> String {
    let name = tool(action);
    match target(&action.params) {
        Some(Value::String(target)) => format!("{name} {}", text::one_line(target, TARGET_LENGTH)),
        Some(Value::Number(target)) => format!("{name} {target}"),
        _ => name,
    }
}

/// What a write writes to: its first argument that is an id.
pub(crate) fn target(arguments: &Map<String, Value>) -> Option<&Value> {
    let is_id = |name: &str| name == "id" || name.ends_with("_id") || name.ends_with("Id");
    arguments.iter().find(|(name, value)| is_id(name) && !value.is_null()).map(|(_, value)| value)
}

const QUOTE_LENGTH: usize = 60;

/// Describes how the final outputs differ.
pub fn output(change: &OutputChange) -> String {
    match change {
        OutputChange::Same => "output unchanged".to_owned(),
        OutputChange::Form => "output type changed".to_owned(),
        OutputChange::Json(list) => format!("output: {}", changes(list)),
        OutputChange::Text(changes) => {
            let TextSummary { quote, counts } = TextSummary::new(changes);
            let parts: Vec<_> = [quote, counts].into_iter().flatten().collect();
            format!("output: {}", parts.join("; "))
        }
    }
}

/// What a message says of a changed text. At least one part is set.
pub(super) struct TextSummary {
    /// The first changed words of both sides: `“50 EUR” → “500 EUR”`. `None` if one side has no words there.
    pub(super) quote: Option<String>,
    /// The changed lines: `1 line removed, 2 lines added`. `None` if exactly one line changed.
    pub(super) counts: Option<String>,
}

impl TextSummary {
    pub(super) fn new(changes: &TextChanges) -> Self {
        let only = |side: LineOrigin| changes.lines.iter().filter(|line| line.origin == side).collect::<Vec<_>>();
        let (old, new) = (only(LineOrigin::Baseline), only(LineOrigin::New));
        // For one line on each side, the changed words explain more than counts of lines.
        if let ([old], [new]) = (&old[..], &new[..]) {
            return Self { quote: Some(quote_words(old, new)), counts: None };
        }
        let lines = |lines: usize| text::count(lines, "line", "lines");
        let counts = format!("{} removed, {} added", lines(old.len()), lines(new.len()));
        let first = |side: &[&TextLine]| side.iter().map(|line| whole_line(line)).find(|text| !text.trim().is_empty());
        let quote = first(&old).zip(first(&new)).map(|(old, new)| quote(&old, &new));
        Self { quote, counts: Some(counts) }
    }
}

fn quote(old: &str, new: &str) -> String {
    let (old, new) = text::differing_texts(old, new, QUOTE_LENGTH);
    format!("“{old}” → “{new}”")
}

/// Quotes the changed words of a line, or the whole line if no word is marked on either side.
fn quote_words(old: &TextLine, new: &TextLine) -> String {
    let [old_words, new_words] = [old, new].map(changed_words);
    // Next to a whole line, the words of the other side would read as its whole text.
    match (old_words.is_empty(), new_words.is_empty()) {
        (true, true) => quote(&whole_line(old), &whole_line(new)),
        (true, false) => format!("“{}” added", text::one_line(&new_words, QUOTE_LENGTH)),
        (false, true) => format!("“{}” removed", text::one_line(&old_words, QUOTE_LENGTH)),
        (false, false) => quote(&old_words, &new_words),
    }
}

fn changed_words(line: &TextLine) -> String {
    let text = |part: &TextPart| part.text.trim().to_owned();
    let marked = line.parts.iter().filter(|part| part.differs).map(text).filter(|text| !text.is_empty());
    marked.collect::<Vec<_>>().join(" … ")
}

fn whole_line(line: &TextLine) -> String {
    line.parts.iter().map(|part| part.text.as_str()).collect()
}

/// Characters of the first contract violation.
const VIOLATION_LENGTH: usize = 160;

const MESSAGE_LENGTH: usize = 120;

/// Describes a failure: `http_error 500 (server_error), after 3 attempts`.
pub fn failure(failure: &RunnerFailure) -> String {
    let mut message = failure.class.to_string();
    if let Some(status) = failure.status {
        let _ = write!(message, " {}", status.get());
    }
    if let Some(name) = &failure.error_name {
        let _ = write!(message, " ({})", text::one_line(name, NAME_LENGTH));
    }
    if let Some(limit) = failure.timeout_ms.as_ref().filter(|_| failure.class == FailureClass::Timeout) {
        let _ = write!(message, " of {} ms", limit.as_f64());
    }
    // The class and the status of an HTTP error or a timeout already describe it; the error message only repeats them.
    let explains_itself = matches!(failure.class, FailureClass::HttpError | FailureClass::Timeout);
    if let Some(first) = violations(failure).first() {
        let _ = write!(message, ", {}", text::one_line(first, VIOLATION_LENGTH));
    } else if let Some(error) = failure.error_message.as_ref().filter(|_| !explains_itself) {
        let _ = write!(message, ", {}", text::one_line(error, MESSAGE_LENGTH));
    }
    let attempts = failure.attempt.get();
    if attempts > 1 {
        let _ = write!(message, ", after {attempts} attempts");
    }
    message
}

/// Returns the contract violations of a response, one message each. Our runner lists them in an extra field of the failure.
pub fn violations(failure: &RunnerFailure) -> Vec<String> {
    let listed = failure.extra.get("violations").and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
    let field = |violation: &Value, name: &str| -> String {
        violation.get(name).and_then(Value::as_str).unwrap_or_default().to_owned()
    };
    let message = |violation: &Value| {
        let (pointer, message) = (field(violation, "pointer"), field(violation, "message"));
        let expected = match field(violation, "expected") {
            expected if expected.is_empty() => expected,
            expected => format!(" (expected {expected})"),
        };
        format!("{pointer}: {message}{expected}").trim_start_matches(": ").to_owned()
    };
    listed.iter().map(message).collect()
}

/// Returns what a measure counts, for use after a number of runs.
pub const fn measure(code: MeasureCode) -> &'static str {
    match code {
        MeasureCode::Solved => "solved",
        MeasureCode::Answered => "answered",
        MeasureCode::Expectations => "expectations met",
        MeasureCode::Evidence => "evidence resolved",
    }
}

/// How many runs of each side pass a measure: `expectations met in 0 of 5 runs, baseline in 5 of 5`.
pub fn counts(found: &CaseMeasure) -> String {
    let (old, new) = (&found.baseline, &found.new);
    format!(
        "{} in {} of {}, baseline in {} of {}",
        measure(found.code),
        new.passed,
        text::count(usize::try_from(new.runs).unwrap_or(usize::MAX), "run", "runs"),
        old.passed,
        old.runs,
    )
}

/// The further runs that would probably decide a case: `3 more runs per side, or 12 of baseline alone, would decide`.
pub fn more_runs(per_side: u64, of_baseline: Option<u64>) -> String {
    let more = text::count(usize::try_from(per_side).unwrap_or(usize::MAX), "more run", "more runs");
    match of_baseline {
        Some(baseline) => format!("{more} per side, or {baseline} more of baseline alone, would decide"),
        None => format!("{more} per side would decide"),
    }
}

/// Formats a probability with three decimals. Values below 0.001 are not told apart: no threshold is that fine.
pub fn probability(p: f64) -> String {
    if p < 0.001 { "below 0.001".to_owned() } else { format!("{p:.3}") }
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
