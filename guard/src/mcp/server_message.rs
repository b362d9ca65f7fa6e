//! Messages from the server: which requests they answer, and with what.

use std::borrow::Cow;

use serde::{Deserialize, Deserializer};
use serde_json::Value;
use serde_json::value::RawValue;

use super::message_parts::{JSON_WHITESPACE, ResponseKind, error_kind, state_text, tool_error_with};
use super::{RequestId, ScannedMessage};

#[derive(Debug)]
pub struct Response<'a> {
    pub id: RequestId,
    pub kind: ResponseKind,
    pub is_error: bool,
    pub text: &'a str,
    /// The text of `result`, or of `error`.
    pub payload: &'a str,
}

#[derive(Deserialize)]
struct WireResponse<'a> {
    #[serde(borrow)]
    id: Option<&'a RawValue>,
    #[serde(borrow)]
    method: Option<&'a RawValue>,
    #[serde(borrow, default, deserialize_with = "present")]
    result: Option<&'a RawValue>,
    #[serde(borrow)]
    error: Option<&'a RawValue>,
}

fn present<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<&'de RawValue>, D::Error> {
    Deserialize::deserialize(deserializer).map(Some)
}

#[derive(Deserialize)]
struct WireResult<'a> {
    #[serde(default, rename = "isError")]
    is_error: Option<Value>,
    #[serde(default, rename = "resultType")]
    result_type: Option<Value>,
    #[serde(default, rename = "requestState")]
    request_state: Option<Value>,
    #[serde(borrow, default)]
    content: Option<&'a RawValue>,
}

#[derive(Deserialize)]
struct WireError<'a> {
    code: Option<Value>,
    #[serde(borrow, default)]
    message: Option<Cow<'a, str>>,
}

/// Reads the responses in a message, which may be a batch. Other text has no responses.
pub fn read_responses(text: &str) -> Vec<Response<'_>> {
    let text = text.trim_matches(JSON_WHITESPACE);
    if text.starts_with('[') {
        let elements: Vec<&RawValue> = serde_json::from_str(text).unwrap_or_default();
        return elements.into_iter().filter_map(|element| read_one(element.get())).collect();
    }
    read_one(text).into_iter().collect()
}

fn read_one(text: &str) -> Option<Response<'_>> {
    let wire: WireResponse<'_> = serde_json::from_str(text).ok()?;
    // The server numbers its own requests independently of those of the client.
    if wire.method.is_some() {
        return None;
    }
    let id = RequestId::parse(wire.id?.get().as_bytes())?;
    match (wire.error, wire.result) {
        // An error counts before a result, should a message have both.
        (Some(error), _) => {
            Some(Response { id, kind: failed(error.get()), is_error: true, text, payload: error.get() })
        }
        (_, Some(result)) => {
            Some(Response { id, kind: result_kind(text, result.get()), is_error: false, text, payload: result.get() })
        }
        _ => None,
    }
}

fn failed(error: &str) -> ResponseKind {
    let (code, message) = match serde_json::from_str::<WireError<'_>>(error) {
        Ok(error) => (error.code, error.message.unwrap_or_default().into_owned()),
        Err(_) => (None, "the error is not a JSON-RPC error object".to_owned()),
    };
    error_kind(code.as_ref().and_then(Value::as_i64), message)
}

fn result_kind(text: &str, result: &str) -> ResponseKind {
    let Ok(wire) = serde_json::from_str::<WireResult<'_>>(result) else {
        // Fields that occur twice, or a result that is not an object.
        return ScannedMessage::read(text.as_bytes()).response.unwrap_or(ResponseKind::Result);
    };
    if wire.result_type.as_ref().and_then(Value::as_str) == Some("input_required") {
        return ResponseKind::InputRequired { request_state: wire.request_state.as_ref().map(state_text) };
    }
    // Only `true`: clients ignore other values.
    if wire.is_error == Some(Value::Bool(true)) {
        return tool_error(wire.content.map_or("", RawValue::get));
    }
    ResponseKind::Result
}

/// The error of a result that the tool marks as one: its first text.
fn tool_error(content: &str) -> ResponseKind {
    let content: Value = serde_json::from_str(content).unwrap_or_default();
    let texts = content.as_array().into_iter().flatten().filter_map(|block| block.get("text")?.as_str());
    tool_error_with(texts.into_iter().next().unwrap_or("the tool reports an error without a text").to_owned())
}

#[cfg(test)]
mod tests {
    use crate::mcp::message_parts::ResponseKind;
    use counterproof_ledger::event::{CallStatus, ErrorClass};

    use super::*;

    fn kinds(text: &str) -> Vec<(String, ResponseKind)> {
        read_responses(text).into_iter().map(|it| (it.id.as_json().to_owned(), it.kind)).collect()
    }

    #[test]
    fn results_and_errors_are_distinguished() {
        assert_eq!(kinds(r#"{"id":1,"result":{"content":[]}}"#), [("1".to_owned(), ResponseKind::Result)]);
        let failed = kinds(r#"{"id":"x","error":{"code":-32601,"message":"no"}}"#);
        let ResponseKind::Failed { status: CallStatus::Error, error } = &failed[0].1 else { panic!("{failed:?}") };
        assert_eq!(
            (error.class, &*error.message, error.code.as_deref()),
            (ErrorClass::UpstreamError, "no", Some("-32601"))
        );
        let failed = kinds(r#"{"id":1,"result":{"isError":true,"content":[{"type":"text","text":"disk full"}]}}"#);
        assert!(matches!(&failed[0].1, ResponseKind::Failed { error, .. } if error.message == "disk full"));
        let failed = kinds(r#"{"id":1,"error":{"code":-32001,"message":"Request timed out"}}"#);
        assert!(matches!(&failed[0].1, ResponseKind::Failed { status: CallStatus::Timeout, .. }));
    }

    #[test]
    fn requests_notifications_and_other_text_are_no_responses() {
        for text in [
            r#"{"id":1,"method":"sampling/createMessage","params":{},"result":{}}"#,
            r#"{"method":"notifications/progress"}"#,
            "not json",
            r#"{"id":null,"error":{"code":-32700,"message":"parse error"}}"#,
        ] {
            assert_eq!(kinds(text), [], "{text}");
        }
    }

    #[test]
    fn a_batch_has_a_response_for_each_element() {
        let found = kinds(
            r#"[{"id":1,"result":{}},{"method":"x"},{"id":2,"result":{"resultType":"input_required","requestState":"s"}}]"#,
        );
        assert_eq!(found.len(), 2);
        assert_eq!(found[1].1, ResponseKind::InputRequired { request_state: Some("s".to_owned()) });
    }
}
