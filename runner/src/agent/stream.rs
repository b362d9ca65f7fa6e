//! Bodies of answers that are not one JSON document: server-sent events and JSON lines, as a list of JSON values.
//!
//! The body is complete when it is read here, so a character that arrived in two pieces is whole.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::native;
use crate::failure::{Fault, Reason};

/// The end marker of many event streams, which is not an object of the answer.
const DONE: &str = "[DONE]";

/// The format of an answer that consists of several JSON values.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum StreamFormat {
    /// Server-sent events, whose data is JSON.
    Sse,
    /// One JSON value per line.
    Jsonl,
}

impl StreamFormat {
    /// Recognises the format by the content type of a response.
    pub(super) fn from_content_type(content_type: &str) -> Option<Self> {
        let kind = content_type.split(';').next().unwrap_or_default().trim().to_ascii_lowercase();
        match kind.as_str() {
            "text/event-stream" => Some(Self::Sse),
            "application/x-ndjson"
            | "application/ndjson"
            | "application/jsonl"
            | "application/x-jsonlines"
            | "application/json-lines" => Some(Self::Jsonl),
            _ => None,
        }
    }

    /// Returns the content types to ask for.
    pub(super) const fn accepted(self) -> &'static str {
        match self {
            Self::Sse => "text/event-stream",
            Self::Jsonl => "application/x-ndjson, application/jsonl",
        }
    }

    /// Parses a body as a list of JSON values.
    pub(super) fn parse(self, body: &[u8]) -> Result<Value, Fault> {
        let text = native::text(body)?;
        let values: Vec<Value> = match self {
            Self::Sse => data_of_events(text)
                .iter()
                .enumerate()
                .filter(|(_, data)| data.trim() != DONE)
                .map(|(index, data)| event_value(index + 1, data))
                .collect::<Result<_, _>>()?,
            Self::Jsonl => text
                .lines()
                .enumerate()
                .filter(|(_, line)| !line.trim().is_empty() && line.trim() != DONE)
                .map(|(index, line)| {
                    serde_json::from_str(line).map_err(|error| not_json(&format!("line {}", index + 1), &error))
                })
                .collect::<Result<_, _>>()?,
        };
        Ok(values.into())
    }
}

/// Parses the data of an event. Data that does not look like JSON is text: many servers send the pieces of a text as they are.
fn event_value(number: usize, data: &str) -> Result<Value, Fault> {
    match serde_json::from_str(data) {
        Ok(value) => Ok(value),
        Err(error) if data.trim_start().starts_with(['{', '[']) => Err(not_json(&format!("event {number}"), &error)),
        Err(_) => Ok(data.into()),
    }
}

fn not_json(place: &str, error: &serde_json::Error) -> Fault {
    Fault::new(Reason::NotJson, format!("{place} of the answer is not JSON: {error}"))
}

/// Returns the data of each event, by the rules of the HTML standard ("interpreting an event stream").
fn data_of_events(text: &str) -> Vec<String> {
    let text = text.strip_prefix('\u{feff}').unwrap_or(text).replace("\r\n", "\n").replace('\r', "\n");
    let mut events = Vec::new();
    let mut data: Option<String> = None;
    for line in text.split('\n') {
        if line.is_empty() {
            events.extend(data.take());
            continue;
        }
        let (field, value) = line.split_once(':').unwrap_or((line, ""));
        if field == "data" {
            let value = value.strip_prefix(' ').unwrap_or(value);
            match &mut data {
                Some(data) => {
                    data.push('\n');
                    data.push_str(value);
                }
                None => data = Some(value.to_owned()),
            }
        }
    }
    // The standard drops an event without an empty line after it; servers that end with one have sent it all the same.
    events.extend(data);
    events
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn events_become_a_list_without_the_end_marker() {
        let body = "\u{feff}: hello\r\nevent: token\r\ndata: {\"delta\": \"Hé\"}\r\n\r\nid: 2\ndata:{\"delta\":\ndata: \"llo\"}\n\n\
                    retry: 3\n\ndata: plain text\n\ndata: [DONE]\n\ndata: {\"last\": true}";
        let expected = json!([{"delta": "Hé"}, {"delta": "llo"}, "plain text", {"last": true}]);
        assert_eq!(StreamFormat::Sse.parse(body.as_bytes()).unwrap(), expected);
        let fault = StreamFormat::Sse.parse(b"data: 1\n\ndata: {\"a\n\n").unwrap_err();
        assert_eq!(fault.reason, Reason::NotJson);
        assert!(fault.message.starts_with("event 2 of the answer is not JSON"), "{}", fault.message);
    }

    #[test]
    fn lines_become_a_list() {
        assert_eq!(StreamFormat::Jsonl.parse(b"{\"a\": 1}\r\n\n2\n").unwrap(), json!([{"a": 1}, 2]));
        let fault = StreamFormat::Jsonl.parse(b"1\n{\n").unwrap_err();
        assert!(fault.message.starts_with("line 2 of the answer is not JSON"), "{}", fault.message);
        assert_eq!(StreamFormat::Jsonl.parse(b" \n").unwrap_err().reason, Reason::EmptyBody);
        assert_eq!(StreamFormat::Jsonl.parse(b"\xff\n").unwrap_err().reason, Reason::InvalidUtf8);
    }

    #[test]
    fn the_format_is_known_by_the_content_type() {
        assert_eq!(StreamFormat::from_content_type("Text/Event-Stream; charset=utf-8"), Some(StreamFormat::Sse));
        assert_eq!(StreamFormat::from_content_type("application/jsonl"), Some(StreamFormat::Jsonl));
        assert_eq!(StreamFormat::from_content_type("application/json"), None);
    }
}
