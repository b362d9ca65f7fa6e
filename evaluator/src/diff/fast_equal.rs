//! The fast path for two answers that are equal element by element, as nearly all answers of a nightly run are.
//!
//! `Some` means that the answers are equal, and holds what the slow path (the alignment) would return. `None` means
//! undecided: answers may still be equal in another order, which only the alignment detects.

use counterproof_artifact::{Content, EventBody, FinalOutput};

use super::actions::{ActionRow, EvidenceChange};
use super::align::Row;
use super::compared::Compared;
use super::differences::{Differences, WithEvidence};
use super::events::EventRow;
use super::json::JsonChanges;
use super::output::OutputChange;
use crate::load::LoadedAnswer;
use crate::load::evidence::FollowedRef;
use crate::values::same_object;

/// Returns what the alignment of two answers would return, if they are equal element by element.
pub(crate) fn differences(baseline: WithEvidence<'_>, new: WithEvidence<'_>) -> Option<Differences> {
    let (old, other) = (&baseline.loaded.answer, &new.loaded.answer);
    let is_same = old.events.len() == other.events.len()
        && old.proposed_actions.len() == other.proposed_actions.len()
        && is_same_output(&old.final_output, &other.final_output)
        && (0..old.events.len()).all(|index| is_same_event(baseline.loaded, new.loaded, index))
        && old
            .proposed_actions
            .iter()
            .zip(&other.proposed_actions)
            .all(|(old, new)| Compared::Action(old).is_same(Compared::Action(new)))
        && baseline.evidence.iter().zip(new.evidence).all(|(old, new)| is_same_evidence(old, new))
        && is_sequential(baseline.loaded)
        && is_sequential(new.loaded);
    let row = |index| Row::Both { baseline: index, new: index };
    let changes = JsonChanges::default;
    let action =
        |index| ActionRow { row: row(index), changes: changes(), evidence: EvidenceChange::Same, noise: false };
    let event = |index| EventRow { row: row(index), changes: changes(), moved: false, concurrent: false, noise: false };
    is_same.then(|| Differences {
        actions: (0..old.proposed_actions.len()).map(action).collect(),
        events: (0..old.events.len()).map(event).collect(),
        output: OutputChange::Same,
        output_is_noise: false,
        cost: 0,
        recovery: None,
        exact: true,
        rules_matched: Vec::new(),
    })
}

/// True if no call starts before the previous one has its result. Overlapping calls have no order, which only the
/// alignment handles.
fn is_sequential(loaded: &LoadedAnswer) -> bool {
    let mut open: Option<usize> = None;
    loaded.answer.events.iter().enumerate().all(|(index, event)| match &event.body {
        EventBody::ToolCall(_) => open.replace(index).is_none(),
        EventBody::ToolResult(result) => {
            let call = loaded.index.call_position(&result.call_id);
            call.is_some() && open.take() == call
        }
        _ => true,
    })
}

/// True if two events have the same kind and compared fields, and two results answer calls at the same index.
fn is_same_event(baseline: &LoadedAnswer, new: &LoadedAnswer, index: usize) -> bool {
    let identity = match (&baseline.answer.events[index].body, &new.answer.events[index].body) {
        (EventBody::ToolCall(old), EventBody::ToolCall(new)) => old.tool == new.tool,
        (EventBody::ToolResult(old), EventBody::ToolResult(other)) => {
            baseline.index.call_position(&old.call_id) == new.index.call_position(&other.call_id)
        }
        (EventBody::Unknown { kind: old, .. }, EventBody::Unknown { kind: new, .. }) => old == new,
        (EventBody::Retrieval(_), EventBody::Retrieval(_)) | (EventBody::FinalOutput(_), EventBody::FinalOutput(_)) => {
            true
        }
        _ => false,
    };
    identity && Compared::Event(baseline, index).is_same(Compared::Event(new, index))
}

/// True if the refs have the same meanings in the same order, and each resolves on both sides or on neither.
fn is_same_evidence(old: &[FollowedRef], new: &[FollowedRef]) -> bool {
    let is_same = |(old, new): (&FollowedRef, &FollowedRef)| {
        old.meaning == new.meaning && old.resolved.is_some() == new.resolved.is_some()
    };
    old.len() == new.len() && old.iter().zip(new).all(is_same)
}

fn is_same_output(old: &FinalOutput, new: &FinalOutput) -> bool {
    old.content_type == new.content_type && is_same_content(&old.content, &new.content)
}

fn is_same_content(old: &Content, new: &Content) -> bool {
    match (old, new) {
        (Content::Text(old), Content::Text(new)) => old == new,
        (Content::Json(old), Content::Json(new)) => same_object(old, new),
        _ => false,
    }
}
