//! Evidence: for each proposed action, what its refs lead to. Whether a ref leads anywhere was asked when the artifact was
//! checked; whether that is good or bad is for the verdict.

use std::collections::HashMap;

use counterproof_artifact::{EventBody, EvidenceTarget, ToolCall};

use crate::load::LoadedAnswer;
use crate::values;

/// An evidence ref, followed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FollowedRef {
    /// What it points at.
    pub target: EvidenceTarget,
    /// Where that was found; `None` where it was not.
    pub resolved: Option<Resolved>,
    /// Equal for refs that lead to the same thing on both sides, whatever ids the sides gave it.
    pub meaning: u64,
}

/// Where an evidence ref was found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Resolved {
    /// In the event with this index.
    Event(usize),
    /// In the asset with this href.
    Asset(String),
}

/// The refs of each proposed action, followed.
pub fn follow(loaded: &LoadedAnswer) -> Vec<Vec<FollowedRef>> {
    // Many refs may lead to one call, by way of many results, and its arguments may be large.
    let mut meanings: HashMap<usize, u64> = HashMap::new();
    let actions = loaded.answer.proposed_actions.iter().enumerate();
    actions
        .map(|(action_index, action)| {
            let refs = action.evidence_refs.iter().enumerate();
            refs.map(|(index, evidence)| {
                let target = &evidence.target;
                let resolved =
                    if loaded.unresolved.contains(&(action_index, index)) { None } else { find(loaded, target) };
                let meaning = match (target, &resolved) {
                    (EvidenceTarget::RetrievalDoc { doc_id }, Some(_)) => values::key_of(("doc", doc_id)),
                    (_, Some(Resolved::Event(event))) => {
                        let event = call_at(loaded, *event).unwrap_or(*event);
                        *meanings.entry(event).or_insert_with(|| event_meaning(loaded, event))
                    }
                    (_, Some(Resolved::Asset(href))) => asset_meaning(loaded, href),
                    // What leads nowhere has no other meaning than its own words.
                    (target, None) => values::key_of(("nowhere", target.kind(), target.id())),
                };
                FollowedRef { target: target.clone(), resolved, meaning }
            })
            .collect()
        })
        .collect()
}

fn find(loaded: &LoadedAnswer, target: &EvidenceTarget) -> Option<Resolved> {
    let EvidenceTarget::Asset { id } = target else { return loaded.index.find(target).map(Resolved::Event) };
    let listed = loaded.manifest.as_ref().and_then(|manifest| manifest.items.iter().find(|item| item.asset_id == *id));
    // An id that no manifest lists is the href of a file that is there.
    Some(Resolved::Asset(listed.map_or_else(|| id.clone(), |item| item.href.to_string())))
}

/// An asset by its digest, where that is known.
fn asset_meaning(loaded: &LoadedAnswer, href: &str) -> u64 {
    let item = loaded.manifest.as_ref().and_then(|it| it.items.iter().find(|item| item.href.as_str() == href));
    match item.and_then(|item| item.sha256) {
        Some(digest) => values::key_of(("digest", digest)),
        None => values::key_of(("href", href)),
    }
}

/// The call that a ref leads to, or whose result it leads to.
pub(crate) fn call_of(loaded: &LoadedAnswer, followed: &FollowedRef) -> Option<usize> {
    let Some(Resolved::Event(index)) = followed.resolved else { return None };
    call_at(loaded, index)
}

fn call_at(loaded: &LoadedAnswer, index: usize) -> Option<usize> {
    match &loaded.answer.events[index].body {
        EventBody::ToolCall(_) => Some(index),
        EventBody::ToolResult(result) => loaded.index.call_place(&result.call_id),
        _ => None,
    }
}

/// Equal for refs to events that mean the same: the tool and the arguments of a call, for the call and for its result; the
/// whole event otherwise.
pub(crate) fn event_meaning(loaded: &LoadedAnswer, index: usize) -> u64 {
    let events = &loaded.answer.events;
    let of_call = |call: &ToolCall| values::key_of(("call", &call.tool, values::object_hash(&call.args)));
    match &events[index].body {
        EventBody::ToolCall(call) => of_call(call),
        EventBody::ToolResult(result) => match loaded.index.call(events, &result.call_id) {
            Some(call) => of_call(call),
            None => values::key_of(("result", &result.call_id)),
        },
        EventBody::Retrieval(retrieval) => values::key_of(("retrieval", &retrieval.query)),
        EventBody::FinalOutput(_) => values::key_of("final_output"),
        EventBody::Unknown { kind, fields } => values::key_of(("event", kind, values::object_hash(fields))),
    }
}

/// How many of an action's refs lead somewhere.
pub(crate) fn resolved_count(refs: &[FollowedRef]) -> usize {
    refs.iter().filter(|followed| followed.resolved.is_some()).count()
}
