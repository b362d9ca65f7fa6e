//! Tool calls that a model asked for and that a later request answers.
//!
//! An agent runs a tool between two model calls, unseen by the proxy. The next request has its result, and so has every
//! request after that: only messages that are new in a request are read.

use std::collections::hash_map::RandomState;
use std::collections::{HashMap, HashSet, VecDeque};
use std::hash::{BuildHasher, Hash};

use jiff::Timestamp;
use serde::Deserialize;
use serde_json::Value;
use serde_json::value::RawValue;

use super::response::calls_of;
use super::shell_commands::{ShellOutput, shell_command, shell_output};
use crate::event::{Api, Command, EventBody, RequestedCall, RequestedFunction, SessionEvent, ToolCall, ToolResult};
use crate::message::content_text;

/// Calls that wait for an answer. The oldest are forgotten: an agent that was interrupted never answers them.
const MAX_WAITING: usize = 4096;
/// Bytes of arguments that are held for them.
const MAX_WAITING_BYTES: usize = 32 << 20;
/// Digests of messages and of ids. Beyond it they are forgotten, and messages are read again.
const MAX_SEEN: usize = 1 << 16;

/// Follows the tool calls of one session.
#[derive(Debug)]
pub struct AnsweredCalls {
    session: String,
    /// In the order in which the model asked.
    waiting: VecDeque<WaitingCall>,
    waiting_bytes: usize,
    /// How often an id was used. Some servers count from 0 in each answer.
    used: HashMap<u64, u32>,
    /// Messages of earlier requests, each with its position.
    seen: HashSet<u64>,
    hashes: RandomState,
}

#[derive(Debug)]
struct WaitingCall {
    id: String,
    function: RequestedFunction,
    /// Unique in the session.
    key: String,
    /// When the model asked, which is the earliest time that it can have begun.
    asked_at: Timestamp,
}

#[derive(Deserialize)]
struct Messages<'a> {
    #[serde(borrow)]
    messages: Vec<&'a RawValue>,
}

#[derive(Deserialize)]
struct Input<'a> {
    #[serde(borrow)]
    input: Vec<&'a RawValue>,
}

impl AnsweredCalls {
    pub fn new(session: &str) -> Self {
        Self {
            session: session.to_owned(),
            waiting: VecDeque::new(),
            waiting_bytes: 0,
            used: HashMap::new(),
            seen: HashSet::new(),
            hashes: RandomState::new(),
        }
    }

    /// Reads the calls that a response asks for, which ended at a time.
    pub fn asked(&mut self, calls: &[RequestedCall], asked_at: Timestamp) {
        for call in calls {
            let Some(id) = &call.id else { continue };
            // A request that was sent again is answered again.
            if self.waiting.iter().any(|waiting| waiting.id == *id && waiting.function == call.function) {
                continue;
            }
            if self.used.len() == MAX_SEEN {
                self.used.clear();
            }
            let uses = self.used.entry(self.hashes.hash_one(id)).or_default();
            *uses += 1;
            let key = match uses {
                1 => format!("{}/{id}", self.session),
                uses => format!("{}/{id}#{uses}", self.session),
            };
            self.waiting_bytes += call.function.arguments.len();
            self.waiting.push_back(WaitingCall { id: id.clone(), function: call.function.clone(), key, asked_at });
            while self.waiting.len() > MAX_WAITING || self.waiting_bytes > MAX_WAITING_BYTES {
                self.take(0);
            }
        }
    }

    /// Returns the records of the calls that a request answers, for the first time.
    pub fn answered(&mut self, api: Api, body: &[u8]) -> Vec<SessionEvent> {
        // A body of another form answers no call.
        let messages = match api {
            Api::OpenaiChat | Api::AnthropicMessages => {
                serde_json::from_slice::<Messages<'_>>(body).map(|body| body.messages)
            }
            Api::OpenaiResponses => serde_json::from_slice::<Input<'_>>(body).map(|body| body.input),
        };
        let new = self.new_messages(&messages.unwrap_or_default());
        if self.waiting.is_empty() {
            return Vec::new();
        }
        let new: Vec<Value> = new.iter().filter_map(|message| serde_json::from_str(message.get()).ok()).collect();
        let (mut answers, mut stated) = (Vec::new(), HashMap::new());
        for message in &new {
            for call in calls_of(api, message) {
                if let Some(id) = call.id {
                    stated.insert(id, call.function);
                }
            }
            answers.extend(answers_of(api, message).into_iter().map(|answer| {
                let stated = stated.get(answer.call_id).cloned();
                (answer, stated)
            }));
        }
        // The newest first: after a compaction, the answer to an earlier call with the same id is in the history too.
        let mut found: Vec<_> = Vec::new();
        for (answer, stated) in answers.into_iter().rev() {
            if let Some(call) = self.take_answered(answer.call_id, stated.as_ref()) {
                found.push(records(call, &answer));
            }
        }
        found.into_iter().rev().flatten().collect()
    }

