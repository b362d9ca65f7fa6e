//! Differences in words: one short sentence each, with the values that moved. The same words stand in every output.

use std::fmt::Write as _;

use counterproof_artifact::evaluation::{
    Bound, CaseEvaluation, ComparedRun, Evaluation, Gate, GateOutcome, GateRule, GateScope, MeasureCode, Rate,
    SuiteMeasure, Verdict,
};
use counterproof_artifact::{FailureClass, ProposedAction, RunnerFailure};
use serde_json::Value;

use crate::diff::actions::{ActionRow, EvidenceChange};
use crate::diff::align::Row;
use crate::diff::elements::{self, Moved};
use crate::diff::json::{JsonChange, JsonChanges, Place};
use crate::diff::output::OutputChange;
use crate::diff::text::{self, Line, Origin, Part, TextChanges};
use crate::gate::{UNDECIDED, UnknownScope};
use crate::words;

/// How many changed places one sentence names.
const PLACES_NAMED: usize = 3;

/// Characters of a tag's or a suite's name.
const SCOPE_NAMED: usize = 60;

/// How many tags or suites one sentence names.
const SCOPES_NAMED: usize = 12;

/// Characters of an output that one sentence quotes.
const WORDS_NAMED: usize = 60;

/// What is said first of a comparison: what the gate says, and what it rests on where that is less than a reader would think.
pub fn outcome(evaluation: &Evaluation) -> String {
    format!("{}{}", gate(&evaluation.gate), unjudged(evaluation))
}

/// What follows the gate's sentence where nothing was expected of any answer of new: such a gate cannot know right from wrong.
pub fn unjudged(evaluation: &Evaluation) -> &'static str {
    let is_judged = evaluation.cases.iter().any(CaseEvaluation::is_judged_on_new);
    if is_judged || evaluation.gate.outcome == GateOutcome::NotEnoughData {
        return "";
    }
    "; no expectations were judged, only how new differs from baseline"
}

/// What the gate says, with its numbers. Rules without a limit have no say, but a pass names the cases that may turn out worse.
pub fn gate(gate: &Gate) -> String {
    let limits = gate.rules.iter().filter(|rule| rule.limit.is_some()).count();
    let failed = gate.rules.iter().filter(|rule| !rule.passed).count();
    match gate.outcome {
        GateOutcome::Passed => match gate.rules.iter().find(|rule| rule.code == UNDECIDED && rule.actual > 0) {
            None => format!("Good enough: all {limits} limits are kept"),
            Some(rule) => {
                let fell = words::count(usize::try_from(rule.actual).unwrap_or(usize::MAX), "case", "cases");
                format!("Good enough so far: all {limits} limits are kept, but {fell} fell on too few runs to tell")
            }
        },
        GateOutcome::Failed => {
            let verb = if failed == 1 { "is" } else { "are" };
            format!("Not good enough: {failed} of {limits} limits {verb} not kept")
        }
        GateOutcome::NotEnoughData => "Not enough data: too few cases were answered on both sides".to_owned(),
    }
}

/// What a rule counts, and for which cases: `still broken`, `regressed, tag money`.
pub fn rule(rule: &GateRule) -> String {
    let code = rule.code.replace('_', " ");
    match &rule.scope {
        None => code,
        Some(scope) => format!("{code}, {}", words::text(&scope.to_string(), SCOPE_NAMED)),
    }
}

/// A rule's limit: `at most 0`, `at most 2 % of 150, so 3`.
pub fn limit(rule: &GateRule) -> String {
    let bound = match rule.bound {
        Bound::AtMost => "at most",
        Bound::AtLeast => "at least",
    };
    let of = rule.of.unwrap_or_default();
    let mut sentence = match (rule.limit, rule.share) {
        (None, _) => "no limit".to_owned(),
        (Some(limit), None) => format!("{bound} {limit}"),
        (Some(limit), Some(share)) => format!("{bound} {share} of {of}, so {limit}"),
    };
    // The rules over all cases say the same by what they count.
    if rule.scope.is_some() && rule.of == Some(0) {
        sentence.push_str("; there was no such case");
    }
    sentence
}

