//! Messages from the client: which of them are tool calls, and on which of them parsers disagree.

use std::borrow::Cow;
use std::fmt;

use counterproof_artifact::Sha256Digest;
use counterproof_artifact::canonical::canonical_hash;
use counterproof_json_text::parse_strict;
use serde::de::{Deserializer as _, IgnoredAny, MapAccess, Visitor};
use serde_json::Value;
use serde_json::value::RawValue;

use super::message_parts::{
    JSON_WHITESPACE, PROTOCOL_VERSION, RequestId, StrictError, TOOLS_CALL, ToolCallProblem, look_alike, state_text,
};
use super::scanner::{ScannedMessage, Scanner, syntax_problem};
use crate::policy::{RequestFacts, SampleCall};
use crate::session::MAX_INSPECT_BYTES;

#[derive(Debug)]
pub struct ClientMessages<'a> {
    pub messages: Vec<ClientMessage<'a>>,
    pub is_batch: bool,
    pub bytes: u64,
}

#[derive(Debug)]
pub enum ClientMessage<'a> {
    /// Not a tool call: it is forwarded.
    Other {
        text: &'a str,
        method: Option<Cow<'a, str>>,
        id: Option<RequestId>,
        params: Option<&'a str>,
        /// The id of the request that a `notifications/cancelled` names.
        cancels: Option<RequestId>,
    },
    Call(Box<ToolCall<'a>>),
}

#[derive(Debug)]
pub struct ToolCall<'a> {
    pub text: &'a str,
    /// The id; none if the message has no valid one. Such a call gets no answer.
    pub id: Option<RequestId>,
    /// The name of the tool. Empty if it is missing.
    pub tool_name: String,
    /// The arguments, or why parsers disagree on them.
    pub args: Result<Value, ToolCallProblem>,
    pub params: Option<&'a str>,
    pub args_text: Cow<'a, str>,
    pub args_bytes_hash: Sha256Digest,
    /// True if the request has `inputResponses` or `requestState`: it continues an earlier one.
    pub is_retry: bool,
    pub request_state: Option<String>,
    /// True if the request states its protocol revision, as stateless requests do.
    pub is_stateless: bool,
}

impl<'a> ClientMessage<'a> {
    pub fn text(&self) -> &'a str {
        match self {
            ClientMessage::Other { text, .. } => text,
            ClientMessage::Call(call) => call.text,
        }
    }

    pub fn method(&self) -> Option<&str> {
        match self {
            ClientMessage::Other { method, .. } => method.as_deref(),
            ClientMessage::Call(_) => Some(TOOLS_CALL),
        }
    }

    pub fn id(&self) -> Option<&RequestId> {
        match self {
            ClientMessage::Other { id, .. } => id.as_ref(),
            ClientMessage::Call(call) => call.id.as_ref(),
        }
    }

    pub fn params(&self) -> Option<&'a str> {
        match self {
            ClientMessage::Other { params, .. } => *params,
            ClientMessage::Call(call) => call.params,
        }
    }
}

/// Longest name of a client that is remembered.
const MAX_CLIENT_NAME: usize = 256;

impl ClientMessages<'_> {
    /// Returns the name that the client states in `initialize`.
    pub fn client_name(&self) -> Option<String> {
        let [message] = &*self.messages else { return None };
        let params = message.params().filter(|_| message.method() == Some("initialize"))?;
        let params: Value = serde_json::from_str(params).ok()?;
        params["clientInfo"]["name"].as_str().filter(|name| name.len() <= MAX_CLIENT_NAME).map(str::to_owned)
    }
}

pub fn read_client_messages(bytes: &[u8]) -> Result<ClientMessages<'_>, StrictError> {
    let text = std::str::from_utf8(bytes).map_err(|_| StrictError::NotUtf8)?;
    let is_batch = text.trim_start_matches(JSON_WHITESPACE).starts_with('[');
    Ok(ClientMessages { messages: read_client_message(text)?, is_batch, bytes: bytes.len() as u64 })
}

pub fn read_client_message(text: &str) -> Result<Vec<ClientMessage<'_>>, StrictError> {
    let trimmed = text.trim_matches(JSON_WHITESPACE);
    if trimmed.starts_with('[') {
        // As texts: the messages that are not refused are forwarded as they came.
        let elements: Vec<&RawValue> = serde_json::from_str(trimmed).map_err(|error| invalid(&error))?;
        return elements.into_iter().map(|element| read_one(element.get())).collect();
    }
    Ok(vec![read_one(trimmed)?])
}