    /// Returns the messages that no earlier request had at the same position. From the end, as a history only grows; two
    /// known messages in a row end the search, since a single one can be equal by chance.
    fn new_messages<'a>(&mut self, messages: &[&'a RawValue]) -> Vec<&'a RawValue> {
        if self.seen.len() + messages.len() > MAX_SEEN {
            self.seen.clear();
        }
        let (mut new, mut known) = (Vec::new(), 0);
        for (position, message) in messages.iter().enumerate().rev() {
            let is_new = self.seen.insert(self.hashes.hash_one(Seen { position, message: message.get() }));
            if is_new {
                new.push(*message);
                known = 0;
            } else {
                known += 1;
            }
            if known == 2 {
                break;
            }
        }
        new.reverse();
        new
    }

    /// Takes the call that an answer belongs to. If several with one id wait, the history states which one it is.
    fn take_answered(&mut self, id: &str, stated: Option<&RequestedFunction>) -> Option<WaitingCall> {
        let named = |call: &WaitingCall| call.id == id;
        let is_stated = |call: &WaitingCall| named(call) && stated.is_some_and(|it| is_same(it, &call.function));
        let position = self.waiting.iter().rposition(is_stated).or_else(|| self.waiting.iter().rposition(named))?;
        self.take(position)
    }

    fn take(&mut self, position: usize) -> Option<WaitingCall> {
        let call = self.waiting.remove(position)?;
        self.waiting_bytes -= call.function.arguments.len();
        Some(call)
    }
}

#[derive(Hash)]
struct Seen<'a> {
    position: usize,
    message: &'a str,
}

/// True if both are the same call. An agent may write its arguments in another form.
fn is_same(left: &RequestedFunction, right: &RequestedFunction) -> bool {
    let parsed = |text: &str| serde_json::from_str::<Value>(text).ok();
    left.name == right.name
        && (left.arguments == right.arguments || parsed(&left.arguments) == parsed(&right.arguments))
}

/// The result of a call, as the model is given it.
struct Answer<'a> {
    call_id: &'a str,
    content: String,
    is_error: bool,
}

fn answers_of(api: Api, message: &Value) -> Vec<Answer<'_>> {
    match api {
        Api::OpenaiChat => {
            let id = if message["role"] == "tool" { message["tool_call_id"].as_str() } else { None };
            let answer = id.map(|call_id| {
                let content = content_text(&message["content"]);
                Answer { call_id, content, is_error: false }
            });
            answer.into_iter().collect()
        }
        Api::AnthropicMessages => {
            let blocks = message["content"].as_array().into_iter().flatten();
            let results = blocks.filter(|block| block["type"] == "tool_result").filter_map(|block| {
                let content = content_text(&block["content"]);
                Some(Answer { call_id: block["tool_use_id"].as_str()?, content, is_error: block["is_error"] == true })
            });
            results.collect()
        }
        Api::OpenaiResponses => item_answer(message).into_iter().collect(),
    }
}

fn item_answer(item: &Value) -> Option<Answer<'_>> {
    if !item["type"].as_str()?.ends_with("_call_output") {
        return None;
    }
    // `local_shell_call_output` names its call in `id`.
    let call_id = item["call_id"].as_str().or_else(|| item["id"].as_str())?;
    let output = &item["output"];
    Some(Answer { call_id, content: output_text(output), is_error: output["success"] == false })
}

/// Returns the text of an `output` of the Responses API.
pub fn output_text(output: &Value) -> String {
    match output {
        // The form of older versions of Codex.
        Value::Object(fields) => match fields.get("content").or_else(|| fields.get("output")) {
            Some(content @ (Value::String(_) | Value::Array(_))) => content_text(content),
            _ => output.to_string(),
        },
        output => shell_streams(output).unwrap_or_else(|| content_text(output)),
    }
}

/// Returns the texts of a `shell_call_output`.
fn shell_streams(output: &Value) -> Option<String> {
    let mut lines = Vec::new();
    for part in output.as_array()? {
        let streams = ["stdout", "stderr"].iter().filter_map(|stream| part[*stream].as_str());
        lines.extend(streams.filter(|text| !text.is_empty()).map(|text| text.trim_end_matches('\n').to_owned()));
        lines.extend(part["outcome"]["exit_code"].as_i64().map(|code| format!("exit code {code}")));
    }
    (!lines.is_empty()).then(|| lines.join("\n"))
}

/// Returns the record of a call, and that of its command if it ran one.
fn records(call: WaitingCall, answer: &Answer<'_>) -> Vec<SessionEvent> {
    let WaitingCall { id, function: RequestedFunction { name, arguments }, key, asked_at } = call;
    let arguments = match serde_json::from_str(&arguments) {
        Ok(arguments) => arguments,
        // A tool without parameters.
        Err(_) if arguments.trim().is_empty() => Value::Object(serde_json::Map::new()),
        Err(_) => Value::String(arguments),
    };
    let content = answer.content.clone();
    let command = shell_command(&name, &arguments, None);
    let output = if command.is_some() { shell_output(&content) } else { ShellOutput::default() };
    let (latency_ms, truncated) = (output.latency_ms, Some(output.is_truncated));
    let command = command.map(|command| {
        let ShellOutput { exit_code, stdout, stderr, .. } = output;
        let call_id = Some(id.clone());
        EventBody::Command(Command { exit_code, stdout, stderr, latency_ms, call_id, ..command })
    });
    let error = answer.is_error.then(|| content.clone());
    let result =
        ToolResult { success: Some(!answer.is_error), error, content: Some(content), truncated, sandbox: None };
    let call = ToolCall { tool_name: name, arguments, result, latency_ms, call_id: Some(id), decision: None };
    let mut events = vec![SessionEvent::reconstructed(&key, asked_at, EventBody::ToolCall(call))];
    events.extend(command.map(|body| SessionEvent::reconstructed(&format!("{key}/command"), asked_at, body)));
    events
}

#[cfg(test)]
#[path = "answered_calls_tests.rs"]
mod tests;
