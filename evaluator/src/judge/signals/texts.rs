//! The texts of one side, with their places: what the agent stated, what it passed to tools, and what it received.

use std::collections::HashMap;
use std::fmt::Write as _;

use counterproof_artifact::{Content, EventBody, RiskLevel, pointer};
use serde_json::{Map, Value};

use crate::load::LoadedAnswer;
use crate::load::case_input::CaseInput;
use crate::load::payload::Payload;
use crate::load::tool_names;

/// Roles of the agent in events of unknown types that hold messages.
const AGENT_ROLES: [&str; 4] = ["assistant", "agent", "ai", "model"];

/// Whole numbers below this have too few digits to be searched.
const SEARCHED_FROM: u64 = 1_000_000;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Place<'a> {
    Output,
    /// A message of the agent in the transcript.
    Message,
    /// The arguments of a call, or the parameters of an action.
    Tool(Use<'a>),
    Query,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Use<'a> {
    pub tool: &'a str,
    pub risk: RiskLevel,
}

/// True for tools with effects outside: of high risk, or for sending.
pub(super) fn is_sensitive(tool_use: Use<'_>) -> bool {
    tool_use.risk == RiskLevel::High || tool_names::is_sending(tool_use.tool)
}

#[derive(Debug, Clone, Copy)]
pub(super) struct AgentText<'t> {
    pub place: Place<'t>,
    /// The number of events that the agent could know when it wrote the text.
    pub after: usize,
    pub pointer: &'t str,
    pub text: &'t str,
}

impl AgentText<'_> {
    /// The name of the innermost field.
    pub(super) fn field(&self) -> &str {
        let is_index = |segment: &&str| segment.bytes().all(|byte| byte.is_ascii_digit());
        self.pointer.rsplit('/').find(|segment| !is_index(segment)).unwrap_or_default()
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Sender {
    /// The input of the case, or a message of the user.
    User,
    /// A tool, a retrieval, or an event of an unknown type.
    Tool,
}

#[derive(Debug, Clone, Copy)]
pub(super) struct ReceivedText<'t> {
    pub sender: Sender,
    /// 0 for the input; otherwise 1 more than the index of the event.
    pub position: usize,
    /// The pointer within the artifact; empty for the input.
    pub pointer: &'t str,
    pub text: &'t str,
}