fn invalid(error: &serde_json::Error) -> StrictError {
    StrictError::Invalid(error.to_string())
}

fn read_one(text: &str) -> Result<ClientMessage<'_>, StrictError> {
    if !text.starts_with('{') {
        if text.starts_with('[') {
            return Err(StrictError::Invalid("a batch within a batch".to_owned()));
        }
        // A value that is not a message, which servers refuse. Only the grammar counts: `1e999` is JSON, although few parsers can
        // represent it, and so it is the same for a message that is scanned in pieces.
        serde_json::from_str::<IgnoredAny>(text).map_err(|error| invalid(&error))?;
        return Ok(ClientMessage::Other { text, method: None, id: None, params: None, cancels: None });
    }
    let mut deserializer = serde_json::Deserializer::from_str(text);
    let parts = deserializer.deserialize_map(PartsVisitor).and_then(|parts| deserializer.end().map(|()| parts));
    let parts = parts.map_err(|error| invalid(&error))?;
    // Any of several methods: parsers disagree on which one counts.
    let is_call = parts.methods.iter().any(|method| method == TOOLS_CALL);
    if !is_call && !parts.look_alikes.iter().any(|(_, known)| *known == "method") {
        let cancels = parts
            .methods
            .first()
            // The id in the parameters names a request, whose call ends.
            .filter(|method| *method == "notifications/cancelled")
            .and(parts.params)
            .and_then(|params| serde_json::from_str::<Value>(params.get()).ok())
            .and_then(|params| RequestId::from_value(params.get("requestId")?));
        let id = parts.id.and_then(|id| RequestId::parse(id.get().as_bytes()));
        let params = parts.params.map(RawValue::get);
        return Ok(ClientMessage::Other { text, method: parts.methods.into_iter().next(), id, params, cancels });
    }
    Ok(ClientMessage::Call(Box::new(read_call(text, &parts)?)))
}

fn read_call<'a>(text: &'a str, parts: &Parts<'a>) -> Result<ToolCall<'a>, StrictError> {
    let id = parts.id.and_then(|id| RequestId::parse(id.get().as_bytes()));
    // Missing parameters are those of an invalid call, which is still recorded.
    let params = parts.params.map_or("{}", RawValue::get);
    let args_text = raw_member(params, "arguments").map_or(Cow::Borrowed("{}"), |raw| Cow::Borrowed(raw.get()));
    let mut call = ToolCall {
        text,
        id,
        tool_name: String::new(),
        args: Ok(Value::Null),
        params: parts.params.map(RawValue::get),
        args_bytes_hash: Sha256Digest::from_bytes(args_text.as_bytes()),
        args_text,
        is_retry: false,
        request_state: None,
        is_stateless: false,
    };
    // Parsers disagree on which value of a key that occurs twice counts: the server might execute another call than the inspected one.
    let mut message = match parse_strict(text.as_bytes()).map_err(StrictError::from) {
        Ok(message) => message,
        Err(StrictError::Invalid(problem)) => {
            read_unreadable_call(&mut call, problem)?;
            return Ok(call);
        }
        Err(error) => {
            // The name is only for the event: the call is refused.
            call.tool_name = lenient_name(params);
            call.args = Err(error.into());
            return Ok(call);
        }
    };
    let params = message.get_mut("params").map(Value::take).unwrap_or_default();
    // Checked in the message and in its parameters, whose keys decide. The arguments may have any keys.
    let look_alike = parts.look_alikes.first().cloned().or_else(|| {
        let keys = params.as_object().into_iter().flat_map(|params| params.keys());
        keys.into_iter().find_map(|key| Some((key.clone(), look_alike(key)?)))
    });
    params.get("name").and_then(Value::as_str).unwrap_or_default().clone_into(&mut call.tool_name);
    call.is_retry = params.get("inputResponses").is_some() || params.get("requestState").is_some();
    call.request_state = params.get("requestState").map(state_text);
    call.is_stateless = params.get("_meta").is_some_and(|meta| meta.get(PROTOCOL_VERSION).is_some());
    call.args = match (look_alike, params.get("name"), params.get("arguments")) {
        (Some((key, known)), _, _) => Err(ToolCallProblem::LookAlike { key, known }),
        (None, Some(Value::String(_)), None | Some(Value::Null)) => Ok(Value::Object(serde_json::Map::new())),
        (None, Some(Value::String(_)), Some(args @ Value::Object(_))) => Ok(args.clone()),
        (None, Some(Value::String(_)), Some(_)) => {
            Err(ToolCallProblem::Type { field: "arguments", expected: "an object" })
        }
        (None, _, _) => Err(ToolCallProblem::Type { field: "name", expected: "a string" }),
    };
    Ok(call)
}

