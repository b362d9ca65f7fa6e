//! Builds an artifact from the parts of an answer: its tool calls, their results, its texts and its time. All protocols but the
//! native one use it.

use std::collections::HashSet;
use std::time::Duration;

use counterproof_artifact::{Case, Count};
use serde_json::{Map, Value, json};

use super::AnswerContext;
use super::native::{self, bounded, kind_of};
use super::protocol::{Protocol, RiskTable};
use crate::environment::whole_millis;
use crate::failure::{Fault, Reason, Violation};

/// The field in `params` and `args` for arguments that are not a JSON object.
pub(super) const RAW_ARGUMENTS: &str = "raw_arguments";

/// Item fields that are random in every answer. In an event they would make equal answers differ.
const OPAQUE: [&str; 2] = ["id", "encrypted_content"];

/// The maximum timestamp in seconds: the end of the year 9999.
const LATEST_SECONDS: f64 = 253_402_300_799.0;

/// A tool call as in the answer.
#[derive(Debug, Clone, Copy)]
pub(super) struct ToolCall<'a> {
    /// The JSON Pointer into the answer.
    pub(super) pointer: &'a str,
    pub(super) call_id: Option<&'a str>,
    pub(super) tool: &'a Value,
    /// Usually a string that contains JSON.
    pub(super) arguments: &'a Value,
}

/// Who executes a tool call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ExecutedBy {
    /// The caller of the agent: the call is a proposed action.
    Caller,
    /// The server, which has already executed it.
    Server,
}

/// The result of a tool call.
#[derive(Debug, Default)]
pub(super) struct ToolResult {
    pub(super) is_error: bool,
    pub(super) latency_ms: u64,
    /// A text or an object.
    pub(super) payload: Option<Value>,
}

pub(super) struct Builder<'a> {
    context: AnswerContext<'a>,
    risk: &'a RiskTable,
    ts: Value,
    actions: Vec<Value>,
    events: Vec<Value>,
    call_ids: HashSet<String>,
    latest_call: Option<String>,
    /// The calls whose results were added. They are the evidence of later actions.
    results: Vec<String>,
}

impl<'a> Builder<'a> {
    /// Creates a builder. `created` is the time of the answer in seconds; without it, the time of receipt is used.
    pub(super) fn new(context: AnswerContext<'a>, risk: &'a RiskTable, created: Option<&Value>) -> Self {
        // Zero is not the time of an answer, and a number after the year 9999 is not in seconds.
        let created = created.and_then(Value::as_f64).filter(|seconds| (1.0..=LATEST_SECONDS).contains(seconds));
        let ts = match created {
            Some(seconds) => json!(whole_millis(Duration::from_secs_f64(seconds))),
            None => json!(context.received.as_millisecond()),
        };
        Self {
            context,
            risk,
            ts,
            actions: Vec::new(),
            events: Vec::new(),
            call_ids: HashSet::new(),
            latest_call: None,
            results: Vec::new(),
        }
    }

    /// Sets the time of the following events, in milliseconds. Values of another kind are ignored.
    pub(super) fn at(&mut self, millis: &Value) {
        if millis.is_u64() {
            self.ts = millis.clone();
        }
    }

    /// Returns the id of the latest call.
    pub(super) fn latest_call(&self) -> Option<&str> {
        self.latest_call.as_deref()
    }

    /// Adds the result of a call that the agent executed: a text or an object.
    pub(super) fn result(&mut self, call_id: &str, result: ToolResult) {
        let mut event = json!({"type": "tool_result", "ts": self.ts, "call_id": call_id});
        if self.actions.iter().any(|action| action["action_id"] == call_id) {
            event["action_id"] = call_id.into();
        }
        event["status"] = if result.is_error { "error" } else { "ok" }.into();
        event["latency_ms"] = result.latency_ms.into();
        if let Some(payload) = result.payload {
            event["payload_summary"] = payload;
        }
        self.events.push(event);
        self.results.push(call_id.to_owned());
    }

    /// Adds the documents that the agent retrieved.
    pub(super) fn documents(&mut self, ids: &[Value]) {
        if !ids.is_empty() {
            self.events.push(json!({"type": "retrieval", "ts": self.ts, "query": "", "doc_ids": ids}));
        }
    }