/// Calls `take` with each text that the agent states to its user: the final output, and its messages.
pub(super) fn each_stated(loaded: &LoadedAnswer, mut take: impl FnMut(AgentText<'_>)) {
    let events = &loaded.answer.events;
    let path = &mut String::from("/final_output/content");
    let mut output = |pointer: &str, text: &str| {
        take(AgentText { place: Place::Output, after: events.len(), pointer, text });
    };
    match &loaded.answer.final_output.content {
        Content::Text(text) => output(path, text),
        Content::Json(fields) => each_field(path, fields, &mut output),
    }
    for (index, event) in events.iter().enumerate() {
        if let EventBody::Unknown { fields, .. } = &event.body
            && is_of_agent(fields)
        {
            let path = &mut format!("/events/{index}");
            each_field(path, fields, &mut |pointer, text| {
                take(AgentText { place: Place::Message, after: index, pointer, text });
            });
        }
    }
}

/// Calls `take` with each text that the agent passes to tools: first the actions, then the calls and queries.
pub(super) fn each_passed(loaded: &LoadedAnswer, mut take: impl FnMut(AgentText<'_>)) {
    let events = &loaded.answer.events;
    // The parameters of an action were decided when its first call ran.
    let mut carried_out = HashMap::new();
    for (index, event) in events.iter().enumerate() {
        if let Some(action) = event.tool_call().and_then(|call| call.action_id.as_ref()) {
            carried_out.entry(action).or_insert(index);
        }
    }
    for (index, action) in loaded.answer.proposed_actions.iter().enumerate() {
        let after = carried_out.get(&action.action_id).copied().unwrap_or(events.len());
        let place = Place::Tool(Use { tool: &action.tool_name, risk: action.risk_level });
        let path = &mut format!("/proposed_actions/{index}/params");
        each_field(path, &action.params, &mut |pointer, text| take(AgentText { place, after, pointer, text }));
    }
    for (index, event) in events.iter().enumerate() {
        match &event.body {
            EventBody::ToolCall(call) => {
                let risk = call.risk_level.unwrap_or(RiskLevel::Unknown);
                let place = Place::Tool(Use { tool: &call.tool, risk });
                let path = &mut format!("/events/{index}/args");
                let take = &mut |pointer: &str, text: &str| take(AgentText { place, after: index, pointer, text });
                each_field(path, &call.args, take);
            }
            EventBody::Retrieval(found) => {
                let pointer = &format!("/events/{index}/query");
                take(AgentText { place: Place::Query, after: index, pointer, text: &found.query });
            }
            _ => {}
        }
    }
}

/// Calls `take` with each text that the agent received in events.
pub(super) fn each_received(loaded: &LoadedAnswer, mut take: impl FnMut(ReceivedText<'_>)) {
    for (index, event) in loaded.answer.events.iter().enumerate() {
        let sender = match &event.body {
            EventBody::Unknown { fields, .. } if is_of_agent(fields) => continue,
            EventBody::Unknown { fields, .. } if role(fields) == Some("user") => Sender::User,
            EventBody::ToolCall(_) | EventBody::FinalOutput(_) => continue,
            _ => Sender::Tool,
        };
        let take = &mut |pointer: &str, text: &str| take(ReceivedText { sender, position: index + 1, pointer, text });
        let path = &mut format!("/events/{index}");
        match &event.body {
            EventBody::Unknown { fields, .. } => each_field(path, fields, take),
            EventBody::ToolResult(result) => {
                each_field(path, &result.extra, take);
                path.push_str("/payload_summary");
                each_of_payload(path, loaded.payload(index), take);
            }
            EventBody::Retrieval(found) => {
                each_field(path, &found.extra, take);
                found.doc_ids.iter().for_each(|id| take(path, id));
                path.push_str("/snippets_asset_href");
                each_of_payload(path, loaded.payload(index), take);
            }
            EventBody::ToolCall(_) | EventBody::FinalOutput(_) => {}
        }
    }
}

/// Calls `take` with each text of the input: of the cases file, and of the stored request.
pub(super) fn each_input(input: &CaseInput<'_>, mut take: impl FnMut(ReceivedText<'_>)) {
    let mut take = |_: &str, text: &str| take(ReceivedText { sender: Sender::User, position: 0, pointer: "", text });
    input.case_texts(|value| each_value(&mut String::new(), value, &mut take));
    if let Some(request) = input.request() {
        each_value(&mut String::new(), request, &mut take);
    }
}

/// The name of the tool whose result is the event at a position of [`ReceivedText`].
pub(super) fn sender_name(loaded: &LoadedAnswer, position: usize) -> String {
    let events = &loaded.answer.events;
    let named = |name: &str| crate::values::text::one_line(name, 60);
    match position.checked_sub(1).map(|index| &events[index].body) {
        None => "the input".to_owned(),
        Some(EventBody::ToolResult(result)) => match loaded.index.call(events, &result.call_id) {
            Some(call) => format!("the result of {}", named(&call.tool)),
            None => "a tool result".to_owned(),
        },
        Some(EventBody::Retrieval(_)) => "a retrieved document".to_owned(),
        Some(EventBody::Unknown { kind, .. }) => format!("an event of type {}", named(kind)),
        Some(EventBody::ToolCall(_) | EventBody::FinalOutput(_)) => "an event".to_owned(),
    }
}

fn role(fields: &Map<String, Value>) -> Option<&str> {
    fields.get("role").and_then(Value::as_str)
}

fn is_of_agent(fields: &Map<String, Value>) -> bool {
    role(fields).is_some_and(|role| AGENT_ROLES.contains(&role))
}

fn each_of_payload(path: &mut String, payload: Option<Payload<'_>>, take: &mut impl FnMut(&str, &str)) {
    match payload {
        Some(Payload::Text(text)) => take(path, text),
        Some(Payload::Object(fields)) => each_field(path, fields, take),
        Some(Payload::Other(value)) => each_value(path, value, take),
        None => {}
    }
}

fn each_field(path: &mut String, fields: &Map<String, Value>, take: &mut impl FnMut(&str, &str)) {
    let length = path.len();
    for (key, value) in fields {
        pointer::push(path, key);
        // Keys can hold data as well, such as the id of an account.
        take(path, key);
        each_value(path, value, take);
        path.truncate(length);
    }
}

fn each_value(path: &mut String, value: &Value, take: &mut impl FnMut(&str, &str)) {
    match value {
        Value::Object(fields) => each_field(path, fields, take),
        Value::Array(items) => {
            let length = path.len();
            for (index, item) in items.iter().enumerate() {
                let _ = write!(path, "/{index}");
                each_value(path, item, take);
                path.truncate(length);
            }
        }
        Value::String(text) => take(path, text),
        Value::Number(number) => {
            if number.as_u64().is_some_and(|number| number >= SEARCHED_FROM) {
                take(path, &number.to_string());
            }
        }
        Value::Bool(_) | Value::Null => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tools_with_effects_outside_are_sensitive() {
        let is = |tool, risk| is_sensitive(Use { tool, risk });
        for tool in ["send_email", "sendSms", "crm.post-message", "wire_transfer"] {
            assert!(is(tool, RiskLevel::Unknown), "{tool}");
        }
        for tool in ["get_message", "searchMail", "lookup_order", "context"] {
            assert!(!is(tool, RiskLevel::Low), "{tool}");
        }
        assert!(is("issue_refund", RiskLevel::High));
    }
}
