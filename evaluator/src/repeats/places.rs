//! The places at which runs of one case can differ, each with what an answer has there.
//!
//! A place is known across runs and cases: the tool and the argument (JSON Pointer with array indexes left out), the
//! order of the tools, the output. What an answer has there is a hash; elements that share a place are taken together,
//! whatever their order. Times, latencies and ids of calls and actions are no places: they differ between any two runs.

use std::fmt;

use counterproof_artifact::EventBody;
use serde_json::{Map, Value, json};

use crate::diff::steps::{self, EventKind};
use crate::diff::{compared, output};
use crate::load::LoadedAnswer;
use crate::load::evidence::{self, FollowedRef};
use crate::rules::{self, Rules, Scope, Subject};
use crate::values::meaning_hash;
use crate::values::text;

/// Leaves of one call or action beyond this many share one place: who writes thousands of arguments names no places.
const LEAVES_NAMED: usize = 200;

/// Where runs can differ.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum Place<'a> {
    /// Which tools are called, in their order.
    ToolSequence,
    /// An argument of the calls of a tool.
    Argument { tool: &'a str, path: &'a str },
    /// What else the calls of a tool say, such as their risk.
    Call { tool: &'a str },
    /// What a tool returns: an object by its leaves, all else as a whole.
    Result { tool: &'a str, path: &'a str },
    /// What is looked for, and which documents are found.
    Retrieval,
    /// Events of a type that this version does not know.
    OtherEvent { kind: &'a str },
    /// Whether actions that name a tool are proposed, and how many.
    Proposed { tool: &'a str },
    /// A param of the actions that name a tool.
    Param { tool: &'a str, path: &'a str },
    /// Type, risk and other fields of the actions that name a tool.
    Action { tool: &'a str },
    /// What the evidence for the actions that name a tool leads to.
    Evidence { tool: &'a str },
    /// The final output: a text as a whole, an object by its leaves.
    Output { path: &'a str },
}

/// What a place says of proposed actions.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum OfActions {
    /// That they are there.
    There,
    /// What they are.
    Part,
}

impl Place<'_> {
    /// The same for the same place in any run of any case.
    pub(super) fn key(self) -> u64 {
        let (kind, name, path) = self.parts();
        meaning_hash(&json!([kind, name, path]))
    }

    /// The calls or the actions that it is a part of, the same for the same in any run of any case: a run without any of them
    /// has nothing there that could differ. That they are there is a place of its own.
    pub(super) fn owner(self) -> Option<u64> {
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

    /// Where it is about what an agent proposes to do.
    pub(super) const fn of_actions(&self) -> Option<OfActions> {
        match self {
            Place::Proposed { .. } => Some(OfActions::There),
            Place::Param { .. } | Place::Action { .. } | Place::Evidence { .. } => Some(OfActions::Part),
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

/// An answer whose places are visited, as the rules of comparison see it.
#[derive(Clone, Copy)]
pub(super) struct Visited<'a> {
    pub(super) loaded: &'a LoadedAnswer,
    pub(super) evidence: &'a [Vec<FollowedRef>],
    pub(super) rules: &'a Rules,
}

/// Is shown a place, and what an element of the answer has there.
type See<'s> = &'s mut dyn FnMut(Place<'_>, u64);

impl Visited<'_> {
    /// Shows every place of the answer with what it has there, one element at a time. A number that has a tolerance is not
    /// looked at: what of it counts is for the difference of two answers to say.
    pub(super) fn all(self, see: See<'_>) {
        (0..self.loaded.answer.events.len()).for_each(|index| self.event(index, see));
        see(Place::ToolSequence, meaning_hash(&json!(steps::tools_in_order(self.loaded))));
        for (index, action) in self.loaded.answer.proposed_actions.iter().enumerate() {
            see(Place::Proposed { tool: &action.tool_name }, meaning_hash(&json!(true)));
            self.action(index, see);
        }
        self.output(see);
    }

    /// Shows the places of an event, but not its place among the others.
    pub(super) fn event(self, index: usize, see: See<'_>) {
        let Self { loaded, rules, .. } = self;
        let kind = EventKind::new(loaded, index);
        let scope = rules.scope(kind.subject());
        let EventKind { event: kind, tool } = kind;
        let Some(mut fields) = as_seen(compared::event_value(loaded, index), &scope) else { return };
        match &loaded.answer.events[index].body {
            EventBody::ToolCall(_) => {
                fields.shift_remove("tool");
                if let Some(Value::Object(args)) = fields.shift_remove("args") {
                    leaves(&args, &mut |path, value| see(Place::Argument { tool, path }, value));
                }
                if !fields.is_empty() {
                    see(Place::Call { tool }, meaning_hash(&Value::Object(fields)));
                }
            }
            EventBody::ToolResult(_) => {
                // Nearly every result holds a time or an id: beside it, what never moves has to be seen to move.
                if let Some(payload) = fields.shift_remove("payload_summary") {
                    leaves_of(&payload, &mut |path, value| see(Place::Result { tool, path }, value));
                }
                see(Place::Result { tool, path: "" }, meaning_hash(&Value::Object(fields)));
            }
            EventBody::Retrieval(_) => see(Place::Retrieval, meaning_hash(&Value::Object(fields))),
            // Its places are those of the final output.
            EventBody::FinalOutput(_) => {}
            EventBody::Unknown { .. } => see(Place::OtherEvent { kind }, meaning_hash(&Value::Object(fields))),
        }
    }

    /// True for an event that says what the final output says.
    pub(super) fn says_output(self, index: usize) -> bool {
        matches!(self.loaded.answer.events[index].body, EventBody::FinalOutput(_))
    }

    /// The place of actions that name the tool of an event, where it has one.
    pub(super) fn proposed_by(self, index: usize) -> Option<u64> {
        let EventKind { tool, .. } = EventKind::new(self.loaded, index);
        (!tool.is_empty()).then(|| Place::Proposed { tool }.key())
    }

    /// Shows the places of a proposed action, but not that it is there.
    pub(super) fn action(self, index: usize, see: See<'_>) {
        let Self { loaded, evidence, rules } = self;
        let action = &loaded.answer.proposed_actions[index];
        let tool = action.tool_name.as_str();
        let subject = Subject { event: None, tool: Some(tool) };
        if let Some(mut fields) = as_seen(compared::action_value(action), &rules.scope(subject)) {
            if let Some(Value::Object(params)) = fields.shift_remove("params") {
                leaves(&params, &mut |path, value| see(Place::Param { tool, path }, value));
            }
            see(Place::Action { tool }, meaning_hash(&Value::Object(fields)));
        }
        let Some(refs) = evidence.get(index) else { return };
        let mut meanings: Vec<_> = refs.iter().map(|followed| meaning(loaded, followed, rules)).collect();
        meanings.sort_unstable();
        meanings.dedup();
        see(Place::Evidence { tool }, meaning_hash(&json!(meanings)));
    }

    /// Shows the places of the final output.
    pub(super) fn output(self, see: See<'_>) {
        let content = output::value(&self.loaded.answer.final_output.content);
        match rules::coarse_view(&content, &output::scope(self.rules)) {
            Some(Value::Object(object)) => leaves(&object, &mut |path, value| see(Place::Output { path }, value)),
            Some(text) => see(Place::Output { path: "" }, meaning_hash(&text)),
            None => {}
        }
    }
}

/// What a ref leads to, where that is a call by what the rules see of it.
fn meaning(loaded: &LoadedAnswer, followed: &FollowedRef, rules: &Rules) -> u64 {
    let Some(call) = evidence::call_of(loaded, followed).filter(|_| !rules.is_empty()) else { return followed.meaning };
    let EventKind { event: kind, tool } = EventKind::new(loaded, call);
    let fields =
        as_seen(compared::event_value(loaded, call), &rules.scope(Subject { event: Some(kind), tool: Some(tool) }));
    meaning_hash(&json!([kind, tool, fields.and_then(|mut fields| fields.shift_remove("args"))]))
}

/// The fields of an event or an action as the rules see them; `None` where they leave nothing.
fn as_seen(essence: Value, scope: &Scope<'_>) -> Option<Map<String, Value>> {
    let seen = if scope.is_empty() { Some(essence) } else { rules::coarse_view(&essence, scope) };
    match seen {
        Some(Value::Object(fields)) => Some(fields),
        _ => None,
    }
}

/// The leaves of an object, each with its path and a hash of its value.
fn leaves(object: &Map<String, Value>, see: &mut dyn FnMut(&str, u64)) {
    fields(object, &mut String::new(), &mut LEAVES_NAMED.clone(), see);
}

/// The leaves of any value.
fn leaves_of(value: &Value, see: &mut dyn FnMut(&str, u64)) {
    leaf(value, &mut String::new(), &mut LEAVES_NAMED.clone(), see);
}

fn fields(object: &Map<String, Value>, path: &mut String, left: &mut usize, see: &mut dyn FnMut(&str, u64)) {
    for (key, value) in object {
        let length = path.len();
        counterproof_artifact::pointer::push(path, key);
        leaf(value, path, left, see);
        path.truncate(length);
    }
}

fn leaf(value: &Value, path: &mut String, left: &mut usize, see: &mut dyn FnMut(&str, u64)) {
    match value {
        Value::Object(object) if !object.is_empty() => fields(object, path, left, see),
        Value::Array(items) if !items.is_empty() => items.iter().for_each(|item| leaf(item, path, left, see)),
        _ if *left == 0 => see("/…", meaning_hash(&json!([path, value]))),
        _ => {
            *left -= 1;
            see(path, meaning_hash(value));
        }
    }
}