    /// Adds a proposed action.
    pub(super) fn action(&mut self, id: &str, tool: &str, params: &Value) {
        let action = self.action_document(id, tool, params);
        self.actions.push(action);
    }

    /// Returns a proposed action. Its evidence are the results so far.
    fn action_document(&self, id: &str, tool: &str, params: &Value) -> Value {
        let evidence: Vec<_> =
            self.results.iter().map(|call_id| json!({"kind": "tool_result", "call_id": call_id})).collect();
        json!({
            "action_id": id, "action_type": tool, "tool_name": tool, "params": params,
            "risk_level": self.risk.level(tool), "risk_tags": [], "evidence_refs": evidence,
        })
    }

    /// Adds a text of the agent that is not its final output.
    pub(super) fn message(&mut self, text: &str) {
        self.events.push(json!({"type": "assistant_message", "ts": self.ts, "content": text}));
    }

    /// Adds a tool call, and the action that it proposes.
    pub(super) fn call(
        &mut self,
        call: ToolCall<'_>,
        executed_by: ExecutedBy,
        extra_fields: Map<String, Value>,
    ) -> Result<(), Fault> {
        let tool = match call.tool {
            Value::String(name) if !name.is_empty() => name,
            other => return Err(unreadable(&format!("{}/name", call.pointer), other, "the name of a tool")),
        };
        let call_id = self.unique_id(call.call_id);
        let (args, is_object) = arguments(call.arguments);
        self.latest_call = Some(call_id.clone());
        let mut event = json!({"type": "tool_call", "ts": self.ts, "call_id": call_id});
        let mut action = self.action_document(&call_id, tool, &args);
        if executed_by == ExecutedBy::Caller {
            event["action_id"] = call_id.into();
        }
        event["tool"] = tool.as_str().into();
        event["args"] = args;
        event["risk_level"] = action["risk_level"].clone();
        if !is_object {
            action["arguments_are_an_object"] = false.into();
            event["arguments_are_an_object"] = false.into();
        }
        for (field, value) in extra_fields {
            // A field of the contract wins over a field of the server with the same name.
            if event.get(&field).is_none() {
                event[field] = value;
            }
        }
        if executed_by == ExecutedBy::Caller {
            self.actions.push(action);
        }
        self.events.push(event);
        Ok(())
    }

    /// Adds an event for an item that the contract has no type for, without its [`OPAQUE`] fields.
    pub(super) fn other(&mut self, kind: &str, item: &Value) {
        let mut item = item.clone();
        if let Value::Object(fields) = &mut item {
            fields.retain(|field, _| !OPAQUE.contains(&field.as_str()));
        }
        self.events.push(json!({"type": kind, "ts": self.ts, "item": item}));
    }

    /// Returns the artifact. The additional fields follow the fields of the contract.
    pub(super) fn finish(
        mut self,
        protocol: Protocol,
        output: Value,
        extra_fields: Map<String, Value>,
    ) -> Result<Case, Fault> {
        // An answer that only calls tools has no final output.
        if output["content"] != "" {
            let (kind, content) = (&output["content_type"], &output["content"]);
            let event = json!({"type": "final_output", "ts": self.ts, "content_type": kind, "content": content});
            self.events.push(event);
        }
        let mut document = native::envelope(self.context);
        document.insert("proposed_actions".to_owned(), self.actions.into());
        document.insert("events".to_owned(), self.events.into());
        document.insert("final_output".to_owned(), output);
        document.insert("protocol".to_owned(), protocol.as_str().into());
        document.extend(extra_fields);
        native::artifact(document)
    }

    /// Returns a unique call id. A missing or repeated id is replaced by a number.
    fn unique_id(&mut self, original: Option<&str>) -> String {
        let numbers = (self.call_ids.len() + 1..).map(|number| format!("call_{number}"));
        let candidates = original.filter(|id| !id.is_empty()).map(str::to_owned).into_iter().chain(numbers);
        for candidate in candidates {
            // An agent can use `call_1` as an id too, so a number may be taken.
            if self.call_ids.insert(candidate.clone()) {
                return candidate;
            }
        }
        String::new()
    }
}

