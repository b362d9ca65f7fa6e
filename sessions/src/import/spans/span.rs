//! Spans of traces, in the JSON of OTLP and in that of exporters that write plain objects.

use std::collections::BTreeMap;

use jiff::Timestamp;
use serde_json::{Map, Value};

use crate::import::imported::{time, time_from_nanoseconds};

/// A span with its attributes as plain values.
#[derive(Debug)]
pub(super) struct Span {
    pub(super) trace_id: String,
    pub(super) span_id: String,
    pub(super) is_root: bool,
    pub(super) name: String,
    pub(super) start: Option<Timestamp>,
    pub(super) end: Option<Timestamp>,
    pub(super) attributes: Map<String, Value>,
    pub(super) events: Vec<SpanEvent>,
    /// The message of a status that is an error.
    pub(super) failure: Option<String>,
    /// The span as it was read.
    pub(super) source: Value,
}

#[derive(Debug)]
pub(super) struct SpanEvent {
    pub(super) name: String,
    pub(super) attributes: Map<String, Value>,
}

/// Whether a value looks like a span that is not within the document of an exporter.
pub(in crate::import) fn is_span(value: &Value) -> bool {
    let has = |name: &str| value.get(name).is_some();
    has("attributes") && (has("traceId") || has("trace_id") || value.pointer("/context/trace_id").is_some())
}

/// Returns the spans of a document, or the document if there are none.
pub(super) fn spans_of(document: Value) -> Result<Vec<Value>, Value> {
    if is_span(&document) {
        return Ok(vec![document]);
    }
    match document {
        Value::Array(items) if items.iter().all(|item| is_span(item) || resource_spans(item).is_some()) => {
            Ok(items.into_iter().flat_map(|item| spans_of(item).unwrap_or_default()).collect())
        }
        document => match resource_spans(&document) {
            Some(resources) => {
                let field = |value: &Value, names: &[&str]| {
                    names.iter().find_map(|name| value.get(name)?.as_array().cloned()).unwrap_or_default()
                };
                let scopes = resources.iter().flat_map(|resource| {
                    field(resource, &["scopeSpans", "scope_spans", "instrumentationLibrarySpans"])
                });
                Ok(scopes.flat_map(|scope| field(&scope, &["spans"])).collect())
            }
            None => Err(document),
        },
    }
}

fn resource_spans(value: &Value) -> Option<&Vec<Value>> {
    value.get("resourceSpans").or_else(|| value.get("resource_spans"))?.as_array()
}

impl Span {
    pub(super) fn new(source: Value) -> Option<Self> {
        let id = |names: [&str; 3]| {
            let found = names.iter().find_map(|name| source.pointer(name)?.as_str())?;
            let id = found.strip_prefix("0x").unwrap_or(found).to_ascii_lowercase();
            (!id.is_empty()).then_some(id)
        };
        let trace_id = id(["/traceId", "/trace_id", "/context/trace_id"])?;
        let span_id = id(["/spanId", "/span_id", "/context/span_id"])?;
        let field = |names: &[&str]| names.iter().find_map(|name| source.get(name));
        let events = field(&["events"]).and_then(Value::as_array).into_iter().flatten();
        let events = events.map(|event| SpanEvent {
            name: event.get("name").and_then(Value::as_str).unwrap_or_default().to_owned(),
            attributes: attributes(event.get("attributes")),
        });
        let status = field(&["status"]);
        let code = status.and_then(|status| status.get("code").or_else(|| status.get("status_code")));
        let is_failure = code.is_some_and(|code| {
            code.as_u64() == Some(2) || code.as_str().is_some_and(|code| code.ends_with("ERROR") || code == "2")
        });
        let message = status.and_then(|status| status.get("message").or_else(|| status.get("description"))?.as_str());
        Some(Self {
            is_root: id(["/parentSpanId", "/parent_id", "/parent_span_id"]).is_none(),
            name: field(&["name"]).and_then(Value::as_str).unwrap_or_default().to_owned(),
            start: field(&["startTimeUnixNano", "start_time_unix_nano", "start_time", "startTime"]).and_then(span_time),
            end: field(&["endTimeUnixNano", "end_time_unix_nano", "end_time", "endTime"]).and_then(span_time),
            attributes: attributes(field(&["attributes"])),
            events: events.collect(),
            failure: is_failure.then(|| message.unwrap_or_default().to_owned()),
            trace_id,
            span_id,
            source,
        })
    }

    pub(super) fn text(&self, name: &str) -> Option<&str> {
        self.attributes.get(name)?.as_str().filter(|text| !text.is_empty())
    }

    pub(super) fn latency_ms(&self) -> Option<u64> {
        let milliseconds = self.end?.as_millisecond().checked_sub(self.start?.as_millisecond())?;
        u64::try_from(milliseconds).ok()
    }
}

/// Reads nanoseconds as a number or text, a time of RFC 3339, or seconds and nanoseconds.
fn span_time(value: &Value) -> Option<Timestamp> {
    match value {
        Value::String(text) => match text.parse() {
            Ok(nanoseconds) => time_from_nanoseconds(nanoseconds),
            Err(_) => time(text),
        },
        Value::Number(number) => time_from_nanoseconds(number.as_i128()?),
        Value::Array(parts) => {
            let part = |at: usize| parts.get(at)?.as_i64().map(i128::from);
            time_from_nanoseconds(part(0)? * 1_000_000_000 + part(1)?)
        }
        _ => None,
    }
}

/// Returns attributes as plain values: a list of keys and typed values, or an object.
fn attributes(value: Option<&Value>) -> Map<String, Value> {
    match value {
        Some(Value::Object(fields)) => fields.clone(),
        Some(Value::Array(items)) => {
            let pairs = items.iter().filter_map(|item| {
                Some((item.get("key")?.as_str()?.to_owned(), plain(item.get("value").unwrap_or(&Value::Null))))
            });
            pairs.collect()
        }
        _ => Map::new(),
    }
}

/// Returns a typed value as a plain one. Its depth is that of the document, which is limited.
fn plain(value: &Value) -> Value {
    let Some((kind, value)) = value.as_object().and_then(|fields| fields.iter().next()) else { return Value::Null };
    match (kind.as_str(), value) {
        ("intValue" | "int_value", Value::String(text)) => {
            text.parse::<i64>().map_or_else(|_| value.clone(), Value::from)
        }
        ("arrayValue" | "array_value", value) => {
            let items = value.get("values").and_then(Value::as_array).into_iter().flatten();
            Value::Array(items.map(plain).collect())
        }
        ("kvlistValue" | "kvlist_value", value) => Value::Object(attributes(value.get("values"))),
        _ => value.clone(),
    }
}

/// Returns the items of attributes such as `PREFIX.0.role`, each with the rest of its names.
pub(super) fn numbered(attributes: &Map<String, Value>, prefix: &str) -> Vec<Map<String, Value>> {
    let mut items: BTreeMap<u64, Map<String, Value>> = BTreeMap::new();
    for (name, value) in attributes {
        let rest = name.strip_prefix(prefix).and_then(|rest| rest.strip_prefix('.'));
        let Some((number, name)) = rest.and_then(|rest| rest.split_once('.')) else { continue };
        if let Ok(number) = number.parse() {
            items.entry(number).or_default().insert(name.to_owned(), value.clone());
        }
    }
    items.into_values().collect()
}

/// Returns a value that may be written as JSON text.
pub(super) fn structured(value: &Value) -> Value {
    match value {
        Value::String(text) if text.starts_with(['[', '{']) => {
            serde_json::from_str(text).unwrap_or_else(|_| value.clone())
        }
        value => value.clone(),
    }
}
