//! The places of an answer at which the runs of one case can differ, and the value of an answer at each of them as one hash.
//!
//! A place has the same key in every run and every case. It is a tool and an argument (a JSON Pointer without array indexes),
//! the order of the tools, or the output. Times, latencies and ids of calls and actions have no place: they differ between any
//! two runs. Elements that share a place are combined, whatever their order. The hashes of all runs of all cases fit in memory.

use std::collections::HashMap;
use std::fmt;

use counterproof_artifact::{EventBody, RiskLevel};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

use crate::diff::events::{self, EventKind};
use crate::diff::{item, output};
use crate::load::LoadedAnswer;
use crate::load::evidence::{self, FollowedRef};
use crate::rules::{self, Rules, Scope, Subject};
use crate::values::stringified::with_texts_parsed;
use crate::values::tokens::is_date;
use crate::values::{meaning_hash, text};

/// A part of an answer at which runs can differ.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum Place<'a> {
    /// Which tools are called, in their order.
    ToolSequence,
    /// An argument of the calls of a tool.
    Argument { tool: &'a str, path: &'a str },
    /// The other fields of the calls of a tool, such as their risk.
    Call { tool: &'a str },
    /// The results of a tool: an object by its leaves, any other value as a whole.
    Result { tool: &'a str, path: &'a str },
    /// The queries of retrievals, and the documents that they find.
    Retrieval,
    /// Events of a type that this version does not know.
    OtherEvent { kind: &'a str },
    /// The number of proposed actions that name a tool.
    Proposed { tool: &'a str },
    /// A parameter of the actions that name a tool.
    Param { tool: &'a str, path: &'a str },
    /// The type, risk and other fields of the actions that name a tool.
    Action { tool: &'a str },
    /// The targets of the evidence for the actions that name a tool.
    Evidence { tool: &'a str },
    /// The final output: a text as a whole, an object by its leaves.
    Output { path: &'a str },
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(super) enum ActionAspect {
    Existence,
    Content,
}

impl Place<'_> {
    /// The key of the place, equal in every run of every case.
    pub(super) fn key(self) -> u64 {
        // A JSON array keeps the parts apart: no tool name or path can produce the key of another place.
        let (kind, name, path) = self.parts();
        meaning_hash(&json!([kind, name, path]))
    }

    /// The key of the calls or the actions that the place is a part of, equal in every run of every case.
    pub(super) fn owner(self) -> Option<u64> {
        // A run without the owner has no value at the place: whether a run has the owner is another place.
        let (kind, tool) = match self {
            Place::Argument { tool, .. } | Place::Call { tool } | Place::Result { tool, .. } => ("calls", tool),
            Place::Param { tool, .. } | Place::Action { tool } | Place::Evidence { tool } => ("actions", tool),
            Place::ToolSequence
            | Place::Retrieval
            | Place::OtherEvent { .. }
            | Place::Proposed { .. }
            | Place::Output { .. } => return None,
        };
        Some(meaning_hash(&json!([kind, tool])))
    }

    /// The aspect of proposed actions that the place describes; `None` for other places.
    pub(super) const fn action_aspect(&self) -> Option<ActionAspect> {
        match self {
            Place::Proposed { .. } => Some(ActionAspect::Existence),
            Place::Param { .. } | Place::Action { .. } | Place::Evidence { .. } => Some(ActionAspect::Content),
            _ => None,
        }
    }

    const fn parts(&self) -> (&str, &str, &str) {
        match *self {
            Place::ToolSequence => ("tool sequence", "", ""),
            Place::Argument { tool, path } => ("argument", tool, path),
            Place::Call { tool } => ("call", tool, ""),
            Place::Result { tool, path } => ("result", tool, path),
            Place::Retrieval => ("retrieval", "", ""),
            Place::OtherEvent { kind } => ("event", kind, ""),
            Place::Proposed { tool } => ("proposed", tool, ""),
            Place::Param { tool, path } => ("param", tool, path),
            Place::Action { tool } => ("action", tool, ""),
            Place::Evidence { tool } => ("evidence", tool, ""),
            Place::Output { path } => ("output", "", path),
        }
    }
}

impl fmt::Display for Place<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let tool = |tool: &str| text::one_line(tool, 60);
        let within = |path: &str| text::one_line(&path.trim_start_matches('/').replace('/', "."), 80);
        match *self {
            Place::ToolSequence => f.write_str("tool sequence"),
            Place::Argument { tool: name, path } => write!(f, "call of {} {}", tool(name), within(path)),
            Place::Call { tool: name } => write!(f, "call of {} risk or other fields", tool(name)),
            Place::Result { tool: name, path: "" } => write!(f, "result of {}", tool(name)),
            Place::Result { tool: name, path } => write!(f, "result of {} {}", tool(name), within(path)),
            Place::Retrieval => f.write_str("retrieval"),
            Place::OtherEvent { kind } => write!(f, "event {}", tool(kind)),
            Place::Proposed { tool: name } => write!(f, "{} proposed", tool(name)),
            Place::Param { tool: name, path } => write!(f, "{} {}", tool(name), within(path)),
            Place::Action { tool: name } => write!(f, "{} type, risk or other fields", tool(name)),
            Place::Evidence { tool: name } => write!(f, "evidence for {}", tool(name)),
            Place::Output { path: "" } => f.write_str("output"),
            Place::Output { path } => write!(f, "output {}", within(path)),
        }
    }
}

/// Maximum number of leaves of one call or action that have a place of their own. Further leaves share one place: an object with
/// thousands of leaves uses its keys as data.
const LEAVES_NAMED: usize = 200;

/// An answer whose places are visited, viewed under the rules of comparison.
#[derive(Clone, Copy)]
pub(super) struct AnswerPlaces<'a> {
    pub(super) loaded: &'a LoadedAnswer,
    pub(super) evidence: &'a [Vec<FollowedRef>],
    pub(super) rules: &'a Rules,
}

/// Receives a place, and the hash of the value that one element of the answer has there.
type Visit<'s> = &'s mut dyn FnMut(Place<'_>, u64);

impl AnswerPlaces<'_> {
    /// Visits every place of the answer, one element at a time.
    pub(super) fn visit_all(self, visit: Visit<'_>) {
        // Numbers with a tolerance are left out: a hash cannot express a tolerance, so only the difference of two answers
        // covers them.
        (0..self.loaded.answer.events.len()).for_each(|index| self.visit_event(index, visit));
        visit(Place::ToolSequence, meaning_hash(&json!(events::tools_in_order(self.loaded))));
        for (index, action) in self.loaded.answer.proposed_actions.iter().enumerate() {
            visit(Place::Proposed { tool: &action.tool_name }, meaning_hash(&json!(true)));
            self.visit_action(index, visit);
        }
        self.visit_output(visit);
    }

    /// Visits the places of an event, except for its position among the others.
    pub(super) fn visit_event(self, index: usize, visit: Visit<'_>) {
        let Self { loaded, rules, .. } = self;
        let kind = EventKind::new(loaded, index);
        let scope = rules.scope(kind.subject());
        let EventKind { event: kind, tool } = kind;
        let Some(mut fields) = viewed_fields(item::event_value(loaded, index), &scope) else { return };
        match &loaded.answer.events[index].body {
            EventBody::ToolCall(_) => {
                fields.shift_remove("tool");
                if let Some(Value::Object(args)) = fields.shift_remove("args") {
                    leaves(&args, &mut |path, value| visit(Place::Argument { tool, path }, meaning_hash(value)));
                }
                if !fields.is_empty() {
                    visit(Place::Call { tool }, meaning_hash(&Value::Object(fields)));
                }
            }
            EventBody::ToolResult(_) => {
                // By leaves: nearly every result contains a time or an id that always differs. As a whole, the result would
                // count as noise, which would hide a change in a stable field.
                if let Some(payload) = fields.shift_remove("payload_summary") {
                    leaves_of(&payload, &mut |path, value| visit(Place::Result { tool, path }, meaning_hash(value)));
                }
                visit(Place::Result { tool, path: "" }, meaning_hash(&Value::Object(fields)));
            }
            EventBody::Retrieval(_) => visit(Place::Retrieval, meaning_hash(&Value::Object(fields))),
            // The final output has other places, which `visit_output` visits.
            EventBody::FinalOutput(_) => {}
            EventBody::Unknown { .. } => visit(Place::OtherEvent { kind }, meaning_hash(&Value::Object(fields))),
        }
    }

    /// True for an event that repeats the final output.
    pub(super) fn is_output_event(self, index: usize) -> bool {
        matches!(self.loaded.answer.events[index].body, EventBody::FinalOutput(_))
    }

    /// The key of the place for proposed actions with the tool of an event; `None` for an event without a tool.
    pub(super) fn proposed_place(self, index: usize) -> Option<u64> {
        let EventKind { tool, .. } = EventKind::new(self.loaded, index);
        (!tool.is_empty()).then(|| Place::Proposed { tool }.key())
    }

    /// Visits the places of a proposed action, except for its existence.
    pub(super) fn visit_action(self, index: usize, visit: Visit<'_>) {
        let Self { loaded, evidence, rules } = self;
        let action = &loaded.answer.proposed_actions[index];
        let tool = action.tool_name.as_str();
        let subject = Subject { event: None, tool: Some(tool) };
        if let Some(mut fields) = viewed_fields(item::action_value(action), &rules.scope(subject)) {
            if let Some(params) = fields.shift_remove("params") {
                // A list that is written as text is no other value of a high-risk action.
                if let Value::Object(params) = with_texts_parsed(&params).as_ref() {
                    leaves(params, &mut |path, value| visit(Place::Param { tool, path }, meaning_hash(value)));
                }
            }
            visit(Place::Action { tool }, meaning_hash(&Value::Object(fields)));
        }
        let Some(refs) = evidence.get(index) else { return };
        let mut meanings: Vec<_> = refs.iter().map(|followed| meaning(loaded, followed, rules)).collect();
        // Refs are a set: their order and repetitions carry no meaning.
        meanings.sort_unstable();
        meanings.dedup();
        visit(Place::Evidence { tool }, meaning_hash(&json!(meanings)));
    }

    /// Visits the facts of high-risk actions and calls: numbers, and texts of a single word, such as ids and recipients. Other texts are
    /// in the agent's own words.
    pub(super) fn visit_high_risk_facts(self, visit: Visit<'_>) {
        let Self { loaded, rules, .. } = self;
        for action in loaded.answer.proposed_actions.iter().filter(|action| action.risk_level == RiskLevel::High) {
            let tool = action.tool_name.as_str();
            let scope = rules.scope(Subject { event: None, tool: Some(tool) });
            facts(viewed_fields(item::action_value(action), &scope), "params", &mut |path, value| {
                visit(Place::Param { tool, path }, value);
            });
        }
        for (index, event) in loaded.answer.events.iter().enumerate() {
            let Some(call) = event.tool_call().filter(|call| call.risk_level == Some(RiskLevel::High)) else {
                continue;
            };
            let (tool, scope) = (call.tool.as_str(), rules.scope(EventKind::new(loaded, index).subject()));
            facts(viewed_fields(item::event_value(loaded, index), &scope), "args", &mut |path, value| {
                visit(Place::Argument { tool, path }, value);
            });
        }
    }

    pub(super) fn visit_output(self, visit: Visit<'_>) {
        let content = output::value(&self.loaded.answer.final_output.content);
        match rules::coarse_view(&content, &output::scope(self.rules)) {
            Some(Value::Object(object)) => {
                leaves(&object, &mut |path, value| visit(Place::Output { path }, meaning_hash(value)));
            }
            Some(text) => visit(Place::Output { path: "" }, meaning_hash(&text)),
            None => {}
        }
    }
}

fn meaning(loaded: &LoadedAnswer, followed: &FollowedRef, rules: &Rules) -> u64 {
    // A call is viewed under the rules, so that an ignored argument does not change the evidence.
    let Some(call) = evidence::call_of(loaded, followed).filter(|_| !rules.is_empty()) else { return followed.meaning };
    let EventKind { event: kind, tool } = EventKind::new(loaded, call);
    let fields =
        viewed_fields(item::event_value(loaded, call), &rules.scope(Subject { event: Some(kind), tool: Some(tool) }));
    meaning_hash(&json!([kind, tool, fields.and_then(|mut fields| fields.shift_remove("args"))]))
}

/// The compared fields of an event or an action under the rules; `None` if the rules ignore all of them.
fn viewed_fields(compared: Value, scope: &Scope<'_>) -> Option<Map<String, Value>> {
    let viewed = if scope.is_empty() { Some(compared) } else { rules::coarse_view(&compared, scope) };
    match viewed {
        Some(Value::Object(fields)) => Some(fields),
        _ => None,
    }
}

/// Most characters of an id that names a person or a thing: those of an IBAN. Longer ones are keys, hashes and links.
const LONGEST_ID: usize = 34;

/// The leaves of a field that are facts, each with its path and a hash of its value.
fn facts(fields: Option<Map<String, Value>>, field: &str, visit: &mut dyn FnMut(&str, u64)) {
    let Some(arguments) = fields.and_then(|mut fields| fields.shift_remove(field)) else { return };
    // A list that is written as text is no other value.
    let arguments = with_texts_parsed(&arguments);
    let Value::Object(arguments) = arguments.as_ref() else { return };
    leaves(arguments, &mut |path, value| {
        let is_fact = match value {
            Value::Number(_) => true,
            // Keys for one call and times are new in every run.
            Value::String(text) => {
                (1..=LONGEST_ID).contains(&text.len()) && !text.contains(char::is_whitespace) && !is_date(text)
            }
            _ => false,
        };
        if is_fact {
            visit(path, meaning_hash(value));
        }
    });
}

/// The leaves of an object, each with its path and its value.
fn leaves(object: &Map<String, Value>, visit: &mut dyn FnMut(&str, &Value)) {
    fields(object, &mut String::new(), &mut LEAVES_NAMED.clone(), visit);
}

fn leaves_of(value: &Value, visit: &mut dyn FnMut(&str, &Value)) {
    leaf(value, &mut String::new(), &mut LEAVES_NAMED.clone(), visit);
}

fn fields(object: &Map<String, Value>, path: &mut String, left: &mut usize, visit: &mut dyn FnMut(&str, &Value)) {
    for (key, value) in object {
        let length = path.len();
        counterproof_artifact::pointer::push(path, key);
        leaf(value, path, left, visit);
        path.truncate(length);
    }
}

fn leaf(value: &Value, path: &mut String, left: &mut usize, visit: &mut dyn FnMut(&str, &Value)) {
    match value {
        Value::Object(object) if !object.is_empty() => fields(object, path, left, visit),
        Value::Array(items) if !items.is_empty() => items.iter().for_each(|item| leaf(item, path, left, visit)),
        // The path is part of the hash here, because all leaves beyond the limit share this place.
        _ if *left == 0 => visit("/…", &json!([path, value])),
        _ => {
            *left -= 1;
            visit(path, value);
        }
    }
}

/// The label of a place that a run does not have.
pub(super) const ABSENT: u64 = 0;

/// The hash of an answer at each of its places, sorted by place.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub(super) struct PlaceHashes {
    by_place: Vec<(u64, u64)>,
}

impl PlaceHashes {
    /// Hashes an answer at each of its places, and adds the names of its places to `names`.
    pub(super) fn from_answer(answer: AnswerPlaces<'_>, names: &mut Names) -> Self {
        let mut by_place: HashMap<u64, u64> = HashMap::new();
        answer.visit_all(&mut |place: Place<'_>, value| {
            let key = place.key();
            names.0.entry(key).or_insert_with(|| Named {
                name: place.to_string(),
                owner: place.owner(),
                action_aspect: place.action_aspect(),
            });
            add(by_place.entry(key).or_default(), value);
        });
        let mut by_place: Vec<_> = by_place.into_iter().collect();
        // Sorted for binary search: a vector of pairs takes a fraction of the memory of a map, and all runs of all cases are
        // kept.
        by_place.sort_unstable();
        by_place.shrink_to_fit();
        Self { by_place }
    }

    /// The label of the answer at a place; [`ABSENT`] if the answer does not have the place.
    pub(super) fn at(&self, place: u64) -> u64 {
        let found = self.by_place.binary_search_by_key(&place, |(place, _)| *place);
        found.map_or(ABSENT, |index| self.by_place[index].1)
    }

    pub(super) fn places(&self) -> impl Iterator<Item = u64> {
        self.by_place.iter().map(|(place, _)| *place)
    }
}