/// Reads only the deciding fields of a call whose values cannot be represented.
fn read_unreadable_call(call: &mut ToolCall<'_>, problem: String) -> Result<(), StrictError> {
    let found = ScannedMessage::read(call.text.as_bytes());
    if let Some(error) = found.syntax {
        return Err(StrictError::Invalid(syntax_problem(error)));
    }
    call.args = Err(found.problem.unwrap_or(ToolCallProblem::Unreadable(problem)));
    call.args_bytes_hash = found.args_hash.unwrap_or_else(|| Sha256Digest::from_bytes(b"{}"));
    (call.tool_name, call.is_stateless) = (found.tool_name, found.is_stateless);
    (call.is_retry, call.request_state) = (found.is_retry, found.request_state);
    Ok(())
}

fn raw_member<'a>(object: &'a str, key: &str) -> Option<&'a RawValue> {
    let members: std::collections::HashMap<Cow<'_, str>, &RawValue> = serde_json::from_str(object).ok()?;
    members.get(key).copied()
}

fn lenient_name(params: &str) -> String {
    raw_member(params, "name").and_then(|name| serde_json::from_str(name.get()).ok()).unwrap_or_default()
}

#[derive(Default)]
struct Parts<'a> {
    id: Option<&'a RawValue>,
    /// Every value of `method`: parsers disagree on which one counts.
    methods: Vec<Cow<'a, str>>,
    params: Option<&'a RawValue>,
    look_alikes: Vec<(String, &'static str)>,
}

struct PartsVisitor;

impl<'de> Visitor<'de> for PartsVisitor {
    type Value = Parts<'de>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a JSON-RPC message")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut entries: A) -> Result<Parts<'de>, A::Error> {
        let mut parts = Parts::default();
        while let Some(key) = entries.next_key::<Cow<'de, str>>()? {
            match &*key {
                "id" => parts.id = Some(entries.next_value()?),
                "params" => parts.params = Some(entries.next_value()?),
                "method" => {
                    let method: &RawValue = entries.next_value()?;
                    parts.methods.extend(serde_json::from_str::<String>(method.get()).ok().map(Cow::Owned));
                }
                _ => {
                    if let Some(known) = look_alike(&key) {
                        parts.look_alikes.push((key.clone().into_owned(), known));
                    }
                    entries.next_value::<IgnoredAny>()?;
                }
            }
        }
        Ok(parts)
    }
}

/// Reads the request of a sample call through the reader of the shim and within its limits. Fails if the shim would refuse the call,
/// because parsers disagree on it.
pub fn read_sample(call: &SampleCall<'_>) -> Result<RequestFacts, ToolCallProblem> {
    let (name, args) = (Value::from(call.tool_name), without_space(call.args));
    let line = format!(
        "{{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"{TOOLS_CALL}\",\"params\":{{\"name\":{name},\"arguments\":{args}}}}}\n"
    );
    let bytes_in = line.len() as u64;
    // As the shim does, so that a test of a policy sees the same limits.
    if line.len() > MAX_INSPECT_BYTES {
        return read_large(&line);
    }
    let messages = read_client_messages(line.as_bytes())?;
    let Some(ClientMessage::Call(read)) = messages.messages.into_iter().next() else {
        return Err(StrictError::Invalid("the request is not a `tools/call` request".to_owned()).into());
    };
    let args_hash = read.args_bytes_hash;
    let args = match read.args {
        Err(ToolCallProblem::Unreadable(_)) => {
            return Ok(RequestFacts { args: None, args_hash, bytes_in });
        }
        args => args?,
    };
    let args_hash = canonical_hash(&args);
    if call.is_too_large {
        // Any request that is too large is larger than the limit.
        return Ok(RequestFacts { args: None, args_hash, bytes_in: bytes_in.max(MAX_INSPECT_BYTES as u64 + 1) });
    }
    Ok(RequestFacts { args: Some(args), args_hash, bytes_in })
}

