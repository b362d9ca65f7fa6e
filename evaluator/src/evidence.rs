//! Evidence: for each proposed action, what its refs lead to. Whether that is good or bad is for the verdict.

use counterproof_artifact::{EventBody, EvidenceTarget, Resolved};
use serde_json::{Value, json};

use crate::diff::json::meaning_hash;
use crate::load::LoadedAnswer;

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

/// The refs of each proposed action, followed.
pub fn follow(loaded: &LoadedAnswer) -> Vec<Vec<FollowedRef>> {
    let actions = &loaded.answer.proposed_actions;
    actions
        .iter()
        .map(|action| {
            action
                .evidence_refs
                .iter()
                .map(|evidence| {
                    let resolved = evidence.target.resolve(&loaded.answer.events, loaded.manifest.as_deref());
                    let meaning = meaning(loaded, &evidence.target, resolved.as_ref());
                    FollowedRef { target: evidence.target.clone(), resolved, meaning }
                })
                .collect()
        })
        .collect()
}

/// What a ref stands for, without the ids that one side happened to use.
fn meaning(loaded: &LoadedAnswer, target: &EvidenceTarget, resolved: Option<&Resolved>) -> u64 {
    let value = match (target, resolved) {
        (EvidenceTarget::RetrievalDoc { doc_id }, Some(_)) => json!(["doc", doc_id]),
        (_, Some(Resolved::Event(index))) => json!(["event", event_meaning(loaded, *index)]),
        (EvidenceTarget::Asset { id }, Some(_)) => {
            let item = loaded.manifest.as_ref().and_then(|manifest| {
                manifest.items.iter().find(|item| item.asset_id == *id || item.href.as_str() == id)
            });
            match item.and_then(|item| item.sha256) {
                Some(digest) => json!(["asset", digest]),
                None => json!(["asset", id]),
            }
        }
        // What leads nowhere has no other meaning than its own words.
        (target, _) => json!(["nowhere", target.kind(), target.id()]),
    };
    meaning_hash(&value)
}

/// The tool and the arguments of a call, for the call and for its result; the whole event otherwise.
fn event_meaning(loaded: &LoadedAnswer, index: usize) -> Value {
    let events = &loaded.answer.events;
    let call_of = |call_id: &str| {
        events.iter().find_map(|event| match &event.body {
            EventBody::ToolCall(call) if call.call_id == call_id => Some(json!([call.tool, call.args])),
            _ => None,
        })
    };
    match &events[index].body {
        EventBody::ToolCall(call) => json!([call.tool, call.args]),
        EventBody::ToolResult(result) => call_of(&result.call_id).unwrap_or_else(|| json!(result.call_id)),
        EventBody::Retrieval(retrieval) => json!(["retrieval", retrieval.query]),
        EventBody::FinalOutput(_) => json!("final_output"),
        EventBody::Unknown { kind, fields } => json!([kind, fields]),
    }
}

/// How many of an action's refs lead somewhere.
pub fn resolved_count(refs: &[FollowedRef]) -> usize {
    refs.iter().filter(|followed| followed.resolved.is_some()).count()
}
