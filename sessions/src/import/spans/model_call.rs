//! What a span states about a model call, in the attributes of either convention.

use serde_json::{Map, Value, json};

use super::span::{Span, numbered, structured};
use crate::event::{LlmCall, LlmRequest, LlmResponse, RequestedCall, Usage};
use crate::protocol::token_count;

/// A model call, of which the messages are not yet part of a history.
pub(super) struct ModelCall {
    pub(super) call: LlmCall,
    pub(super) messages: Vec<Value>,
}

/// The conventions up to 1.36 and newer ones.
pub(super) fn gen_ai(span: &Span) -> ModelCall {
    let attributes = &span.attributes;
    let field = |names: &[&str]| names.iter().find_map(|name| attributes.get(*name));
    let text = |names: &[&str]| field(names).and_then(Value::as_str).map(str::to_owned);
    let number = |names: &[&str]| field(names).and_then(count);
    let mut messages = Vec::new();
    if let Some(instructions) = field(&["gen_ai.system_instructions"]) {
        messages.push(json!({"role": "system", "parts": structured(instructions)}));
    }
    match field(&["gen_ai.input.messages", "gen_ai.prompt"]).map(structured) {
        Some(Value::Array(input)) => messages.extend(input),
        Some(Value::Null) | None => messages.extend(older_messages(span, "gen_ai.prompt")),
        Some(text) => messages.push(json!({"role": "user", "content": text})),
    }
    let (events, choices) = event_messages(span);
    if messages.is_empty() {
        messages = events;
    }
    let mut output = match field(&["gen_ai.output.messages", "gen_ai.completion"]).map(structured) {
        Some(Value::Array(output)) => output,
        Some(Value::Null) | None => older_messages(span, "gen_ai.completion"),
        Some(text) => vec![json!({"role": "assistant", "content": text})],
    };
    if output.is_empty() {
        output = choices;
    }
    let reasons = field(&["gen_ai.response.finish_reasons"]).map(structured);
    let reason = match &reasons {
        Some(Value::Array(reasons)) => reasons.first().and_then(Value::as_str),
        reason => reason.as_ref().and_then(Value::as_str),
    };
    let usage = usage(
        number(&["gen_ai.usage.input_tokens", "gen_ai.usage.prompt_tokens"]),
        number(&["gen_ai.usage.output_tokens", "gen_ai.usage.completion_tokens"]),
        number(&["gen_ai.usage.cache_read.input_tokens", "gen_ai.usage.cache_read_input_tokens"]),
    );
    let value = |names: &[&str]| field(names).map_or(Value::Null, structured);
    let request = LlmRequest {
        api: None,
        model: text(&["gen_ai.request.model", "gen_ai.response.model"]),
        messages: json!([]),
        tools: value(&["gen_ai.tool.definitions", "llm.request.functions"]),
        temperature: value(&["gen_ai.request.temperature"]),
        max_tokens: value(&["gen_ai.request.max_tokens"]),
        body: Value::Null,
    };
    let response = response(&output, usage, reason, text(&["gen_ai.response.model"]));
    let cost = field(&["gen_ai.usage.cost"]).and_then(Value::as_f64);
    ModelCall { call: LlmCall { request, response, latency_ms: span.latency_ms(), cost }, messages }
}

pub(super) fn open_inference(span: &Span) -> ModelCall {
    let attributes = &span.attributes;
    let field = |name: &str| attributes.get(name);
    let number = |name: &str| field(name).and_then(count);
    let flat = |prefix: &str| -> Vec<Value> {
        numbered(attributes, prefix).iter().map(|fields| flat_message(fields, "message.")).collect()
    };
    let mut messages = flat("llm.input_messages");
    if messages.is_empty() {
        messages = match field("input.value").map(structured) {
            Some(Value::Object(fields)) if fields.get("messages").is_some_and(Value::is_array) => {
                fields["messages"].as_array().cloned().unwrap_or_default()
            }
            Some(Value::Array(items)) => items,
            Some(value) => vec![json!({"role": "user", "content": value})],
            None => Vec::new(),
        };
    }
    let mut output = flat("llm.output_messages");
    if output.is_empty() {
        output.extend(field("output.value").map(|value| json!({"role": "assistant", "content": value})));
    }
    let parameters = field("llm.invocation_parameters").map_or(Value::Null, structured);
    let parameter = |names: &[&str]| names.iter().find_map(|name| parameters.get(name).cloned()).unwrap_or(Value::Null);
    let tools: Vec<Value> = numbered(attributes, "llm.tools")
        .iter()
        .filter_map(|tool| tool.get("tool.json_schema").map(structured))
        .collect();
    let model = field("llm.model_name").and_then(Value::as_str).map(str::to_owned);
    let usage = usage(
        number("llm.token_count.prompt"),
        number("llm.token_count.completion"),
        number("llm.token_count.prompt_details.cache_read"),
    );
    let request = LlmRequest {
        api: None,
        model: model.clone(),
        messages: json!([]),
        tools: if tools.is_empty() { parameter(&["tools"]) } else { tools.into() },
        temperature: parameter(&["temperature"]),
        max_tokens: parameter(&["max_tokens", "max_completion_tokens"]),
        body: Value::Null,
    };
    let reason = field("llm.finish_reason").and_then(Value::as_str);
    let cost = field("llm.cost.total").and_then(Value::as_f64);
    let response = response(&output, usage, reason, model);
    ModelCall { call: LlmCall { request, response, latency_ms: span.latency_ms(), cost }, messages }
}

