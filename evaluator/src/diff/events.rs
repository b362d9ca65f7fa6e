//! Events of the two sides, aligned: which steps are the same, which changed, which only one side took.
//!
//! Times, latencies and ids are not compared: they differ between any two runs. A result is known by the call that it
//! answers. Fields that this version does not know are compared: nobody can tell that they mean nothing.

use counterproof_artifact::{Event, EventBody, Extra, Retrieval, ToolCall, ToolResult};
use serde_json::{Map, Value, json};

use super::align::{self, Costs, Row};
use super::distance::Leaves;
use super::json::{self, JsonChanges};
use crate::load::LoadedAnswer;

/// A row of the aligned events.
#[derive(Debug, Clone, PartialEq)]
pub struct EventRow {
    /// Which events stand for each other.
    pub row: Row,
    /// What differs within a pair; pointers lead into the artifact of their side.
    pub changes: JsonChanges,
}

impl EventRow {
    /// True where a pair differs in nothing.
    pub fn is_same(&self) -> bool {
        matches!(self.row, Row::Both { .. }) && self.changes.is_empty()
    }
}

/// An event, prepared to be compared.
struct Step<'a> {
    /// Events of different kinds never stand for each other: the type, and for calls and results the tool.
    kind: (&'a str, &'a str),
    /// What is compared, under the pointers of the artifact.
    essence: Value,
    /// What identifies the step among others of its kind.
    identity: Leaves,
    content: Leaves,
    key: u64,
}

/// Aligns the events of two answers; the flag is false where the lists were too long to be exact.
pub fn diff(baseline: &LoadedAnswer, new: &LoadedAnswer) -> (Vec<EventRow>, bool) {
    let (old, other) = (steps(baseline), steps(new));
    let keys = |steps: &[Step<'_>]| steps.iter().map(|step| step.key).collect::<Vec<_>>();
    let pair = |i: usize, j: usize| {
        let (a, b) = (&old[i], &other[j]);
        (a.kind == b.kind).then(|| 0.1 + 0.9 * a.identity.distance(&b.identity) + 0.5 * a.content.distance(&b.content))
    };
    let alignment = align::align(&Costs {
        baseline_keys: &keys(&old),
        new_keys: &keys(&other),
        effort: effort(&old, &other),
        pair: &pair,
    });
    let compare = |row: &Row| match *row {
        Row::Both { baseline: i, new: j } => {
            let changes = json::diff(&old[i].essence, &other[j].essence);
            EventRow { row: *row, changes: changes.below(&format!("/events/{i}"), &format!("/events/{j}")) }
        }
        row => EventRow { row, changes: JsonChanges::default() },
    };
    (alignment.rows.iter().map(compare).collect(), alignment.exact)
}

/// How many leaves are looked at to compare two steps, on average.
fn effort(baseline: &[Step<'_>], new: &[Step<'_>]) -> usize {
    let leaves: usize = baseline.iter().chain(new).map(|step| step.identity.count() + step.content.count()).sum();
    leaves / (baseline.len() + new.len()).max(1)
}

fn steps(loaded: &LoadedAnswer) -> Vec<Step<'_>> {
    loaded
        .answer
        .events
        .iter()
        .zip(&loaded.payloads)
        .map(|(event, payload)| step(loaded, event, payload.as_ref()))
        .collect()
}

fn step<'a>(loaded: &'a LoadedAnswer, event: &'a Event, payload: Option<&Value>) -> Step<'a> {
    let no_identity = Map::new();
    let (tool, identity, essence) = match &event.body {
        EventBody::ToolCall(call) => (call.tool.as_str(), &call.args, call_essence(call)),
        EventBody::ToolResult(result) => {
            let call = loaded.index.call(&loaded.answer.events, &result.call_id);
            (
                call.map_or("", |call| &call.tool),
                call.map_or(&no_identity, |call| &call.args),
                result_essence(result, payload),
            )
        }
        EventBody::Retrieval(found) => ("", &no_identity, retrieval_essence(found, payload)),
        EventBody::FinalOutput(output) => {
            ("", &no_identity, json!({"content_type": output.content_type, "content": output.content}))
        }
        EventBody::Unknown { .. } => ("", &no_identity, json!({})),
    };
    let essence = with_unknown_fields(essence, event.extra());
    let kind = (event.kind(), tool);
    let identity = Leaves::of(identity);
    let key = json::meaning_hash(&json!([kind.0, kind.1, essence, identity.fingerprint()]));
    Step { kind, content: Leaves::of_value(&essence), essence, identity, key }
}

/// Beside the fields that are known, those that are not.
fn with_unknown_fields(mut essence: Value, unknown: &Extra) -> Value {
    if let Value::Object(known) = &mut essence {
        for (field, value) in unknown {
            known.entry(field.clone()).or_insert_with(|| value.clone());
        }
    }
    essence
}

fn retrieval_essence(found: &Retrieval, snippets: Option<&Value>) -> Value {
    let mut essence = json!({"query": found.query, "doc_ids": found.doc_ids});
    if let Some(hashes) = &found.snippets_hashes {
        essence["snippets_hashes"] = json!(hashes);
    }
    if let Some(snippets) = snippets {
        essence["snippets_asset_href"] = snippets.clone();
    }
    essence
}

fn call_essence(call: &ToolCall) -> Value {
    let mut essence = json!({"tool": call.tool, "args": call.args});
    if let Some(level) = call.risk_level {
        essence["risk_level"] = json!(level);
    }
    if let Some(tags) = &call.risk_tags {
        let mut tags = tags.clone();
        tags.sort_unstable();
        essence["risk_tags"] = json!(tags);
    }
    essence
}

fn result_essence(result: &ToolResult, payload: Option<&Value>) -> Value {
    let mut essence = json!({"status": result.status});
    if let Some(payload) = payload {
        essence["payload_summary"] = payload.clone();
    }
    essence
}
