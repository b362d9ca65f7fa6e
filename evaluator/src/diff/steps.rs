//! An answer's events as steps to be compared: a call together with its result, or any other event alone.
//!
//! Times, latencies and ids are not compared: they differ between any two runs. A result belongs to the call that it
//! answers. Fields that this version does not know are compared: nobody can tell that they mean nothing.

use std::cell::OnceCell;
use std::cmp::Ordering;
use std::collections::{BTreeMap, HashMap, HashSet};

use counterproof_artifact::{Event, EventBody, Extra, Retrieval, ToolCall, ToolResult};
use serde_json::{Value, json};

use super::assign::Cost;
use super::distance::Leaves;
use super::json;
use super::order;
use crate::load::LoadedAnswer;
use crate::rules::{self, Notes, Renaming, Rules, Scope, Subject};

/// What it costs at least and at most when two calls of one tool stand for each other.
const CALL: (Cost, Cost) = (1_000, 12_500);
/// The same for their results. A call that differs in everything, its result too, is still cheaper than one left out and
/// another put in.
const RESULT: (Cost, Cost) = (500, 2_500);
/// The same for two other events of one type.
const OTHER: (Cost, Cost) = (1_000, 15_000);

/// Where a call and an action keep what the tool is given.
const ARGUMENTS: [&str; 2] = ["args", "params"];

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
    parts: [Option<Part<'a>>; 2],
}

/// A value as it is compared: an event without what differs between any two runs.
pub(super) struct Part<'a> {
    /// The fields, under the pointers of the artifact.
    pub(super) essence: Value,
    /// The rules that act on it.
    pub(super) scope: Scope<'a>,
    /// Equal for parts that mean the same.
    pub(super) key: u64,
    /// The fields as the rules see them; none where no rule acts.
    view: Option<Value>,
    coarse: OnceCell<(Leaves, u64)>,
}

impl<'a> Part<'a> {
    /// Prepares a value; what the rules match is noted.
    pub(super) fn of(essence: Value, scope: Scope<'a>, notes: &mut Notes) -> Self {
        let view = (!scope.is_empty()).then(|| rules::view(&essence, &scope, notes).unwrap_or_default());
        let key = json::meaning_hash(view.as_ref().unwrap_or(&essence));
        Self { essence, scope, key, view, coarse: OnceCell::new() }
    }

    /// The fields as the rules see them.
    pub(super) fn view(&self) -> &Value {
        self.view.as_ref().unwrap_or(&self.essence)
    }

    /// How many leaves are looked at to compare it.
    pub(super) fn size(&self) -> usize {
        self.coarse().0.count()
    }

    /// What it costs that it stands for another one, between two bounds; nothing where they mean the same.
    pub(super) fn cost(&self, other: &Part<'_>, (least, most): (Cost, Cost)) -> Cost {
        if self.key == other.key || self.is_near(other) {
            return 0;
        }
        least + self.coarse().0.cost(&other.coarse().0, most - least)
    }

    /// True where it differs in numbers only that the rules take for the same.
    fn is_near(&self, other: &Part<'_>) -> bool {
        // With other rules the key would be the same only by chance, so a view without its numbers decides whether to look.
        self.view.is_some()
            && self.coarse().1 == other.coarse().1
            && json::diff_under(&self.essence, &other.essence, &self.scope, &mut Renaming::any()).is_empty()
    }

    fn coarse(&self) -> &(Leaves, u64) {
        self.coarse.get_or_init(|| {
            // What a tool is given says what a call is; what else is known of it does not make it another one.
            let arguments =
                |value: &Value| Leaves::of_value(ARGUMENTS.iter().find_map(|key| value.get(key)).unwrap_or(value));
            if self.view.is_none() {
                return (arguments(&self.essence), self.key);
            }
            let coarse = rules::coarse_view(&self.essence, &self.scope).unwrap_or_default();
            (arguments(&coarse), json::meaning_hash(&coarse))
        })
    }
}