/// What is known of each place, by its key.
#[derive(Debug, Default, Serialize, Deserialize)]
pub(crate) struct Names(HashMap<u64, Named>);

#[derive(Debug, Serialize, Deserialize)]
struct Named {
    name: String,
    owner: Option<u64>,
    action_aspect: Option<ActionAspect>,
}

impl Names {
    pub(crate) fn merged(mut self, others: Names) -> Self {
        for (place, name) in others.0 {
            self.0.entry(place).or_insert(name);
        }
        self
    }

    pub(super) fn get(&self, place: u64) -> Option<&str> {
        self.0.get(&place).map(|named| named.name.as_str())
    }

    /// The calls or the actions that a place is a part of.
    pub(super) fn owner(&self, place: u64) -> Option<u64> {
        self.0.get(&place)?.owner
    }

    pub(super) fn action_aspect(&self, place: u64) -> Option<ActionAspect> {
        self.0.get(&place)?.action_aspect
    }
}

/// Adds the hash of an element to the label of its place.
pub(super) fn add(label: &mut u64, value: u64) {
    // An odd multiplier spreads the bits. The lowest bit is set so that no element adds 0 and all elements count.
    let mixed = (value ^ (value >> 31)).wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1;
    // The sum depends on the number of elements but not on their order.
    *label = label.wrapping_add(mixed);
}
