//! The reasons of a verdict that come from expectations, from evidence of failed calls, and from steps that differ.

use std::collections::HashSet;

use counterproof_artifact::evaluation::{ExpectationResult, Judgement, Reason, SidePointer};
use counterproof_artifact::{EventBody, Side};

use super::ReasonCode;
use super::findings::Findings;
use super::outcomes::{self, FailedEvidence};
use super::reason_code::at;
use crate::diff::align::Row;
use crate::diff::events::EventRow;
use crate::diff::output::OutputChange;
use crate::diff::rows::row_pointers;
use crate::diff::{Differences, WithEvidence};
use crate::load::LoadedAnswer;
use crate::load::call_status::{has_failed, refusal};
use crate::messages::{self, step_name};
use crate::values::text;

/// Two answers, and how they compare.
#[derive(Clone, Copy)]
pub(crate) struct AnswerPair<'a> {
    /// The baseline's answer.
    pub baseline: WithEvidence<'a>,
    /// New's answer.
    pub new: WithEvidence<'a>,
    /// The differences of the two answers.
    pub differences: &'a Differences,
    /// The results of the expectations on both sides.
    pub expectations: &'a [ExpectationResult],
    /// The findings on new.
    pub findings: &'a Findings,
}

/// Maximum number of characters of the name of an expectation, as in `expect`.
const EXPECTATION_NAMED: usize = 120;

#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Turn {
    Worse,
    Better,
}

/// Reasons for expectations that became worse or better.
pub(super) fn turned(results: &[ExpectationResult], turn: Turn) -> Vec<Reason> {
    let turned = results.iter().filter_map(|result| {
        let (baseline, new) = (result.baseline.as_ref()?, result.new.as_ref()?);
        let (code, went) = match turn {
            Turn::Worse => (ReasonCode::ExpectationFailed, baseline.is_met() && new.is_unmet()),
            Turn::Better => (ReasonCode::ExpectationMet, baseline.is_unmet() && new.is_met()),
        };
        let code = if turn == Turn::Worse && result.must { ReasonCode::MustUnmet } else { code };
        let message = match turn {
            Turn::Worse => format!("{} no longer met: {}", subject(result), expected_and_found(result, new)),
            Turn::Better => format!("{} now met; before: {}", subject(result), baseline.found()),
        };
        went.then(|| code.reason(message, expectation_pointers(result)))
    });
    turned.collect()
}

/// Reasons for hard expectations that new does not meet and the baseline did not meet either.
pub(super) fn must_unmet_on_both(results: &[ExpectationResult]) -> impl Iterator<Item = Reason> {
    results.iter().filter_map(|result| {
        let (baseline, new) = (result.baseline.as_ref()?, result.new.as_ref()?);
        // A hard expectation that got worse already has a reason among the regressions.
        let is_standing = result.must && !new.is_met() && !(baseline.is_met() && new.is_unmet());
        is_standing.then(|| ReasonCode::MustUnmet.reason(expectation_message(result), expectation_pointers(result)))
    })
}

/// Reasons for the expectations that new does not meet, for a run without a baseline.
pub(super) fn unmet(results: &[ExpectationResult]) -> Vec<Reason> {
    let unmet = results.iter().filter(|result| result.new.as_ref().is_some_and(|new| !new.is_met()));
    unmet
        .map(|result| {
            let code = if result.must { ReasonCode::MustUnmet } else { ReasonCode::ExpectationFailed };
            let mut pointers = expectation_pointers(result);
            pointers.retain(|pointer| pointer.side == Side::New);
            code.reason(expectation_message(result), pointers)
        })
        .collect()
}

fn expectation_pointers(result: &ExpectationResult) -> Vec<SidePointer> {
    let place = match result.code.as_str() {
        "action_required" | "evidence_required_for_actions" => "/proposed_actions",
        "tool_required" | "tool_sequence" | "retrieval_required" | "no_refused_calls" | "max_steps" => "/events",
        // Attempts and usage are optional fields, so the pointer leads to the whole artifact.
        "max_latency_ms" | "max_tokens" | "max_cost" => "",
        _ => "/final_output/content",
    };
    Side::BOTH.map(|side| SidePointer::new(side, place)).to_vec()
}