fn usage(prompt: Option<u64>, completion: Option<u64>, cached: Option<u64>) -> Option<Usage> {
    (prompt.is_some() || completion.is_some()).then(|| Usage::new(prompt, completion, cached))
}

fn count(value: &Value) -> Option<u64> {
    token_count(&whole_number(value)?.into())
}

/// A number, which some exporters write as text or with a fraction of zero.
pub(super) fn whole_number(value: &Value) -> Option<u64> {
    match value {
        Value::String(text) => text.parse().ok(),
        value => value.as_u64().or_else(|| {
            let number = value.as_f64().filter(|number| (0.0..9e15).contains(number) && number.fract() == 0.0)?;
            #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "the range is checked")]
            Some(number as u64)
        }),
    }
}

/// Returns the answer of a model. There is none if the span states nothing about it.
fn response(
    output: &[Value],
    usage: Option<Usage>,
    reason: Option<&str>,
    model: Option<String>,
) -> Option<LlmResponse> {
    if output.is_empty() && usage.is_none() && reason.is_none() {
        return None;
    }
    let texts: Vec<String> = output.iter().filter_map(message_text).collect();
    let stated = output.iter().find_map(|message| message.get("finish_reason")?.as_str());
    Some(LlmResponse {
        content: (!texts.is_empty()).then(|| texts.join("\n")),
        tool_calls: output.iter().flat_map(requested_calls).collect(),
        usage,
        finish_reason: reason.or(stated).map(str::to_owned),
        model,
        body: Value::Null,
    })
}

fn parts(message: &Value) -> impl Iterator<Item = &Value> {
    let parts = message.get("parts").or_else(|| message.get("content")).and_then(Value::as_array);
    parts.into_iter().flatten()
}

/// Returns the text of a message, if it has one: `parts`, or a `content` that is a text or a list.
pub(super) fn message_text(message: &Value) -> Option<String> {
    if let Some(text) = message.get("content").and_then(Value::as_str) {
        return (!text.is_empty()).then(|| text.to_owned());
    }
    let texts: Vec<&str> = parts(message)
        .filter(|part| part.get("type").is_none_or(|kind| kind == "text"))
        .filter_map(|part| part.get("content").or_else(|| part.get("text"))?.as_str())
        .collect();
    (!texts.is_empty()).then(|| texts.join("\n"))
}

/// Returns the tool calls that a message asks for: parts, or `tool_calls` as in the Chat Completions API.
pub(super) fn requested_calls(message: &Value) -> Vec<RequestedCall> {
    let of_parts = parts(message).filter(|part| part.get("type").is_some_and(|kind| kind == "tool_call"));
    let of_list = message.get("tool_calls").and_then(Value::as_array).into_iter().flatten();
    let call = |call: &Value| {
        let function = call.get("function").unwrap_or(call);
        let arguments = match function.get("arguments") {
            Some(Value::String(text)) => text.clone(),
            Some(Value::Null) | None => "{}".to_owned(),
            Some(value) => value.to_string(),
        };
        let id = call.get("id").and_then(Value::as_str).map(str::to_owned);
        Some(RequestedCall::new(id, function.get("name")?.as_str()?.to_owned(), arguments))
    };
    of_parts.chain(of_list).filter_map(call).collect()
}