/// Limits that hold whatever happens, since no case is in their scope.
pub fn unknown_scope(unknown: &UnknownScope) -> String {
    let (table, lacking, known) = match &unknown.scope {
        GateScope::Risk(level) => (format!("risk.{level}"), "no compared case has this risk", "their risks"),
        GateScope::Tag(tag) => (format!("tag.{tag}"), "no case of the cases file has this tag", "the tags"),
        GateScope::Suite(suite) => {
            (format!("suite.{suite}"), "no case of the cases file is of this suite", "the suites")
        }
    };
    let mut names: Vec<_> =
        unknown.known.iter().take(SCOPES_NAMED).map(|name| words::text(name, SCOPE_NAMED)).collect();
    if unknown.known.len() > SCOPES_NAMED {
        names.push(format!("{} more", unknown.known.len() - SCOPES_NAMED));
    }
    let known =
        if names.is_empty() { "there are none".to_owned() } else { format!("{known} are {}", words::list(&names)) };
    format!("the limits of `[gate.{}]` hold whatever happens: {lacking}; {known}", words::text(&table, SCOPE_NAMED))
}

/// All the cases of which new has an answer to judge.
fn all(judged: usize) -> String {
    if judged == 1 { "the 1 case that was judged".to_owned() } else { format!("all {judged} cases that were judged") }
}

/// What was found besides the gate: how many cases moved, and how new did on what is expected of it.
pub fn besides(evaluation: &Evaluation) -> String {
    let judged = evaluation.cases.iter().filter(|case| case.is_judged_on_new()).count();
    let unmet: Vec<_> =
        evaluation.cases.iter().filter(|case| case.is_judged_on_new() && case.is_unmet_on_new()).collect();
    let stays = |verdict: Verdict| matches!(verdict, Verdict::Unchanged | Verdict::Noisy | Verdict::StillBroken);
    let moved = evaluation.cases.iter().filter(|case| !stays(case.verdict)).count();
    let total = evaluation.cases.len();
    let moved = format!("{moved} of {} moved", words::count(total, "case", "cases"));
    let expectations = match (judged, unmet.len()) {
        // The first sentence says it.
        (0, _) if !unjudged(evaluation).is_empty() => return moved,
        (0, _) => "no expectations were judged".to_owned(),
        (judged, 0) => format!("new meets the expectations of {}", all(judged)),
        (judged, failed) => {
            let old = unmet.iter().filter(|case| case.was_unmet_before()).count();
            let old = if old > 0 { format!(", {old} of them as before") } else { String::new() };
            format!("new does not meet the expectations of {failed} of {judged} cases that were judged{old}")
        }
    };
    format!("{moved}; {expectations}")
}

/// Which runs were compared.
pub fn compared(evaluation: &Evaluation) -> String {
    let side = |one: &ComparedRun, all: Option<&Vec<ComparedRun>>| match all.map(Vec::as_slice) {
        Some([first, others @ ..]) if !others.is_empty() => format!("{} and {} more", first.run_id, others.len()),
        _ => one.run_id.to_string(),
    };
    let repeats = evaluation.repeats.as_ref();
    let baseline = side(&evaluation.baseline, repeats.map(|repeats| &repeats.baseline));
    format!("new {} against baseline {baseline}", side(&evaluation.new, repeats.map(|repeats| &repeats.new)))
}

/// How many runs there are of each side, and what one run cannot tell.
pub fn repeats(evaluation: &Evaluation) -> String {
    match &evaluation.repeats {
        Some(repeats) => format!(
            "{} of baseline and {} of new",
            words::count(repeats.baseline.len(), "run", "runs"),
            words::count(repeats.new.len(), "run", "runs")
        ),
        None => {
            "one run a side: whether a change is the agent's own noise cannot be known; repeats of the baseline tell"
                .to_owned()
        }
    }
}

/// The rates over all cases, one sentence a measure that is not the same on both sides.
pub fn suite(evaluation: &Evaluation) -> Vec<String> {
    let measures = evaluation.repeats.iter().flat_map(|repeats| &repeats.suite);
    let part = |rate: &Rate| rate.passed as f64 / rate.runs.max(1) as f64;
    let moved = measures.filter(|suite| (part(&suite.baseline) - part(&suite.new)).abs() > 1e-9);
    let sentence = |suite: &SuiteMeasure| {
        let fell = if suite.fell { ", which is a fall" } else { "" };
        format!(
            "{} in {}, baseline in {} (p {}){fell}",
            measure(suite.code),
            share(&suite.new),
            share(&suite.baseline),
            probability(suite.p)
        )
    };
    moved.map(sentence).collect()
}

