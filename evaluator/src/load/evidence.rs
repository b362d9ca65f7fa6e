//! Evidence: the target of each evidence ref of a proposed action. Validation decides whether a ref resolves; the verdict
//! decides what that means.

use std::collections::HashMap;

use crate::load::LoadedAnswer;
use crate::values;
use counterproof_artifact::{EventBody, EvidenceTarget, ToolCall};

/// An evidence ref with its target.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FollowedRef {
    /// The target as the ref names it.
    pub target: EvidenceTarget,
    /// Where the target was found; `None` if the ref does not resolve.
    pub resolved: Option<Resolved>,
    /// Equal for refs with the same target on both sides, independent of the ids on each side.
    pub meaning: u64,
}

/// Where the target of an evidence ref was found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Resolved {
    /// In the event with this index.
    Event(usize),
    /// In the asset with this href.
    Asset(String),
}

/// Resolves the refs of each proposed action.
pub fn follow(loaded: &LoadedAnswer) -> Vec<Vec<FollowedRef>> {
    // Many refs can point at the same call, whose arguments can be large: each event is hashed once.
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
                    // An unresolved ref is identified by its own kind and id.
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
    // Validation accepts an id that is not in the manifest only if it is the href of an existing file.
    Some(Resolved::Asset(listed.map_or_else(|| id.clone(), |item| item.href.to_string())))
}

/// Identifies an asset by its digest, or by its href if the digest is unknown.
fn asset_meaning(loaded: &LoadedAnswer, href: &str) -> u64 {
    let item = loaded.manifest.as_ref().and_then(|it| it.items.iter().find(|item| item.href.as_str() == href));
    match item.and_then(|item| item.sha256) {
        // By content: the same document can be stored under another name in each run.
        Some(digest) => values::key_of(("digest", digest)),
        None => values::key_of(("href", href)),
    }
}

/// Returns the call that a ref points at, directly or by its result.
pub(crate) fn call_of(loaded: &LoadedAnswer, followed: &FollowedRef) -> Option<usize> {
    let Some(Resolved::Event(index)) = followed.resolved else { return None };
    call_at(loaded, index)
}

fn call_at(loaded: &LoadedAnswer, index: usize) -> Option<usize> {
    match &loaded.answer.events[index].body {
        EventBody::ToolCall(_) => Some(index),
        EventBody::ToolResult(result) => loaded.index.call_position(&result.call_id),
        _ => None,
    }
}

/// Returns a hash that is equal for refs to equal events. A call and its result are identified by tool and arguments, other
/// events by their content.
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

pub(crate) fn resolved_count(refs: &[FollowedRef]) -> usize {
    refs.iter().filter(|followed| followed.resolved.is_some()).count()
}