/// Returns the arguments as an object, and whether they were one. Other values are stored under [`RAW_ARGUMENTS`].
pub(super) fn arguments(value: &Value) -> (Value, bool) {
    match value {
        // Servers encode missing arguments as null or as an empty string.
        Value::Null => (json!({}), true),
        Value::String(text) if text.trim().is_empty() => (json!({}), true),
        Value::Object(_) => (value.clone(), true),
        Value::String(text) => match serde_json::from_str(text) {
            Ok(Value::Object(fields)) => (Value::Object(fields), true),
            _ => (json!({RAW_ARGUMENTS: text}), false),
        },
        other => (json!({RAW_ARGUMENTS: other}), false),
    }
}

/// The output format that the request asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum OutputFormat {
    Json,
    Text,
}

impl OutputFormat {
    /// Reads the `type` of a response format.
    pub(super) fn from_type(format: Option<&str>) -> Self {
        if matches!(format, Some("json_object" | "json_schema")) { Self::Json } else { Self::Text }
    }
}

/// Returns the final output: JSON if the request asked for it and the answer is an object, text otherwise.
pub(super) fn output(text: &str, format: OutputFormat) -> Value {
    if format == OutputFormat::Json
        && let Ok(content @ Value::Object(_)) = serde_json::from_str(text)
    {
        return json!({"content_type": "json", "content": content});
    }
    json!({"content_type": "text", "content": text})
}

/// Rejects an error object that was sent with a successful status.
pub(super) fn reject_errors(fields: &Map<String, Value>) -> Result<(), Fault> {
    match fields.get("error") {
        None | Some(Value::Null) => Ok(()),
        Some(_) => Err(Fault::new(Reason::AgentError, "the agent answered with an error object")),
    }
}

/// Copies the named fields that are not null, under new names.
pub(super) fn copy_fields(fields: &Map<String, Value>, names: &[(&str, &str)]) -> Map<String, Value> {
    let present =
        names.iter().filter_map(|(name, new_name)| Some(((*new_name).to_owned(), fields.get(*name)?.clone())));
    present.filter(|(_, value)| !value.is_null()).collect()
}

/// Returns the fault of a value that does not match the protocol.
pub(super) fn unreadable(pointer: &str, found: &Value, expected: &str) -> Fault {
    let message = format!("`{}` does not match the protocol", bounded(pointer));
    let violation = Violation {
        code: Reason::ProtocolViolated.name(),
        pointer: pointer.to_owned(),
        message: if found.is_null() { "is missing or null".to_owned() } else { format!("is {}", kind_of(found)) },
        expected: expected.to_owned(),
    };
    Fault { violations: vec![violation], ..Fault::new(Reason::ProtocolViolated, message) }
}

/// The field of the artifact for usage in the form of the contract.
const USAGE: &str = "usage";

/// The field of the artifact for reported usage that does not have the form of the contract, unchanged.
const REPORTED_USAGE: &str = "reported_usage";

/// The token counts of the contract, and where the OpenAI protocols report them. The first location with a count is used.
const OPENAI_COUNTS: [(&str, &[&str]); 3] = [
    ("input_tokens", &["/input_tokens", "/prompt_tokens"]),
    ("output_tokens", &["/output_tokens", "/completion_tokens"]),
    (
        "cached_tokens",
        &["/cached_tokens", "/input_tokens_details/cached_tokens", "/prompt_tokens_details/cached_tokens"],
    ),
];

/// Converts the `usage` of an OpenAI answer to the form of the contract, followed by the other fields of the server.
pub(super) fn from_openai(fields: &Map<String, Value>) -> Map<String, Value> {
    // A field with the name but not the type of the contract would make the artifact invalid, so the reported usage is
    // stored a second time, unchanged.
    let mut converted = Map::new();
    let Some(reported) = fields.get(USAGE).filter(|usage| !usage.is_null()) else { return converted };
    let mut usage = Map::new();
    for (name, pointers) in OPENAI_COUNTS {
        let counts = pointers.iter().filter_map(|pointer| reported.pointer(pointer));
        usage.extend(counts.filter(|value| fits(name, value)).take(1).map(|count| (name.to_owned(), count.clone())));
    }
    for (name, value) in reported.as_object().into_iter().flatten() {
        if fits(name, value) && !usage.contains_key(name) {
            usage.insert(name.clone(), value.clone());
        }
    }
    if !usage.is_empty() {
        converted.insert(USAGE.to_owned(), usage.into());
    }
    if !is_valid(reported) {
        converted.insert(REPORTED_USAGE.to_owned(), reported.clone());
    }
    converted
}