/// A rate over all cases. A share says nothing without the number that it is a share of: with runs that stopped when they had
/// decided, only those count that asked every case.
fn share(rate: &Rate) -> String {
    format!("{} of {} runs ({:.1} %)", rate.passed, rate.runs, 100.0 * rate.passed as f64 / rate.runs.max(1) as f64)
}

/// A measure in words.
pub const fn measure(code: MeasureCode) -> &'static str {
    match code {
        MeasureCode::Answered => "answered",
        MeasureCode::Expectations => "expectations met",
        MeasureCode::Evidence => "evidence holds",
    }
}

/// A probability, no finer than it is of use.
pub fn probability(p: f64) -> String {
    if p < 0.001 { "below 0.001".to_owned() } else { format!("{p:.3}") }
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
    if let Some(limit) = failure.timeout_ms.as_ref().filter(|_| failure.class == FailureClass::Timeout) {
        let _ = write!(sentence, " of {} ms", limit.as_f64());
    }
    match violations(failure).first() {
        Some(first) => {
            let _ = write!(sentence, ", {}", words::text(first, 160));
        }
        None => {
            if let Some(message) = failure.error_message.as_ref().filter(|_| !plain) {
                let _ = write!(sentence, ", {}", words::text(message, 120));
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
pub fn violations(failure: &RunnerFailure) -> Vec<String> {
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
pub fn changes(changes: &JsonChanges) -> String {
    let mut sentences: Vec<_> = changes.iter().take(PLACES_NAMED).map(change).collect();
    if changes.count() > sentences.len() {
        sentences.push(format!("{} more", changes.count() - sentences.len()));
    }
    words::list(&sentences)
}

/// A pair that stands in another place, and what else differs in it.
pub fn moved(changed: &JsonChanges) -> String {
    let and = if changed.is_empty() { String::new() } else { format!(", and {}", changes(changed)) };
    format!("in another place{and}")
}

fn change(change: &JsonChange) -> String {
    let place = place_name(change.pointer());
    match (&change.baseline, &change.new) {
        (Some(Place { value: Value::Array(old), .. }), Some(Place { value: Value::Array(new), .. })) => {
            format!("{place}: {}", reordering(old, new))
        }
        (Some(old), Some(new)) => match (&old.value, &new.value) {
            (Value::String(old), Value::String(new)) if differ_by_line(old, new) => {
                let (said, counted) = texts(&text::diff(old, new));
                let counted = if counted.is_empty() { counted } else { format!("({counted})") };
                let parts: Vec<_> = [place, said, counted].into_iter().filter(|part| !part.is_empty()).collect();
                parts.join(" ")
            }
            (old, new) => {
                let (old, new) = words::two_values(old, new);
                format!("{place} {old} → {new}")
            }
        },
        (Some(old), None) => format!("{place} gone, was {}", words::value(&old.value)),
        (None, Some(new)) => format!("{place} added {}", words::value(&new.value)),
        (None, None) => place,
    }
}

/// How the order of an array changed whose elements are the same: `"2A" moved from place 1 to 3`. Places are counted from 1.
pub fn reordering(old: &[Value], new: &[Value]) -> String {
    match elements::moved(old, new) {
        Some(Moved::Exchanged(i, j)) => {
            let (first, second) = words::two_values(&old[i], &old[j]);
            format!("{first} and {second} changed places ({} and {})", i + 1, j + 1)
        }
        Some(Moved::One(from, to)) => {
            format!("{} moved from place {} to {}", words::value(&old[from]), from + 1, to + 1)
        }
        None => format!("the same {} elements in another order", old.len()),
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
        let (old, new) = words::two_texts(&what_differs(old), &what_differs(new), WORDS_NAMED);
        return (format!("“{old}” → “{new}”"), String::new());
    }
    let lines = |lines: usize| words::count(lines, "line", "lines");
    let counted = format!("{} gone, {} new", lines(old.len()), lines(new.len()));
    let first = |side: &[&Line]| side.iter().map(|line| whole(line)).find(|text| !text.trim().is_empty());
    match (first(&old), first(&new)) {
        (Some(old), Some(new)) => {
            let (old, new) = words::two_texts(&old, &new, WORDS_NAMED);
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
