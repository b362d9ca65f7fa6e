//! An artifact under construction from an answer of an OpenAI form: its tool calls, its text, and when it was made.
//!
//! Nothing is made up: there are no results of tools, no evidence and no latencies, because the answer tells of none.

use std::collections::HashSet;
use std::time::Duration;

use counterproof_artifact::Case;
use serde_json::{Map, Value, json};

use super::document::{self, bounded};
use super::options::RiskTable;
use super::{Answering, document::kind_of};
use crate::failure::{Fault, Reason, Violation};
use crate::system::whole_millis;

/// Where arguments that are no JSON object are kept, within `params` and `args`.
pub(super) const RAW_ARGUMENTS: &str = "raw_arguments";

/// Fields of an item that are new with every answer and mean nothing to anybody but the server: in an event, they would
/// make two answers differ that say the same.
const OPAQUE: [&str; 2] = ["id", "encrypted_content"];

/// The latest time that is taken for one in seconds: the year 9999.
const LATEST_SECONDS: f64 = 253_402_300_799.0;

/// A call of a tool as the answer has it.
#[derive(Debug, Clone, Copy)]
pub(super) struct Called<'a> {
    /// Where in the answer it stands.
    pub(super) pointer: &'a str,
    pub(super) call_id: Option<&'a str>,
    pub(super) tool: &'a Value,
    /// A string of JSON, as a rule.
    pub(super) arguments: &'a Value,
}

/// Who carries a call out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Carried {
    /// Whoever asked the agent: the call is a proposed action.
    ByCaller,
    /// The server did already.
    ByServer,
}

pub(super) struct Builder<'a> {
    answering: Answering<'a>,
    risk: &'a RiskTable,
    ts: Value,
    actions: Vec<Value>,
    events: Vec<Value>,
    call_ids: HashSet<String>,
}

impl<'a> Builder<'a> {
    /// `created` is the answer's own time in seconds; where it has none, the time at which it was received stands in.
    pub(super) fn new(answering: Answering<'a>, risk: &'a RiskTable, created: Option<&Value>) -> Self {
        let created = created.and_then(Value::as_f64).filter(|seconds| (1.0..=LATEST_SECONDS).contains(seconds));
        let ts = match created {
            Some(seconds) => json!(whole_millis(Duration::from_secs_f64(seconds))),
            None => json!(answering.received.as_millisecond()),
        };
        Self { answering, risk, ts, actions: Vec::new(), events: Vec::new(), call_ids: HashSet::new() }
    }

    /// Adds a call, and the action that it proposes.
    pub(super) fn call(
        &mut self,
        called: Called<'_>,
        carried: Carried,
        beside: Map<String, Value>,
    ) -> Result<(), Fault> {
        let tool = match called.tool {
            Value::String(name) if !name.is_empty() => name,
            other => return Err(unreadable(&format!("{}/name", called.pointer), other, "the name of a tool")),
        };
        let call_id = self.unique_id(called.call_id);
        let (args, whole) = arguments(called.arguments);
        let risk_level = self.risk.level(tool);
        let mut event = json!({"type": "tool_call", "ts": self.ts, "call_id": call_id});
        let mut action = json!({
            "action_id": call_id, "action_type": tool, "tool_name": tool, "params": args,
            "risk_level": risk_level, "risk_tags": [], "evidence_refs": [],
        });
        if carried == Carried::ByCaller {
            event["action_id"] = call_id.into();
        }
        event["tool"] = tool.as_str().into();
        event["args"] = args;
        event["risk_level"] = json!(risk_level);
        if !whole {
            action["arguments_are_an_object"] = false.into();
            event["arguments_are_an_object"] = false.into();
        }
        for (field, value) in beside {
            if event.get(&field).is_none() {
                event[field] = value;
            }
        }
        if carried == Carried::ByCaller {
            self.actions.push(action);
        }
        self.events.push(event);
        Ok(())
    }

    /// Adds a step that the contract has no type for, without its [`OPAQUE`] fields.
    pub(super) fn other(&mut self, kind: &str, item: &Value) {
        let mut item = item.clone();
        if let Value::Object(fields) = &mut item {
            fields.retain(|field, _| !OPAQUE.contains(&field.as_str()));
        }
        self.events.push(json!({"type": kind, "ts": self.ts, "item": item}));
    }

