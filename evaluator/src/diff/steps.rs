//! An answer's events as steps to be compared: a call together with its result, or any other event alone.
//!
//! Times, latencies and ids are not compared: they differ between any two runs. A result belongs to the call that it
//! answers. Fields that this version does not know are compared: nobody can tell that they mean nothing.

use std::cell::OnceCell;
use std::cmp::Ordering;
use std::collections::{HashMap, HashSet};

use counterproof_artifact::{Event, EventBody, Extra, Retrieval, ToolCall, ToolResult};
use serde_json::{Value, json};

use super::assign::Cost;
use super::distance::Leaves;
use super::json;
use super::order;
use crate::load::LoadedAnswer;

/// What it costs at least and at most when two calls of one tool stand for each other.
const CALL: (Cost, Cost) = (1_000, 12_500);
/// The same for their results. A call that differs in everything, its result too, is still cheaper than one left out and
/// another put in.
const RESULT: (Cost, Cost) = (500, 2_500);
/// The same for two other events of one type.
const OTHER: (Cost, Cost) = (1_000, 15_000);

/// A step, prepared to be compared.
pub(super) struct Step<'a> {
    /// The index of its event, or of its call.
    pub(super) event: usize,
    /// The index of the call's result.
    pub(super) result: Option<usize>,
    /// Steps of one group have no order among themselves.
    pub(super) group: usize,
    /// Equal for steps that mean the same.
    pub(super) key: u64,
    /// Steps of different kinds never stand for each other: the type, and for calls and results the tool.
    kind: (&'a str, &'a str),
    /// What is compared of the event, and of the result.
    parts: [Option<Part>; 2],
}

/// An event as it is compared.
struct Part {
    /// Its fields, under the pointers of the artifact.
    essence: Value,
    key: u64,
    leaves: OnceCell<Leaves>,
}

impl Part {
    fn of(essence: Value) -> Self {
        Self { key: json::meaning_hash(&essence), essence, leaves: OnceCell::new() }
    }

    fn leaves(&self) -> &Leaves {
        self.leaves.get_or_init(|| Leaves::of_value(&self.essence))
    }
}

impl Step<'_> {
    /// What is compared of the step's event.
    pub(super) fn essence(&self) -> &Value {
        self.parts[0].as_ref().map_or(&Value::Null, |part| &part.essence)
    }

    /// What is compared of the step's result.
    pub(super) fn result_essence(&self) -> &Value {
        self.parts[1].as_ref().map_or(&Value::Null, |part| &part.essence)
    }

    /// What it costs that two steps stand for each other, `None` where they cannot.
    pub(super) fn cost(&self, other: &Step<'_>) -> Option<Cost> {
        let bounds = if self.kind.0 == "tool_call" { [CALL, RESULT] } else { [OTHER, RESULT] };
        let parts = self.parts.iter().zip(&other.parts).zip(bounds);
        (self.kind == other.kind)
            .then(|| parts.map(|((part, other), bounds)| part_cost(part.as_ref(), other.as_ref(), bounds)).sum())
    }

    /// How many leaves are looked at to compare it, without looking.
    pub(super) fn size(&self) -> usize {
        self.parts.iter().flatten().map(|part| part.leaves().count()).sum()
    }

    /// Which of two steps comes first by its content.
    pub(super) fn order(&self, other: &Step<'_>) -> Ordering {
        let values = |(a, b): (&Value, &Value)| order::of_values(a, b);
        self.kind
            .cmp(&other.kind)
            .then(self.group.cmp(&other.group))
            .then_with(|| values((self.essence(), other.essence())))
            .then_with(|| values((self.result_essence(), other.result_essence())))
    }
}

fn part_cost(part: Option<&Part>, other: Option<&Part>, (least, most): (Cost, Cost)) -> Cost {
    match (part, other) {
        (None, None) => 0,
        (Some(part), Some(other)) if part.key == other.key => 0,
        (Some(part), Some(other)) => least + part.leaves().cost(other.leaves(), most - least),
        _ => most,
    }
}

/// The steps of an answer, those of a group together.
pub(super) fn of(loaded: &LoadedAnswer) -> Vec<Step<'_>> {
    let events = &loaded.answer.events;
    let results = results(loaded);
    let taken: HashSet<_> = results.values().copied().collect();
    // Calls that are made while another is open belong to its group.
    let (mut group, mut open_until, mut open_group) = (0, 0, 0);
    let mut steps = Vec::with_capacity(events.len());
    for (index, event) in events.iter().enumerate().filter(|(index, _)| !taken.contains(index)) {
        let result = results.get(&index).copied();
        let is_call = matches!(event.body, EventBody::ToolCall(_));
        let overlaps = is_call && index < open_until;
        if !overlaps {
            group += 1;
        }
        if is_call && !overlaps {
            open_group = group;
        }
        if let Some(result) = result {
            open_until = open_until.max(result);
        }
        steps.push(step(loaded, index, result, if overlaps { open_group } else { group }));
    }
    steps.sort_by_key(|step: &Step<'_>| step.group);
    steps
}

/// For each call that has one, its first result.
fn results(loaded: &LoadedAnswer) -> HashMap<usize, usize> {
    let mut results = HashMap::new();
    for (index, event) in loaded.answer.events.iter().enumerate() {
        if let EventBody::ToolResult(result) = &event.body
            && let Some(call) = loaded.index.call_place(&result.call_id)
        {
            results.entry(call).or_insert(index);
        }
    }
    results
}

fn step(loaded: &LoadedAnswer, index: usize, result: Option<usize>, group: usize) -> Step<'_> {
    let event = &loaded.answer.events[index];
    let tool = match &event.body {
        EventBody::ToolCall(call) => &call.tool,
        EventBody::ToolResult(result) => {
            loaded.index.call(&loaded.answer.events, &result.call_id).map_or("", |call| &call.tool)
        }
        _ => "",
    };
    let kind = (event.kind(), tool);
    let parts = [Some(Part::of(essence(loaded, index))), result.map(|result| Part::of(essence(loaded, result)))];
    let keys = parts.each_ref().map(|part| part.as_ref().map(|part| part.key));
    Step { event: index, result, group, key: json::meaning_hash(&json!([kind.0, kind.1, keys])), kind, parts }
}

/// What is compared of an event, under the pointers of the artifact.
fn essence(loaded: &LoadedAnswer, index: usize) -> Value {
    let event: &Event = &loaded.answer.events[index];
    let payload = loaded.payloads.get(index).and_then(Option::as_ref);
    let known = match &event.body {
        EventBody::ToolCall(call) => call_essence(call),
        EventBody::ToolResult(result) => result_essence(result, payload),
        EventBody::Retrieval(found) => retrieval_essence(found, payload),
        EventBody::FinalOutput(output) => json!({"content_type": output.content_type, "content": output.content}),
        EventBody::Unknown { .. } => json!({}),
    };
    with_unknown_fields(known, event.extra())
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
    let mut essence = json!({"args": call.args});
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
