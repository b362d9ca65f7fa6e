//! An answer's events as steps to be compared: a call together with its result, or any other event alone.
//!
//! Times, latencies and ids are not compared: they differ between any two runs. A result belongs to the call that it
//! answers. Fields that this version does not know are compared: nobody can tell that they mean nothing.

use std::cell::OnceCell;
use std::cmp::Ordering;
use std::collections::{BTreeMap, HashMap, HashSet};
use std::hash::DefaultHasher;

use counterproof_artifact::{
    Content, Event, EventBody, Extra, ProposedAction, Retrieval, ToolCall, ToolResult, ToolStatus,
};
use serde_json::{Value, json};

use super::actions;
use super::assign::Cost;
use super::json::{self, JsonChanges};
use crate::load::LoadedAnswer;
use crate::load::payload::Payload;
use crate::rules::{self, Notes, Renaming, Rules, Scope, Subject};
use crate::values::distance::{Leaves, leaves_below, leaves_of, leaves_of_object};
use crate::values::order;
use crate::values::{self, ObjectMeaning, hash_object, hash_text, hash_texts};

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

/// What is compared.
#[derive(Clone, Copy)]
pub(super) enum Compared<'a> {
    /// The event of an answer with this index.
    Event(&'a LoadedAnswer, usize),
    /// A proposed action.
    Action(&'a ProposedAction),
}

impl Compared<'_> {
    fn essence(self) -> Value {
        match self {
            Compared::Event(loaded, index) => essence(loaded, index),
            Compared::Action(action) => actions::essence(action),
        }
    }

    /// What the essence means, without putting it together.
    fn meaning(self) -> u64 {
        match self {
            Compared::Event(loaded, index) => meaning(loaded, index),
            Compared::Action(action) => actions::meaning(action),
        }
    }

    /// How many leaves the arguments have, or the essence where there are none, without putting it together.
    fn size(self) -> usize {
        match self {
            Compared::Event(loaded, index) => size(loaded, index),
            Compared::Action(action) => leaves_of_object(&action.params),
        }
    }
}

/// A value as it is compared: an event without what differs between any two runs.
pub(super) struct Part<'a> {
    compared: Compared<'a>,
    essence: OnceCell<Value>,
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
    pub(super) fn of(compared: Compared<'a>, scope: Scope<'a>, notes: &mut Notes) -> Self {
        let (essence, mut view) = (OnceCell::new(), None);
        let key = if scope.is_empty() {
            let key = compared.meaning();
            debug_assert_eq!(key, values::meaning_hash(&compared.essence()), "what is hashed is what is compared");
            key
        } else {
            let seen = rules::view(essence.get_or_init(|| compared.essence()), &scope, notes).unwrap_or_default();
            values::meaning_hash(view.insert(seen))
        };
        Self { compared, essence, scope, key, view, coarse: OnceCell::new() }
    }

    /// The fields, under the pointers of the artifact. They are put together when they are asked for: of most parts it is
    /// enough to know that they mean the same as another.
    pub(super) fn essence(&self) -> &Value {
        self.essence.get_or_init(|| self.compared.essence())
    }

    /// The fields as the rules see them.
    pub(super) fn view(&self) -> &Value {
        self.view.as_ref().unwrap_or_else(|| self.essence())
    }

    /// Which of two comes first by its content.
    pub(super) fn order(&self, other: &Part<'_>) -> Ordering {
        if self.key == other.key { Ordering::Equal } else { order::of_values(self.view(), other.view()) }
    }

    /// The places at which two differ.
    pub(super) fn changes(&self, other: &Part<'_>, renaming: &mut Renaming) -> JsonChanges {
        let known_to_be_same = self.key == other.key && self.view.is_none() && other.view.is_none();
        if known_to_be_same {
            return JsonChanges::default();
        }
        json::diff_under(self.essence(), other.essence(), &self.scope, renaming)
    }

    /// How many leaves are looked at to compare it.
    pub(super) fn size(&self) -> usize {
        if self.view.is_some() {
            return self.coarse().0.count();
        }
        let size = self.compared.size();
        debug_assert_eq!(size, self.coarse().0.count(), "what is counted is what is compared");
        size
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
            && self.changes(other, &mut Renaming::any()).is_empty()
    }

    fn coarse(&self) -> &(Leaves, u64) {
        self.coarse.get_or_init(|| {
            let arguments = |value: &Value| Leaves::of_value(arguments_in(value));
            if self.view.is_none() {
                return (arguments(self.essence()), self.key);
            }
            let coarse = rules::coarse_view(self.essence(), &self.scope).unwrap_or_default();
            (arguments(&coarse), values::meaning_hash(&coarse))
        })
    }
}

