//! The places at which runs of one case can differ, each with what an answer has there.
//!
//! A place is known across runs and cases: the tool and the argument (JSON Pointer with array indexes left out), the
//! order of the tools, the output. What an answer has there is a hash; elements that share a place are taken together,
//! whatever their order. Times, latencies and ids of calls and actions are no places: they differ between any two runs.

use std::fmt;

use counterproof_artifact::{Content, EventBody};
use serde_json::{Map, Value, json};

use crate::diff::json::meaning_hash;
use crate::evidence::FollowedRef;
use crate::load::LoadedAnswer;
use crate::words;

/// Leaves of one call or action beyond this many share one place: who writes thousands of arguments names no places.
const LEAVES_NAMED: usize = 200;

/// Where runs can differ.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum Place<'a> {
    /// Which tools are called, in their order.
    ToolSequence,
    /// An argument of the calls of a tool.
    Argument { tool: &'a str, path: &'a str },
    /// The risk that the calls of a tool state.
    CallRisk { tool: &'a str },
    /// What a tool returns.
    Result { tool: &'a str },
    /// What is looked for, and which documents are found.
    Retrieval,
    /// Events of a type that this version does not know.
    OtherEvent { kind: &'a str },
    /// Which tools the proposed actions name.
    Actions,
    /// A param of the actions that name a tool.
    Param { tool: &'a str, path: &'a str },
    /// Type, risk and other fields of the actions that name a tool.
    Action { tool: &'a str },
    /// What the evidence for the actions that name a tool leads to.
    Evidence { tool: &'a str },
    /// The final output: a text as a whole, an object by its leaves.
    Output { path: &'a str },
}

impl Place<'_> {
    /// The same for the same place in any run of any case.
    pub(super) fn key(self) -> u64 {
        let (kind, name, path) = self.parts();
        meaning_hash(&json!([kind, name, path]))
    }

    const fn parts(&self) -> (&str, &str, &str) {
        match *self {
            Place::ToolSequence => ("tool sequence", "", ""),
            Place::Argument { tool, path } => ("argument", tool, path),
            Place::CallRisk { tool } => ("call risk", tool, ""),
            Place::Result { tool } => ("result", tool, ""),
            Place::Retrieval => ("retrieval", "", ""),
            Place::OtherEvent { kind } => ("event", kind, ""),
            Place::Actions => ("actions", "", ""),
            Place::Param { tool, path } => ("param", tool, path),
            Place::Action { tool } => ("action", tool, ""),
            Place::Evidence { tool } => ("evidence", tool, ""),
            Place::Output { path } => ("output", "", path),
        }
    }
}

impl fmt::Display for Place<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let tool = |tool: &str| words::text(tool, 60);
        let within = |path: &str| words::text(&path.trim_start_matches('/').replace('/', "."), 80);
        match *self {
            Place::ToolSequence => f.write_str("tool sequence"),
            Place::Argument { tool: name, path } => write!(f, "call of {} {}", tool(name), within(path)),
            Place::CallRisk { tool: name } => write!(f, "call of {} risk", tool(name)),
            Place::Result { tool: name } => write!(f, "result of {}", tool(name)),
            Place::Retrieval => f.write_str("retrieval"),
            Place::OtherEvent { kind } => write!(f, "event {}", tool(kind)),
            Place::Actions => f.write_str("proposed actions"),
            Place::Param { tool: name, path } => write!(f, "{} {}", tool(name), within(path)),
            Place::Action { tool: name } => write!(f, "{} type or risk", tool(name)),
            Place::Evidence { tool: name } => write!(f, "evidence for {}", tool(name)),
            Place::Output { path: "" } => f.write_str("output"),
            Place::Output { path } => write!(f, "output {}", within(path)),
        }
    }
}

/// Shows every place of an answer with what it has there, one element at a time.
pub(super) fn visit(loaded: &LoadedAnswer, evidence: &[Vec<FollowedRef>], see: &mut dyn FnMut(Place<'_>, u64)) {
    let events = &loaded.answer.events;
    let mut sequence = Vec::new();
    for (event, payload) in events.iter().zip(&loaded.payloads) {
        match &event.body {
            EventBody::ToolCall(call) => {
                let tool = call.tool.as_str();
                sequence.push(tool);
                leaves(&call.args, &mut |path, value| see(Place::Argument { tool, path }, value));
                if call.risk_level.is_some() || call.risk_tags.is_some() {
                    let risk = json!([call.risk_level, sorted(call.risk_tags.as_deref().unwrap_or_default())]);
                    see(Place::CallRisk { tool }, meaning_hash(&risk));
                }
            }
            EventBody::ToolResult(result) => {
                let tool = loaded.index.call(events, &result.call_id).map_or("", |call| &call.tool);
                see(Place::Result { tool }, meaning_hash(&json!([result.status, payload])));
            }
            EventBody::Retrieval(found) => {
                let found = json!([found.query, found.doc_ids, found.snippets_hashes, payload]);
                see(Place::Retrieval, meaning_hash(&found));
            }
            // It says what the final output says.
            EventBody::FinalOutput(_) => {}
            EventBody::Unknown { kind, fields } => see(Place::OtherEvent { kind }, meaning_hash(&json!(fields))),
        }
    }
    see(Place::ToolSequence, meaning_hash(&json!(sequence)));

    let actions = &loaded.answer.proposed_actions;
    for (action, refs) in actions.iter().zip(evidence) {
        let tool = action.tool_name.as_str();
        see(Place::Actions, meaning_hash(&json!(tool)));
        leaves(&action.params, &mut |path, value| see(Place::Param { tool, path }, value));
        let said = json!([action.action_type, action.risk_level, sorted(&action.risk_tags), action.extra]);
        see(Place::Action { tool }, meaning_hash(&said));
        let mut meanings: Vec<_> = refs.iter().map(|followed| followed.meaning).collect();
        meanings.sort_unstable();
        meanings.dedup();
        see(Place::Evidence { tool }, meaning_hash(&json!(meanings)));
    }

    match &loaded.answer.final_output.content {
        Content::Text(text) => see(Place::Output { path: "" }, meaning_hash(&json!(text))),
        Content::Json(object) => leaves(object, &mut |path, value| see(Place::Output { path }, value)),
    }
}

fn sorted(tags: &[String]) -> Vec<&str> {
    let mut tags: Vec<_> = tags.iter().map(String::as_str).collect();
    tags.sort_unstable();
    tags
}

/// The leaves of an object, each with its path and a hash of its value.
fn leaves(object: &Map<String, Value>, see: &mut dyn FnMut(&str, u64)) {
    let mut path = String::new();
    let mut left = LEAVES_NAMED;
    fields(object, &mut path, &mut left, see);
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