/// An expectation that new does not meet: the user's name for it, what was expected, and what was found.
pub(crate) fn expectation_message(result: &ExpectationResult) -> String {
    let Some(new) = &result.new else { return format!("{} not checked", subject(result)) };
    let as_before = if result.baseline.as_ref().is_some_and(|old| !old.is_met()) { " on both sides" } else { "" };
    format!("{} not met{as_before}: {}", subject(result), expected_and_found(result, new))
}

/// The name that the user gave an expectation, or its key.
fn subject(result: &ExpectationResult) -> String {
    let name = match &result.name {
        Some(name) => format!("“{}”", text::one_line(name, EXPECTATION_NAMED)),
        None => result.code.clone(),
    };
    match result.turn {
        Some(turn) => format!("turn {}: {name}", turn.get()),
        None => name,
    }
}

/// What was expected against what was found.
fn expected_and_found(result: &ExpectationResult, found: &Judgement) -> String {
    // An expression without a name is in the found text already.
    let Some(name) = &result.name else { return found.found().to_owned() };
    let prefix = format!("{}: ", text::one_line(name, EXPECTATION_NAMED));
    let expected = result.expected.strip_prefix(&prefix).unwrap_or(&result.expected);
    format!("expected {expected}, but {}", found.found())
}

/// Reasons for expectations that were decided on one side only; whether new is worse is unknown.
pub(super) fn undecided(results: &[ExpectationResult]) -> impl Iterator<Item = Reason> {
    results.iter().filter_map(|result| {
        let (baseline, new) = (result.baseline.as_ref()?, result.new.as_ref()?);
        // Undecided on both sides says nothing about a change, so only one side is reported.
        let (side, judgement) = match (baseline.is_undecided(), new.is_undecided()) {
            (true, false) => (Side::Baseline, baseline),
            (false, true) => (Side::New, new),
            _ => return None,
        };
        let message = format!("{} could not be decided on {side}: {}", subject(result), judgement.found());
        Some(ReasonCode::ExpectationUndecided.reason(message, at(side, "/final_output/content")))
    })
}

/// Reasons for actions of new that took effect on the results of failed calls alone, if the baseline's action did not.
pub(super) fn failed_evidence(compared: AnswerPair<'_>) -> Vec<Reason> {
    if !outcomes::any_failed(compared.new.loaded) {
        return Vec::new();
    }
    let (before, after) = (FailedEvidence::new(compared.baseline), FailedEvidence::new(compared.new));
    let actions = &compared.new.loaded.answer.proposed_actions;
    let found = compared.differences.actions.iter().filter_map(|row| {
        let (new, is_new) = match row.row {
            Row::Both { baseline, new } => (new, before.of_action(baseline).is_none()),
            // An added action has no counterpart that shows what it rested on, so any action of the baseline with such
            // evidence excuses it.
            Row::Added(new) => (new, before.is_empty()),
            Row::Removed(_) => return None,
        };
        let event = after.of_action(new).filter(|_| is_new)?;
        let loaded = compared.new.loaded;
        let message = format!(
            "{}: its evidence is the {}, which failed",
            text::one_line(&actions[new].tool_name, 60),
            step_name(&loaded.answer.events[event], loaded)
        );
        let pointers = row_pointers("/proposed_actions", row.row).into_iter().map(|mut place| {
            place.pointer.push_str("/evidence_refs");
            place
        });
        Some(ReasonCode::EvidenceFailed.reason(message, pointers.collect()))
    });
    found.collect()
}

/// Splits the reasons into those that explain why an action failed on new and succeeded on baseline, and the others.
pub(super) fn refused_actions(compared: AnswerPair<'_>, steps: Vec<Reason>) -> (Vec<Reason>, Vec<Reason>) {
    let (old, new) = (compared.baseline.loaded, compared.new.loaded);
    let newly = outcomes::newly_failed(old, new, &compared.differences.actions);
    // A row of a failed call is found by its pointer, because reasons do not keep their row.
    let places: HashSet<_> = newly.iter().flat_map(|action| &action.failed).map(|event| at_event(*event)).collect();
    let (mut refused, others): (Vec<_>, Vec<_>) = steps.into_iter().partition(|step| {
        ReasonCode::ToolError.is_code_of(step)
            && step.pointers.iter().any(|at| at.side == Side::New && places.contains(&at.pointer))
    });
    for action in &newly {
        // With repeated calls, no row of steps may show the failure. The action then gets a separate reason.
        let covers = |reason: &Reason, event: usize| reason.pointers.iter().any(|at| at.pointer == at_event(event));
        // The last result is reported: it is the outcome after all retries.
        let Some(&last) = action.failed.last() else { continue };
        if !action.failed.iter().any(|event| refused.iter().any(|reason| covers(reason, *event))) {
            let name = step_name(&new.answer.events[last], new);
            let pointers = vec![
                SidePointer::new(Side::Baseline, at_event(action.succeeded)),
                SidePointer::new(Side::New, at_event(last)),
            ];
            let message = format!("{name}: {}, but succeeded on baseline", how_failed(new, last));
            refused.push(ReasonCode::ToolError.reason(message, pointers));
        }
    }
    (refused, others)
}

