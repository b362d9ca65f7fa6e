//! Answers that mean the same, place by place: nearly all of a night's. That is seen without preparing anything for an
//! alignment, and the alignment of such answers is known.
//!
//! A no says nothing: answers that mean the same in another order are for the alignment to tell.

use counterproof_artifact::{Content, Event, EventBody, FinalOutput, ProposedAction};

use crate::diff::actions::{ActionRow, EvidenceChange};
use crate::diff::align::Row;
use crate::diff::events::EventRow;
use crate::diff::json::JsonChanges;
use crate::diff::output::OutputChange;
use crate::diff::{Differences, WithEvidence};
use crate::load::LoadedAnswer;
use crate::load::evidence::FollowedRef;
use crate::load::payload;
use crate::values::same_object;

/// What an alignment of two answers would find, where they are alike in every place.
pub(crate) fn differences(baseline: WithEvidence<'_>, new: WithEvidence<'_>) -> Option<Differences> {
    let (old, other) = (&baseline.loaded.answer, &new.loaded.answer);
    let alike = old.events.len() == other.events.len()
        && old.proposed_actions.len() == other.proposed_actions.len()
        && is_same_output(&old.final_output, &other.final_output)
        && (0..old.events.len()).all(|index| is_same_event(baseline.loaded, new.loaded, index))
        && old.proposed_actions.iter().zip(&other.proposed_actions).all(|(old, new)| is_same_action(old, new))
        && baseline.evidence.iter().zip(new.evidence).all(|(old, new)| is_same_evidence(old, new))
        && is_one_after_another(baseline.loaded)
        && is_one_after_another(new.loaded);
    let row = |index| Row::Both { baseline: index, new: index };
    let changes = JsonChanges::default;
    let action =
        |index| ActionRow { row: row(index), changes: changes(), evidence: EvidenceChange::Same, noise: false };
    let event = |index| EventRow { row: row(index), changes: changes(), moved: false, concurrent: false, noise: false };
    alike.then(|| Differences {
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

/// True where no call is made while another is open: calls that overlap have no order, which is for the alignment.
fn is_one_after_another(loaded: &LoadedAnswer) -> bool {
    let mut open: Option<usize> = None;
    loaded.answer.events.iter().enumerate().all(|(index, event)| match &event.body {
        EventBody::ToolCall(_) => open.replace(index).is_none(),
        EventBody::ToolResult(result) => {
            let call = loaded.index.call_place(&result.call_id);
            call.is_some() && open.take() == call
        }
        _ => true,
    })
}

fn is_same_event(baseline: &LoadedAnswer, new: &LoadedAnswer, index: usize) -> bool {
    let (old, other): (&Event, &Event) = (&baseline.answer.events[index], &new.answer.events[index]);
    let payload = || payload::is_same(baseline.payload(index), new.payload(index));
    let known = match (&old.body, &other.body) {
        (EventBody::ToolCall(old), EventBody::ToolCall(new)) => {
            old.tool == new.tool
                && old.risk_level == new.risk_level
                && old.risk_tags == new.risk_tags
                && same_object(&old.args, &new.args)
        }
        (EventBody::ToolResult(old), EventBody::ToolResult(other)) => {
            let place = |loaded: &LoadedAnswer, id: &str| loaded.index.call_place(id);
            old.status == other.status && place(baseline, &old.call_id) == place(new, &other.call_id) && payload()
        }
        (EventBody::Retrieval(old), EventBody::Retrieval(new)) => {
            old.query == new.query
                && old.doc_ids == new.doc_ids
                && old.snippets_hashes == new.snippets_hashes
                && payload()
        }
        (EventBody::FinalOutput(old), EventBody::FinalOutput(new)) => {
            old.content_type == new.content_type && is_same_content(&old.content, &new.content)
        }
        (EventBody::Unknown { kind: old, .. }, EventBody::Unknown { kind: new, .. }) => old == new,
        _ => false,
    };
    known && same_object(old.extra(), other.extra())
}

fn is_same_action(old: &ProposedAction, new: &ProposedAction) -> bool {
    old.action_type == new.action_type
        && old.tool_name == new.tool_name
        && old.risk_level == new.risk_level
        && old.risk_tags == new.risk_tags
        && same_object(&old.params, &new.params)
        && same_object(&old.extra, &new.extra)
}

/// Ref by ref the same meaning, and all or none of them lead somewhere.
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