fn read_large(line: &str) -> Result<RequestFacts, ToolCallProblem> {
    let mut scanner = Scanner::default();
    scanner.push(line.as_bytes());
    let found = scanner.finish();
    if let Some(problem) = found.problem {
        return Err(problem);
    }
    let args_hash = found.args_hash.unwrap_or_else(|| Sha256Digest::from_bytes(b"{}"));
    Ok(RequestFacts { args: None, args_hash, bytes_in: line.len() as u64 })
}

/// Removes the space between the tokens of JSON, as clients write it. A request on one line has no line breaks.
fn without_space(json: &str) -> String {
    let (mut is_text, mut is_escaped) = (false, false);
    let is_kept = |character: &char| {
        let keeps = is_text || !matches!(character, ' ' | '\t' | '\r' | '\n');
        is_text ^= *character == '"' && !is_escaped;
        is_escaped = is_text && *character == '\\' && !is_escaped;
        keeps
    };
    json.chars().filter(is_kept).collect()
}

#[cfg(test)]
mod tests {
    use crate::mcp::message_parts::{RequestId, StrictError, ToolCallProblem};
    use serde_json::json;

    use super::*;

    fn call(text: &str) -> ToolCall<'_> {
        match read_client_message(text).unwrap().remove(0) {
            ClientMessage::Call(call) => *call,
            other @ ClientMessage::Other { .. } => panic!("{other:?}"),
        }
    }

    #[test]
    fn a_tool_call_has_a_name_arguments_and_an_id() {
        let call = call(
            r#" {"jsonrpc":"2.0","id":"a","method":"tools\/call","params":{"name":"push","arguments":{"force": true},
            "_meta":{"progressToken":7,"io.modelcontextprotocol/protocolVersion":"2026-07-28"}}}"#,
        );
        assert_eq!((&*call.tool_name, &*call.args_text), ("push", r#"{"force": true}"#));
        assert_eq!(call.args.unwrap(), json!({"force": true}));
        assert_eq!(call.id, RequestId::parse(br#""a""#));
        assert!(call.is_stateless && !call.is_retry);
    }

    #[test]
    fn missing_arguments_are_an_empty_object() {
        assert_eq!(call(r#"{"id":1,"method":"tools/call","params":{"name":"a"}}"#).args, Ok(json!({})));
        assert_eq!(
            call(r#"{"id":1,"method":"tools/call","params":{"name":"a","arguments":null}}"#).args,
            Ok(json!({}))
        );
    }

    #[test]
    fn calls_on_which_parsers_disagree_have_a_problem() {
        for text in [
            r#"{"id":1,"method":"tools/call","params":{"name":"a","arguments":{"p":1,"p":2}}}"#,
            r#"{"id":1,"method":"tools/call","params":{"name":"a","name":"b"}}"#,
            r#"{"id":1,"method":"ping","method":"tools/call","params":{"name":"a"}}"#,
            r#"{"id":1,"method":"tools/call","method":"ping","params":{"name":"a"}}"#,
            r#"{"id":1,"method":"ping","Method":"tools/call","params":{"name":"a"}}"#,
            r#"{"id":1,"method":"ping","Method":"tools/call","Params":{"name":"a"}}"#,
            r#"{"id":1,"method":"tools/call","params":{"name":"a","argument\u017f":{"p":1}}}"#,
            r#"{"id":1,"method":"tools/call","params":{"arguments":{"p":"\ud83d"},"name":"a","name":"b"}}"#,
            r#"{"id":1,"method":"tools/call","params":{"name":"\ud83d"}}"#,
            r#"{"id":1,"method":"tools/call","params":{"name":"a","Name":"b"}}"#,
            r#"{"id":1,"method":"tools/call","params":{"name":"a","arguments":[1]}}"#,
            r#"{"id":1,"method":"tools/call","params":{"name":7}}"#,
            r#"{"id":1,"method":"tools/call"}"#,
        ] {
            assert!(call(text).args.is_err(), "{text}");
        }
    }

    #[test]
    fn a_call_that_not_all_parsers_can_represent_is_unreadable_but_not_ambiguous() {
        for args in [r#"{"p":"\ud83d"}"#, r#"{"p":1e999}"#] {
            let text = format!(r#"{{"id":1,"method":"tools/call","params":{{"name":"a","arguments":{args}}}}}"#);
            let call = call(&text);
            assert!(matches!(call.args, Err(ToolCallProblem::Unreadable(_))), "{:?}", call.args);
            assert_eq!((&*call.tool_name, call.args_bytes_hash), ("a", Sha256Digest::from_bytes(args.as_bytes())));
        }
        let nested = "[".repeat(200) + &"]".repeat(200);
        let deep = format!(r#"{{"id":1,"method":"tools/call","params":{{"name":"a","arguments":{{"p":{nested}}}}}}}"#);
        assert!(matches!(read_client_message(&deep), Err(StrictError::Invalid(_))));
        assert!(read_client_message(r#"[[{"id":1,"method":"tools/call"}]]"#).is_err());
    }

    #[test]
    fn other_messages_are_recognised() {
        for text in [
            r#"{"jsonrpc":"2.0","id":1,"method":"ping","x":1,"x":2}"#,
            r#"{"jsonrpc":"2.0","id":1,"result":{"method":"tools/call"}}"#,
            r#"{"jsonrpc":"2.0","method":"notifications/initialized","params":{"name":"tools/call"}}"#,
            "7",
        ] {
            let messages = read_client_message(text).unwrap();
            assert!(matches!(messages[..], [ClientMessage::Other { cancels: None, .. }]), "{text}");
        }
        let cancelled = r#"{"method":"notifications/cancelled","params":{"requestId":3}}"#;
        let messages = read_client_message(cancelled).unwrap();
        assert!(matches!(&messages[..], [ClientMessage::Other { cancels: Some(id), .. }] if id.as_json() == "3"));
    }

    #[test]
    fn a_batch_has_a_message_for_each_element() {
        let batch = r#"[{"id":1,"method":"ping"}, {"id":2,"method":"tools/call","params":{"name":"a"}}]"#;
        let messages = read_client_message(batch).unwrap();
        assert!(
            matches!(&messages[..], [ClientMessage::Other { .. }, ClientMessage::Call(call)] if call.tool_name == "a")
        );
        assert!(read_client_message("[{}").is_err() && read_client_message("{\"a\":NaN}").is_err());
    }

    #[test]
    fn a_retry_carries_the_state_of_the_server() {
        let text = r#"{"id":2,"method":"tools/call","params":{"name":"a","inputResponses":{},"requestState":"s1"}}"#;
        let call = call(text);
        assert_eq!((call.is_retry, call.request_state.as_deref()), (true, Some("s1")));
    }

    #[test]
    fn ids_are_compared_by_value_and_type() {
        let id = |json: &str| RequestId::parse(json.as_bytes());
        assert_eq!(id(r#""ab""#), id(r#""a\u0062""#));
        assert_ne!(id("7"), id(r#""7""#));
        assert_ne!(id("9007199254740993"), id("9007199254740992"));
        assert_eq!((id("null"), id("[1]"), id("")), (None, None, None));
    }

    #[test]
    fn an_answer_repeats_the_text_of_the_id() {
        for text in ["1e999", r#""\ud800""#, "12345678901234567890123", r#""a\u0062""#] {
            assert_eq!(RequestId::parse(text.as_bytes()).unwrap().as_json(), text);
        }
    }

    fn read(args: &str) -> Result<RequestFacts, ToolCallProblem> {
        read_sample(&SampleCall { tool_name: "push", args, is_too_large: false })
    }

    #[test]
    fn the_size_is_that_of_the_request() {
        let request =
            r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"push","arguments":{"a":"b \\\" c"}}}"#;
        let facts = read("{ \"a\":\n \"b \\\\\\\" c\" }").unwrap();
        assert_eq!(facts.bytes_in, request.len() as u64 + 1);
        assert_eq!(facts.args, Some(json!({"a": "b \\\" c"})));
    }

    #[test]
    fn a_request_beyond_the_limit_is_not_inspected() {
        let large = format!("{{\"a\":\"{}\"}}", "x".repeat(MAX_INSPECT_BYTES));
        let facts = read(&large).unwrap();
        assert!(facts.args.is_none() && facts.bytes_in > MAX_INSPECT_BYTES as u64);
        assert_eq!(facts.args_hash, Sha256Digest::from_bytes(large.as_bytes()));
        let facts = read_sample(&SampleCall { tool_name: "push", args: "{}", is_too_large: true }).unwrap();
        assert!(facts.args.is_none() && facts.bytes_in > MAX_INSPECT_BYTES as u64);
    }

    #[test]
    fn arguments_on_which_parsers_disagree_are_refused() {
        let problem = read("{\"p\":1,\"p\":2}").unwrap_err();
        assert_eq!(problem.to_string(), "the key `p` occurs twice in an object");
    }
}