/// Returns how the call of a failed result failed: a policy refused it, or the tool failed, perhaps only in words.
fn how_failed(loaded: &LoadedAnswer, index: usize) -> String {
    let silently = || Some(format!("failed without an error status (“{}”)", loaded.silent_failures.get(&index)?));
    refusal(loaded, index).or_else(silently).unwrap_or_else(|| "failed".to_owned())
}

fn at_event(index: usize) -> String {
    format!("/events/{index}")
}

/// The events that are paired, by side and index.
pub(super) fn paired_events(rows: &[EventRow]) -> HashSet<(Side, usize)> {
    rows.iter().filter(|row| matches!(row.row, Row::Both { .. })).flat_map(|row| row.row.elements()).collect()
}

/// The reason for a row of events that differs; `None` if another reason covers it.
pub(super) fn event_change(
    row: &EventRow,
    compared: AnswerPair<'_>,
    paired: &HashSet<(Side, usize)>,
) -> Option<Reason> {
    let (old, new) = (compared.baseline.loaded, compared.new.loaded);
    let (side, index) = row.row.named_by();
    let loaded = if side == Side::Baseline { old } else { new };
    let event = &loaded.answer.events[index];
    let name = step_name(event, loaded);
    let (code, message) = match (&event.body, row.row) {
        // A changed final output has a separate reason.
        (EventBody::FinalOutput(_), _) if compared.differences.output != OutputChange::Same => return None,
        (EventBody::ToolResult(_), Row::Added(_)) if has_failed(new, index) => {
            (ReasonCode::ToolError, format!("{name}: {}; baseline has no such call", how_failed(new, index)))
        }
        (EventBody::ToolResult(result), Row::Added(_) | Row::Removed(_)) => {
            let call = loaded.index.call_position(&result.call_id);
            // The reason for the added or removed call covers its result.
            if !call.is_some_and(|call| paired.contains(&(side, call))) {
                return None;
            }
            (ReasonCode::ToolResultChanged, format!("{name}: only in {side}"))
        }
        (EventBody::ToolResult(_), Row::Both { .. }) if row.changes.is_empty() => return None,
        (EventBody::ToolResult(_), Row::Both { baseline, .. }) => {
            match (has_failed(old, baseline), has_failed(new, index)) {
                (false, true) => {
                    (ReasonCode::ToolError, format!("{name}: {}, but succeeded on baseline", how_failed(new, index)))
                }
                (true, false) => {
                    (ReasonCode::ToolErrorGone, format!("{name}: failed on baseline, but succeeded on new"))
                }
                _ => (ReasonCode::ToolResultChanged, format!("{name}: {}", messages::changes(&row.changes))),
            }
        }
        (body, at) => {
            let code = match (body, at) {
                (EventBody::ToolCall(_), Row::Added(_)) => ReasonCode::ToolCallAdded,
                (EventBody::ToolCall(_), Row::Removed(_)) => ReasonCode::ToolCallRemoved,
                (EventBody::ToolCall(_), Row::Both { .. }) if row.moved => ReasonCode::ToolCallMoved,
                (EventBody::ToolCall(_), Row::Both { .. }) => ReasonCode::ToolArgsChanged,
                (EventBody::Retrieval(_), _) => ReasonCode::RetrievalChanged,
                _ => ReasonCode::EventChanged,
            };
            let message = match at {
                Row::Added(_) | Row::Removed(_) => format!("{name}: only in {side}"),
                Row::Both { .. } if row.moved => format!("{name}: {}", messages::moved(&row.changes)),
                Row::Both { .. } => format!("{name}: {}", messages::changes(&row.changes)),
            };
            (code, message)
        }
    };
    Some(code.reason(message, row_pointers("/events", row.row)))
}