/// True for usage in the form of the contract.
pub(super) fn is_valid(usage: &Value) -> bool {
    usage.as_object().is_some_and(|fields| fields.iter().all(|(name, value)| fits(name, value)))
}

/// True for a field with the type that the contract requires for its name. Fields with other names can have any type.
fn fits(name: &str, value: &Value) -> bool {
    match name {
        "input_tokens" | "output_tokens" | "cached_tokens" => serde_json::from_value::<Count>(value.clone()).is_ok(),
        "cost" => value.as_f64().is_some_and(|cost| cost >= 0.0),
        "currency" => value.is_string(),
        _ => true,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn arguments_that_are_not_an_object_are_stored_unchanged() {
        assert_eq!(arguments(&json!("{\"a\": 1}")), (json!({"a": 1}), true));
        assert_eq!(arguments(&json!({"a": 1})), (json!({"a": 1}), true));
        assert_eq!(arguments(&json!(" ")), (json!({}), true));
        assert_eq!(arguments(&json!("{\"a\": ")), (json!({"raw_arguments": "{\"a\": "}), false));
        assert_eq!(arguments(&json!("[1]")), (json!({"raw_arguments": "[1]"}), false));
        assert_eq!(arguments(&json!([1])), (json!({"raw_arguments": [1]}), false));
    }

    #[test]
    fn output_is_json_only_if_the_request_asked_for_it() {
        assert_eq!(output("{\"a\": 1}", OutputFormat::Json)["content_type"], "json");
        assert_eq!(output("{\"a\": 1}", OutputFormat::Text)["content_type"], "text");
        assert_eq!(output("[1]", OutputFormat::Json)["content_type"], "text");
    }

    fn convert(usage: Value) -> Value {
        from_openai(&Map::from_iter([(USAGE.to_owned(), usage)])).into()
    }

    #[test]
    fn chat_and_responses_report_the_same_counts_under_different_names() {
        let details = json!({"cached_tokens": 64});
        let chat = json!({"prompt_tokens": 100, "completion_tokens": 7, "total_tokens": 107, "prompt_tokens_details": details});
        let responses = json!({"input_tokens": 100, "output_tokens": 7, "input_tokens_details": details});
        for reported in [chat, responses] {
            let usage = &convert(reported.clone())[USAGE];
            assert_eq!(
                (&usage["input_tokens"], &usage["output_tokens"], &usage["cached_tokens"]),
                (&json!(100), &json!(7), &json!(64)),
                "{reported}"
            );
            let kept = reported.as_object().unwrap().iter().all(|(name, value)| &usage[name] == value);
            assert!(kept, "the fields of the server are kept: {usage}");
        }
    }

    #[test]
    fn a_cost_is_taken_from_the_server() {
        assert_eq!(convert(json!({"cost": 0.25})), json!({"usage": {"cost": 0.25}}));
        assert_eq!(
            convert(json!({"prompt_tokens": 1, "cost": "free"})),
            json!({"usage": {"input_tokens": 1, "prompt_tokens": 1}, "reported_usage": {"prompt_tokens": 1, "cost": "free"}})
        );
    }

    #[test]
    fn usage_in_another_form_is_stored_unchanged() {
        for reported in [json!("12 tokens"), json!({"input_tokens": -1}), json!({"cost": -0.5})] {
            assert_eq!(convert(reported.clone()), json!({"reported_usage": reported}));
        }
        assert_eq!(convert(Value::Null), json!({}));
        assert_eq!(
            convert(json!({"prompt_tokens": null, "completion_tokens": 2})),
            json!({"usage": {"output_tokens": 2, "prompt_tokens": null, "completion_tokens": 2}})
        );
    }
}