/// Returns the results of tool calls in a message, by the id of the call.
pub(super) fn tool_results(message: &Value) -> Vec<(String, String)> {
    let text = |value: &Value| value.as_str().map_or_else(|| value.to_string(), str::to_owned);
    let id = message.get("tool_call_id").or_else(|| message.get("id")).and_then(Value::as_str);
    if let (Some("tool"), Some(id), Some(content)) =
        (message.get("role").and_then(Value::as_str), id, message.get("content"))
    {
        return vec![(id.to_owned(), text(content))];
    }
    let results = parts(message).filter(|part| part.get("type").is_some_and(|kind| kind == "tool_call_response"));
    let result = |part: &Value| {
        // The schema of the conventions has `response`, their examples have `result`.
        let content = part.get("response").or_else(|| part.get("result"))?;
        Some((part.get("id")?.as_str()?.to_owned(), text(content)))
    };
    results.filter_map(result).collect()
}

/// The messages of attributes such as `gen_ai.prompt.0.role`.
fn older_messages(span: &Span, prefix: &str) -> Vec<Value> {
    numbered(&span.attributes, prefix).iter().map(|fields| flat_message(fields, "")).collect()
}

/// Returns a message whose fields are attributes with a prefix.
fn flat_message(fields: &Map<String, Value>, prefix: &str) -> Value {
    let field = |name: &str| fields.get(&format!("{prefix}{name}"));
    let mut message = Map::new();
    for name in ["role", "content", "name", "tool_call_id", "finish_reason"] {
        message.extend(field(name).map(|value| (name.to_owned(), value.clone())));
    }
    let contents = numbered(fields, &format!("{prefix}contents"));
    if !contents.is_empty() {
        let part = |content: &Map<String, Value>| {
            let field = |name: &str| content.get(&format!("message_content.{name}"));
            json!({"type": field("type").unwrap_or(&Value::Null), "text": field("text").unwrap_or(&Value::Null)})
        };
        message.insert("content".to_owned(), contents.iter().map(part).collect());
    }
    let calls = numbered(fields, &format!("{prefix}tool_calls"));
    if !calls.is_empty() {
        let call = |call: &Map<String, Value>| {
            let field =
                |names: [&str; 2]| names.iter().find_map(|name| call.get(*name)).cloned().unwrap_or(Value::Null);
            let name = field(["tool_call.function.name", "name"]);
            let arguments = field(["tool_call.function.arguments", "arguments"]);
            let function = json!({"name": name, "arguments": arguments});
            json!({"id": field(["tool_call.id", "id"]), "type": "function", "function": function})
        };
        message.insert("tool_calls".to_owned(), calls.iter().map(call).collect());
    }
    Value::Object(message)
}

/// The messages of the events of conventions up to 1.36: those of the request, and the choices.
fn event_messages(span: &Span) -> (Vec<Value>, Vec<Value>) {
    let (mut messages, mut choices) = (Vec::new(), Vec::new());
    for event in &span.events {
        let fields = &event.attributes;
        // Events of whole lists of messages have the same names as the attributes.
        for (name, list) in [("gen_ai.input.messages", &mut messages), ("gen_ai.output.messages", &mut choices)] {
            if let Some(Value::Array(found)) = fields.get(name).map(structured) {
                list.extend(found);
            }
        }
        for (name, list) in [("gen_ai.prompt", &mut messages), ("gen_ai.completion", &mut choices)] {
            match fields.get(name).map(structured) {
                Some(Value::Array(found)) => list.extend(found),
                Some(value) => list.push(
                    json!({"role": if name == "gen_ai.prompt" { "user" } else { "assistant" }, "content": value}),
                ),
                None => {}
            }
        }
        if event.name == "gen_ai.choice" {
            let mut choice = match fields.get("message").map(structured) {
                Some(Value::Object(message)) => message,
                Some(content) => Map::from_iter([("content".to_owned(), content)]),
                None => fields.iter().map(|(name, value)| (name.clone(), structured(value))).collect(),
            };
            choice.extend(fields.get("finish_reason").map(|reason| ("finish_reason".to_owned(), reason.clone())));
            choices.push(Value::Object(choice));
        } else if let Some(role) = event.name.strip_prefix("gen_ai.").and_then(|name| name.strip_suffix(".message")) {
            let mut message: Map<String, Value> =
                fields.iter().map(|(name, value)| (name.clone(), structured(value))).collect();
            message.entry("role").or_insert_with(|| role.into());
            messages.push(Value::Object(message));
        }
    }
    (messages, choices)
}