    /// Adds the event of a text that the agent said in the end.
    pub(super) fn said(&mut self, output: &Value) {
        let mut event = json!({"type": "final_output", "ts": self.ts});
        for field in ["content_type", "content"] {
            event[field] = output[field].clone();
        }
        self.events.push(event);
    }

    /// The artifact, with further fields of the answer behind the contract's.
    pub(super) fn finish(self, output: Value, beside: Map<String, Value>) -> Result<Case, Fault> {
        let mut document = document::envelope(self.answering);
        document.insert("proposed_actions".to_owned(), self.actions.into());
        document.insert("events".to_owned(), self.events.into());
        document.insert("final_output".to_owned(), output);
        document.extend(beside);
        document::artifact(document)
    }

    /// Ids are unique within an artifact. A call without one, or with one that was used before, is numbered.
    fn unique_id(&mut self, said: Option<&str>) -> String {
        let numbers = (self.call_ids.len() + 1..).map(|number| format!("call_{number}"));
        let candidates = said.filter(|id| !id.is_empty()).map(str::to_owned).into_iter().chain(numbers);
        for candidate in candidates {
            if self.call_ids.insert(candidate.clone()) {
                return candidate;
            }
        }
        String::new()
    }
}

/// The arguments as an object, and whether they were one. What is no object is kept whole under [`RAW_ARGUMENTS`].
fn arguments(said: &Value) -> (Value, bool) {
    match said {
        // Servers write no arguments in all of these ways.
        Value::Null => (json!({}), true),
        Value::String(text) if text.trim().is_empty() => (json!({}), true),
        Value::Object(_) => (said.clone(), true),
        Value::String(text) => match serde_json::from_str(text) {
            Ok(Value::Object(fields)) => (Value::Object(fields), true),
            _ => (json!({RAW_ARGUMENTS: text}), false),
        },
        other => (json!({RAW_ARGUMENTS: other}), false),
    }
}

/// The final output: JSON where JSON was asked for and an object came back, text otherwise.
pub(super) fn output(text: &str, json_asked: bool) -> Value {
    if json_asked && let Ok(content @ Value::Object(_)) = serde_json::from_str(text) {
        return json!({"content_type": "json", "content": content});
    }
    json!({"content_type": "text", "content": text})
}

/// An answer that says that there is none: an error object with a status of success.
pub(super) fn refuse_errors(fields: &Map<String, Value>) -> Result<(), Fault> {
    match fields.get("error") {
        None | Some(Value::Null) => Ok(()),
        Some(_) => Err(Fault::new(Reason::AgentError, "the agent answered with an error object")),
    }
}

/// The named fields of an answer that are there and not null.
pub(super) fn kept(fields: &Map<String, Value>, names: &[(&str, &str)]) -> Map<String, Value> {
    let present = names.iter().filter_map(|(name, kept)| Some(((*kept).to_owned(), fields.get(*name)?.clone())));
    present.filter(|(_, value)| !value.is_null()).collect()
}

/// A place of the answer that holds something else than the protocol says.
pub(super) fn unreadable(pointer: &str, found: &Value, expected: &str) -> Fault {
    let message = format!("`{}` is not what the protocol says", bounded(pointer));
    let violation = Violation {
        code: Reason::ProtocolViolated.name(),
        pointer: pointer.to_owned(),
        message: if found.is_null() { "is missing or null".to_owned() } else { format!("is {}", kind_of(found)) },
        expected: expected.to_owned(),
    };
    Fault { violations: vec![violation], ..Fault::new(Reason::ProtocolViolated, message) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arguments_that_are_no_object_are_kept_as_they_are() {
        assert_eq!(arguments(&json!("{\"a\": 1}")), (json!({"a": 1}), true));
        assert_eq!(arguments(&json!({"a": 1})), (json!({"a": 1}), true));
        assert_eq!(arguments(&json!(" ")), (json!({}), true));
        assert_eq!(arguments(&json!("{\"a\": ")), (json!({"raw_arguments": "{\"a\": "}), false));
        assert_eq!(arguments(&json!("[1]")), (json!({"raw_arguments": "[1]"}), false));
        assert_eq!(arguments(&json!([1])), (json!({"raw_arguments": [1]}), false));
    }

    #[test]
    fn text_is_json_only_where_json_was_asked_for() {
        assert_eq!(output("{\"a\": 1}", true)["content_type"], "json");
        assert_eq!(output("{\"a\": 1}", false)["content_type"], "text");
        assert_eq!(output("[1]", true)["content_type"], "text");
    }
}