impl<'a> Step<'a> {
    /// What is compared of the step's event, and of its result.
    pub(super) const fn parts(&self) -> &[Option<Part<'a>>; 2] {
        &self.parts
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
        self.parts.iter().flatten().map(Part::size).sum()
    }

    /// Which of two steps comes first by its content.
    pub(super) fn order(&self, other: &Step<'_>) -> Ordering {
        let views = |part: &Option<Part<'_>>, other: &Option<Part<'_>>| match (part, other) {
            (Some(part), Some(other)) => order::of_values(part.view(), other.view()),
            (part, other) => part.is_some().cmp(&other.is_some()),
        };
        self.kind
            .cmp(&other.kind)
            .then(self.group.cmp(&other.group))
            .then_with(|| views(&self.parts[0], &other.parts[0]))
            .then_with(|| views(&self.parts[1], &other.parts[1]))
    }
}

fn part_cost(part: Option<&Part<'_>>, other: Option<&Part<'_>>, bounds: (Cost, Cost)) -> Cost {
    match (part, other) {
        (None, None) => 0,
        (Some(part), Some(other)) => part.cost(other, bounds),
        _ => bounds.1,
    }
}

/// An event that starts a step, the result of its call, and the group of steps without an order that it belongs to.
struct Start {
    event: usize,
    result: Option<usize>,
    group: usize,
}

/// The steps of an answer by their events, in the order of these.
fn starts(loaded: &LoadedAnswer) -> Vec<Start> {
    let events = &loaded.answer.events;
    let results = results(loaded);
    let taken: HashSet<_> = results.values().copied().collect();
    // Calls that are made while another is open belong to its group.
    let (mut group, mut open_until, mut open_group) = (0, 0, 0);
    let mut starts = Vec::with_capacity(events.len());
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
        starts.push(Start { event: index, result, group: if overlaps { open_group } else { group } });
    }
    starts
}

/// Which tools are called, in their order: those of calls that overlap are together, in an order of their own.
pub(crate) fn tools_in_order(loaded: &LoadedAnswer) -> Vec<Vec<&str>> {
    let mut groups: BTreeMap<usize, Vec<&str>> = BTreeMap::new();
    for start in starts(loaded) {
        if let EventBody::ToolCall(call) = &loaded.answer.events[start.event].body {
            groups.entry(start.group).or_default().push(&call.tool);
        }
    }
    for tools in groups.values_mut() {
        tools.sort_unstable();
    }
    groups.into_values().collect()
}

/// The steps of an answer, those of a group together. What the rules match is noted.
pub(super) fn of<'a>(loaded: &'a LoadedAnswer, rules: &'a Rules, notes: &mut Notes) -> Vec<Step<'a>> {
    let events = &loaded.answer.events;
    let mut steps = Vec::with_capacity(events.len());
    for Start { event: index, result, group } in starts(loaded) {
        let kind = kind(loaded, index);
        let mut part = |event: usize| {
            let subject =
                Subject { event: Some(events[event].kind()), tool: Some(kind.1).filter(|tool| !tool.is_empty()) };
            Part::of(essence(loaded, event), rules.scope(subject), notes)
        };
        let parts = [Some(part(index)), result.map(&mut part)];
        let keys = parts.each_ref().map(|part| part.as_ref().map(|part| part.key));
        let key = json::meaning_hash(&json!([kind.0, kind.1, keys]));
        steps.push(Step { event: index, result, group, key, kind, parts });
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

/// The type of an event, and for calls and results the tool.
pub(crate) fn kind(loaded: &LoadedAnswer, index: usize) -> (&str, &str) {
    let event = &loaded.answer.events[index];
    let tool = match &event.body {
        EventBody::ToolCall(call) => call.tool.as_str(),
        EventBody::ToolResult(result) => {
            loaded.index.call(&loaded.answer.events, &result.call_id).map_or("", |call| &call.tool)
        }
        _ => "",
    };
    (event.kind(), tool)
}

/// What is compared of an event, under the pointers of the artifact.
pub(crate) fn essence(loaded: &LoadedAnswer, index: usize) -> Value {
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