/// What a tool is given says what a call is; what else is known of it does not make it another one.
fn arguments_in(essence: &Value) -> &Value {
    ARGUMENTS.iter().find_map(|key| essence.get(key)).unwrap_or(essence)
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
            (Some(part), Some(other)) => part.order(other),
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
            Part::of(Compared::Event(loaded, event), rules.scope(subject), notes)
        };
        let parts = [Some(part(index)), result.map(&mut part)];
        let keys = parts.each_ref().map(|part| part.as_ref().map(|part| part.key));
        let key = values::key_of((kind, keys));
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
    let payload = loaded.payload(index).map(Payload::to_value);
    let known = match &event.body {
        EventBody::ToolCall(call) => call_essence(call),
        EventBody::ToolResult(result) => result_essence(result, payload),
        EventBody::Retrieval(found) => retrieval_essence(found, payload),
        EventBody::FinalOutput(output) => json!({"content_type": output.content_type, "content": output.content}),
        EventBody::Unknown { .. } => json!({}),
    };
    with_unknown_fields(known, event.extra())
}

/// What the essence of an event means, without putting it together.
fn meaning(loaded: &LoadedAnswer, index: usize) -> u64 {
    let event: &Event = &loaded.answer.events[index];
    let object = ObjectMeaning::default();
    let known = match &event.body {
        EventBody::ToolCall(call) => {
            let known = object.field("args", |hasher| hash_object(&call.args, hasher));
            let known = match call.risk_level {
                Some(level) => known.field("risk_level", |hasher| hash_text(level.as_str(), hasher)),
                None => known,
            };
            match &call.risk_tags {
                Some(tags) => known.field("risk_tags", |hasher| hash_texts(sorted(tags).into_iter(), hasher)),
                None => known,
            }
        }
        EventBody::ToolResult(result) => {
            let status = if result.status == ToolStatus::Ok { "ok" } else { "error" };
            let known = object.field("status", |hasher| hash_text(status, hasher));
            with_payload(known, "payload_summary", loaded, index)
        }
        EventBody::Retrieval(found) => {
            let texts = |texts: &[String], hasher: &mut DefaultHasher| {
                hash_texts(texts.iter().map(String::as_str), hasher);
            };
            let known = object
                .field("query", |hasher| hash_text(&found.query, hasher))
                .field("doc_ids", |hasher| texts(&found.doc_ids, hasher));
            let known = match &found.snippets_hashes {
                Some(hashes) => known.field("snippets_hashes", |hasher| texts(hashes, hasher)),
                None => known,
            };
            with_payload(known, "snippets_asset_href", loaded, index)
        }
        EventBody::FinalOutput(output) => object
            .field("content_type", |hasher| hash_text(output.content_type.as_str(), hasher))
            .field("content", |hasher| match &output.content {
                Content::Text(text) => hash_text(text, hasher),
                Content::Json(fields) => hash_object(fields, hasher),
            }),
        EventBody::Unknown { .. } => object,
    };
    known.fields(event.extra()).finish()
}

fn size(loaded: &LoadedAnswer, index: usize) -> usize {
    let event: &Event = &loaded.answer.events[index];
    if let EventBody::ToolCall(call) = &event.body {
        return leaves_of_object(&call.args);
    }
    if let Some(arguments) = ARGUMENTS.iter().find_map(|key| event.extra().get(*key)) {
        return leaves_of(arguments);
    }
    let list = |texts: &[String]| texts.len().max(1);
    let known = match &event.body {
        EventBody::ToolResult(_) => 1,
        EventBody::Retrieval(found) => 1 + list(&found.doc_ids) + found.snippets_hashes.as_deref().map_or(0, list),
        EventBody::FinalOutput(output) => match &output.content {
            Content::Text(_) => 2,
            Content::Json(fields) => 1 + leaves_of_object(fields),
        },
        EventBody::ToolCall(_) | EventBody::Unknown { .. } => 0,
    };
    let payload = loaded.payload(index).map_or(0, Payload::leaves);
    // An object without fields is a leaf itself.
    (known + payload + leaves_below(event.extra())).max(1)
}

fn with_payload(known: ObjectMeaning, field: &str, loaded: &LoadedAnswer, index: usize) -> ObjectMeaning {
    match loaded.payload(index) {
        Some(payload) => known.field(field, |hasher| payload.hash_meaning(hasher)),
        None => known,
    }
}

/// Texts as a set.
pub(super) fn sorted(texts: &[String]) -> Vec<&str> {
    let mut texts: Vec<_> = texts.iter().map(String::as_str).collect();
    texts.sort_unstable();
    texts
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

fn retrieval_essence(found: &Retrieval, snippets: Option<Value>) -> Value {
    let mut essence = json!({"query": found.query, "doc_ids": found.doc_ids});
    if let Some(hashes) = &found.snippets_hashes {
        essence["snippets_hashes"] = json!(hashes);
    }
    if let Some(snippets) = snippets {
        essence["snippets_asset_href"] = snippets;
    }
    essence
}

fn call_essence(call: &ToolCall) -> Value {
    let mut essence = json!({"args": Value::Object(call.args.clone())});
    if let Some(level) = call.risk_level {
        essence["risk_level"] = json!(level);
    }
    if let Some(tags) = &call.risk_tags {
        essence["risk_tags"] = json!(sorted(tags));
    }
    essence
}

fn result_essence(result: &ToolResult, payload: Option<Value>) -> Value {
    let mut essence = json!({"status": result.status});
    if let Some(payload) = payload {
        essence["payload_summary"] = payload;
    }
    essence
}
