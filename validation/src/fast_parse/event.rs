//! Fast path for events. The type of an event may come after the fields that depend on it, so all fields are read first.

use std::borrow::Cow;

use serde::de::{DeserializeSeed, Deserializer};
use serde_json::{Map, Value};

use super::fields::{self, FieldsSeed, required};
use crate::parse::ParseBuffers;
use counterproof_artifact::{
    Event, EventBody, Extra, FinalOutputEvent, Href, Millis, Retrieval, ToolCall, ToolResult, ToolStatus,
};

type Fields<'de> = Vec<(Cow<'de, str>, Value)>;

#[derive(Clone, Copy)]
pub(super) struct EventSeed<'g>(pub(super) &'g ParseBuffers);

impl<'de> DeserializeSeed<'de> for EventSeed<'_> {
    type Value = Event;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Event, D::Error> {
        required(event(FieldsSeed(self.0).deserialize(deserializer)?))
    }
}

fn event(mut fields: Fields<'_>) -> Option<Event> {
    let kind = take(&mut fields, "type").and_then(text)?;
    let Value::Number(ts) = take(&mut fields, "ts")? else { return None };
    let body = match kind.as_str() {
        "tool_call" => EventBody::ToolCall(tool_call(fields)?),
        "tool_result" => EventBody::ToolResult(tool_result(fields)?),
        "retrieval" => EventBody::Retrieval(retrieval(fields)?),
        "final_output" => EventBody::FinalOutput(final_output(fields)?),
        _ => EventBody::Unknown { kind, fields: others(fields).map(|(name, value)| (name.into(), value)).collect() },
    };
    Some(Event { ts: Millis::from(ts), body })
}

fn take(fields: &mut Fields<'_>, name: &str) -> Option<Value> {
    let (_, value) = fields.iter_mut().find(|(known, _)| known == name)?;
    Some(std::mem::take(value))
}

/// Returns the fields that are specific to the type of the event.
fn others(fields: Fields<'_>) -> impl Iterator<Item = (Cow<'_, str>, Value)> {
    fields.into_iter().filter(|(name, _)| !matches!(&**name, "type" | "ts"))
}

fn tool_call(fields: Fields<'_>) -> Option<ToolCall> {
    let (mut call_id, mut action_id, mut tool, mut args, mut extra) = (None, None, None, None, Extra::new());
    let (mut risk_level, mut risk_tags, mut annotations) = (None, None, None);
    for (name, value) in others(fields) {
        match &*name {
            "call_id" => call_id = Some(text(value)?),
            "action_id" => action_id = Some(text(value)?),
            "tool" => tool = Some(text(value)?),
            "args" => args = Some(object(value)?),
            "risk_level" => risk_level = Some(fields::risk(value.as_str()?)?),
            "risk_tags" => risk_tags = Some(texts(value)?),
            "annotations" => annotations = Some(object(value)?),
            _ => drop(extra.insert(name.into(), value)),
        }
    }
    Some(ToolCall { call_id: call_id?, action_id, tool: tool?, args: args?, risk_level, risk_tags, annotations, extra })
}

fn tool_result(fields: Fields<'_>) -> Option<ToolResult> {
    let (mut call_id, mut action_id, mut status, mut latency, mut extra) = (None, None, None, None, Extra::new());
    let (mut payload_summary, mut payload_asset_href, mut payload_asset_sha256) = (None, None, None);
    for (name, value) in others(fields) {
        match &*name {
            "call_id" => call_id = Some(text(value)?),
            "action_id" => action_id = Some(text(value)?),
            "status" => status = Some(tool_status(value.as_str()?)?),
            "latency_ms" => latency = Some(millis(value)?),
            "payload_summary" => payload_summary = Some(fields::content(value)?),
            "payload_asset_href" => payload_asset_href = Some(href(value)?),
            "payload_asset_sha256" => payload_asset_sha256 = Some(value.as_str()?.parse().ok()?),
            _ => drop(extra.insert(name.into(), value)),
        }
    }
    Some(ToolResult {
        call_id: call_id?,
        action_id,
        status: status?,
        latency_ms: latency?,
        payload_summary,
        payload_asset_href,
        payload_asset_sha256,
        extra,
    })
}

fn retrieval(fields: Fields<'_>) -> Option<Retrieval> {
    let (mut query, mut doc_ids, mut extra) = (None, None, Extra::new());
    let (mut snippets_hashes, mut snippets_asset_href) = (None, None);
    for (name, value) in others(fields) {
        match &*name {
            "query" => query = Some(text(value)?),
            "doc_ids" => doc_ids = Some(texts(value)?),
            "snippets_hashes" => snippets_hashes = Some(texts(value)?),
            "snippets_asset_href" => snippets_asset_href = Some(href(value)?),
            _ => drop(extra.insert(name.into(), value)),
        }
    }
    Some(Retrieval { query: query?, doc_ids: doc_ids?, snippets_hashes, snippets_asset_href, extra })
}

fn final_output(fields: Fields<'_>) -> Option<FinalOutputEvent> {
    let (mut content_type, mut content, mut extra) = (None, None, Extra::new());
    for (name, value) in others(fields) {
        match &*name {
            "content_type" => content_type = Some(fields::content_type(value.as_str()?)?),
            "content" => content = Some(fields::content(value)?),
            _ => drop(extra.insert(name.into(), value)),
        }
    }
    Some(FinalOutputEvent { content_type: content_type?, content: content?, extra })
}

fn text(value: Value) -> Option<String> {
    match value {
        Value::String(text) => Some(text),
        _ => None,
    }
}

fn texts(value: Value) -> Option<Vec<String>> {
    match value {
        Value::Array(items) => items.into_iter().map(text).collect(),
        _ => None,
    }
}

fn object(value: Value) -> Option<Map<String, Value>> {
    match value {
        Value::Object(fields) => Some(fields),
        _ => None,
    }
}

fn millis(value: Value) -> Option<Millis> {
    match value {
        Value::Number(number) => Some(number.into()),
        _ => None,
    }
}

fn href(value: Value) -> Option<Href> {
    text(value)?.try_into().ok()
}

fn tool_status(word: &str) -> Option<ToolStatus> {
    match word {
        "ok" => Some(ToolStatus::Ok),
        "error" => Some(ToolStatus::Error),
        _ => None,
    }
}
