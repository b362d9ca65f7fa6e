//! Reasons that expectations give, and their messages.

use counterproof_artifact::Side;
use counterproof_artifact::evaluation::{ExpectationResult, Judgement, Reason, SidePointer};

use super::ReasonCode;
use super::side_pointers::{at, pointer};
use crate::values::text;

/// Maximum number of characters of the name of an expectation, as in `expect`.
const EXPECTATION_NAMED: usize = 120;

/// Whether an expectation became worse or better.
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
        let is_standing = result.must && !new.is_met() && !(baseline.is_met() && new.is_unmet());
        is_standing.then(|| ReasonCode::MustUnmet.reason(expectation_message(result), expectation_pointers(result)))
    })
}

fn expectation_pointers(result: &ExpectationResult) -> Vec<SidePointer> {
    let place = match result.code.as_str() {
        "action_required" | "evidence_required_for_actions" => "/proposed_actions",
        "tool_required" | "tool_sequence" | "retrieval_required" | "no_refused_calls" | "max_steps" => "/events",
        // Attempts and usage are optional fields, so the pointer leads to the whole artifact.
        "max_latency_ms" | "max_tokens" | "max_cost" => "",
        _ => "/final_output/content",
    };
    Side::BOTH.map(|side| pointer(side, place)).to_vec()
}

/// An expectation that new does not meet: the user's name for it, what was expected, and what was found.
pub(crate) fn expectation_message(result: &ExpectationResult) -> String {
    let Some(new) = &result.new else { return format!("{} not checked", subject(result)) };
    let as_before = if result.baseline.as_ref().is_some_and(|old| !old.is_met()) { " on both sides" } else { "" };
    format!("{} not met{as_before}: {}", subject(result), expected_and_found(result, new))
}

/// The name that the user gave an expectation, or its key.
fn subject(result: &ExpectationResult) -> String {
    match &result.name {
        Some(name) => format!("“{}”", text::one_line(name, EXPECTATION_NAMED)),
        None => result.code.clone(),
    }
}

/// What was expected against what was found. An expression without a name is in the found text already.
fn expected_and_found(result: &ExpectationResult, found: &Judgement) -> String {
    let Some(name) = &result.name else { return found.found().to_owned() };
    let prefix = format!("{}: ", text::one_line(name, EXPECTATION_NAMED));
    let expected = result.expected.strip_prefix(&prefix).unwrap_or(&result.expected);
    format!("expected {expected}, but {}", found.found())
}

/// Reasons for expectations that were decided on one side only; whether new is worse is unknown.
pub(super) fn undecided(results: &[ExpectationResult]) -> impl Iterator<Item = Reason> {
    results.iter().filter_map(|result| {
        let (baseline, new) = (result.baseline.as_ref()?, result.new.as_ref()?);
        let (side, judgement) = match (baseline.is_undecided(), new.is_undecided()) {
            (true, false) => (Side::Baseline, baseline),
            (false, true) => (Side::New, new),
            _ => return None,
        };
        let message = format!("{} could not be decided on {side}: {}", subject(result), judgement.found());
        Some(ReasonCode::ExpectationUndecided.reason(message, at(side, "/final_output/content")))
    })
}
