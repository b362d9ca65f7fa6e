//! The protocols by name, their common interface and options. Each is implemented in a separate file.

use std::borrow::Cow;
use std::collections::{BTreeMap, HashSet};
use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

use counterproof_artifact::{Case, CaseId, Extra, RiskLevel, RunId, Side};
use counterproof_cases::{CaseSpec, Input, glob, value_digest};
use counterproof_redaction::{Applied, Redactor};
use jiff::Timestamp;
use reqwest::Method;
use serde_json::{Map, Value, json};

use super::agui::Agui;
use super::anthropic_messages::AnthropicMessages;
use super::dialogue::{self, Dialogue, ToolDefinition, user_message};
use super::http_endpoint::{HttpEndpoint, TextAgent};
use super::http_mapping::HttpMapping;
use super::native::Native;
use super::openai_chat::OpenaiChat;
use super::openai_responses::OpenaiResponses;
use crate::failure::Fault;

/// The protocol of an agent.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, serde::Deserialize)]
#[serde(try_from = "String")]
pub enum Protocol {
    /// The project's own protocol: the answer has the fields of the artifact.
    #[default]
    Native,
    /// OpenAI Chat Completions.
    OpenaiChat,
    /// OpenAI Responses.
    OpenaiResponses,
    /// Anthropic Messages.
    AnthropicMessages,
    /// The event stream of AG-UI.
    Agui,
    /// An HTTP endpoint of any shape, described by a mapping.
    Http,
    /// The text of the user, answered with text.
    Text,
}

/// An unknown protocol name.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "unknown protocol `{0}`: expected native, openai-chat, openai-responses, anthropic-messages, agui, http or text"
)]
pub struct ProtocolError(String);

impl Protocol {
    /// All protocols, in the order of the documentation.
    pub const ALL: [Protocol; 7] = [
        Protocol::Native,
        Protocol::OpenaiChat,
        Protocol::OpenaiResponses,
        Protocol::AnthropicMessages,
        Protocol::Agui,
        Protocol::Http,
        Protocol::Text,
    ];

    /// Returns the name, as on the command line and in `run.json`.
    pub const fn as_str(self) -> &'static str {
        match self {
            Protocol::Native => "native",
            Protocol::OpenaiChat => "openai-chat",
            Protocol::OpenaiResponses => "openai-responses",
            Protocol::AnthropicMessages => "anthropic-messages",
            Protocol::Agui => "agui",
            Protocol::Http => "http",
            Protocol::Text => "text",
        }
    }

    /// Returns the implementation of the protocol.
    pub(crate) fn adapter(self, options: &AgentOptions) -> Box<dyn ProtocolAdapter> {
        let options = options.clone();
        match self {
            Protocol::Native => Box::new(Native { risk: options.risk, strict_wire: options.strict_wire }),
            Protocol::OpenaiChat => Box::new(OpenaiChat { options }),
            Protocol::OpenaiResponses => Box::new(OpenaiResponses { options }),
            Protocol::AnthropicMessages => Box::new(AnthropicMessages { options }),
            Protocol::Agui => Box::new(Agui { options }),
            Protocol::Http => Box::new(HttpEndpoint { mapping: options.http, risk: options.risk }),
            Protocol::Text => Box::new(TextAgent { mapping: options.http }),
        }
    }
}

impl fmt::Display for Protocol {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl TryFrom<String> for Protocol {
    type Error = ProtocolError;

    fn try_from(text: String) -> Result<Self, ProtocolError> {
        text.parse()
    }
}

impl FromStr for Protocol {
    type Err = ProtocolError;

    fn from_str(text: &str) -> Result<Self, ProtocolError> {
        let named = Protocol::ALL.into_iter().find(|protocol| protocol.as_str() == text);
        named.ok_or_else(|| ProtocolError(text.to_owned()))
    }
}

#[derive(Debug, Clone, Copy)]
pub(crate) struct RequestInput<'a> {
    pub(crate) case: &'a CaseSpec,
    pub(crate) side: Side,
    pub(crate) run_id: &'a RunId,
    /// The turn of a case with turns. `None` for a case with a single request.
    pub(crate) turn: Option<TurnInput<'a>>,
    /// What follows the first message of the user in a protocol with a [`Dialogue`]: answers, results of tools and messages of
    /// the user, in the form of the protocol.
    pub(crate) thread: &'a [Value],
    /// The tools that the runner executes. They follow the tools of the options.
    pub(crate) tools: &'a [ToolDefinition],
}

/// One turn of a conversation.
#[derive(Debug, Clone, Copy)]
pub(crate) struct TurnInput<'a> {
    /// The number of the turn, counted from 0.
    pub(crate) index: usize,
    /// The message of the user.
    pub(crate) user: &'a str,
    /// The messages before it: of the user and of the agent, in turn.
    pub(crate) history: &'a [ChatMessage],
}

/// A message of a conversation, in the form that most agents share.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ChatMessage {
    /// `user` or `assistant`.
    pub(crate) role: &'static str,
    pub(crate) content: String,
}

impl<'a> RequestInput<'a> {
    /// Returns the input of the request of a case with a single one.
    pub(crate) const fn single(case: &'a CaseSpec, side: Side, run_id: &'a RunId) -> Self {
        Self { case, side, run_id, turn: None, thread: &[], tools: &[] }
    }

    /// Returns the messages of the request, as the chat protocols have them: the context of the case if there is one, its text, and
    /// the thread.
    pub(super) fn chat_messages(&self) -> impl Iterator<Item = Value> {
        let input = &self.case.input;
        let context = input.context.as_ref().filter(|context| !context.is_null()).map(|context| match context {
            Value::String(text) => text.clone(),
            other => other.to_string(),
        });
        let user = context.into_iter().chain([input.user.clone()]).map(|text| user_message(&text));
        user.chain(self.thread.iter().cloned())
    }

    /// Returns the message of the user in this request.
    pub(crate) fn user(&self) -> &'a str {
        self.turn.map_or(self.case.input.user.as_str(), |turn| turn.user)
    }

    /// Returns the input of the agent for this request.
    pub(crate) fn input(&self) -> Cow<'a, Input> {
        let Some(turn) = self.turn else { return Cow::Borrowed(&self.case.input) };
        let mut input = Input { user: turn.user.to_owned(), ..self.case.input.clone() };
        input.extra.insert("messages".to_owned(), self.messages().into());
        Cow::Owned(input)
    }

    /// Returns the messages before the one of this request: those of the case's input, then those of its earlier turns.
    pub(crate) fn messages(&self) -> Vec<Value> {
        let mut messages = self.case.input.extra.get("messages").and_then(Value::as_array).cloned().unwrap_or_default();
        let history = self.turn.map_or(&[][..], |turn| turn.history);
        messages.extend(history.iter().map(|message| json!({"role": message.role, "content": message.content})));
        messages
    }
}

/// The inputs for parsing an answer.
#[derive(Debug, Clone, Copy)]
pub(crate) struct AnswerContext<'a> {
    pub(crate) case_id: &'a CaseId,
    pub(crate) side: Side,
    /// When the answer was complete.
    pub(crate) received: Timestamp,
    /// The content type of the response, if it has one.
    pub(crate) content_type: Option<&'a str>,
}

/// The conversions of one protocol: pure functions from a case to bytes, and from bytes to an artifact. Independent of the transport.
pub(crate) trait ProtocolAdapter: Send + Sync {
    /// Returns the path below the base URL of a server, without a slash at its start. Empty for the base URL itself.
    fn path(&self) -> &str;

    /// Returns the method of requests to a server.
    fn method(&self) -> Method {
        Method::POST
    }

    /// Returns the content type of requests.
    fn content_type(&self) -> &'static str {
        "application/json"
    }

    /// Returns the content types that a server is asked for.
    fn accept(&self) -> &'static str {
        "application/json"
    }

    /// Returns further headers, with names in lower case.
    fn headers(&self) -> &'static [(&'static str, &'static str)] {
        &[]
    }

    /// Checks that a request can be built for a case.
    fn check_case(&self, _case: &CaseSpec) -> Result<(), String> {
        Ok(())
    }

    /// Returns the request body of a case.
    fn request(&self, request_input: RequestInput<'_>) -> Result<Vec<u8>, serde_json::Error>;

    /// Returns the JSON document that a body is, or that its events add up to. [`ProtocolAdapter::answer`] reads it.
    fn document<'a>(&self, body: &'a [u8]) -> Cow<'a, [u8]> {
        Cow::Borrowed(body)
    }

    /// Parses the body of a successful response as the answer to a case.
    fn answer(&self, body: &[u8], context: AnswerContext<'_>) -> Result<Case, Fault>;

    /// Returns how the runner continues an answer with tool calls. `None` if the agent executes its tools.
    fn dialogue(&self) -> Option<&dyn Dialogue> {
        None
    }

    /// Reports whether an answer of this content type is read as one JSON document.
    fn reads_json(&self, _content_type: Option<&str>) -> bool {
        true
    }
}

/// Request fields that the runner sets itself.
const RESERVED: [&str; 7] = ["model", "messages", "input", "instructions", "system", "tools", "stream"];

/// Options of the protocols. Each protocol ignores those of the others.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct AgentOptions {
    /// The model name. `None` omits the field.
    pub model: Option<String>,
    /// The system prompt.
    pub system_prompt: Option<String>,
    /// Whether the answer is requested as a stream of events.
    pub stream: bool,
    /// The tools that the agent may call, in the format of the protocol. `input.tools` of a case replaces them.
    pub tools: Option<Vec<Value>>,
    /// Additional request fields, such as `temperature`.
    pub request: Map<String, Value>,
    /// The risk levels of the tools.
    pub risk: RiskTable,
    /// The requests and answers of an endpoint of the protocol `http`; of `text`, the requests.
    pub http: Arc<HttpMapping>,
    /// Whether an answer of the native protocol that lacks optional parts is a failure. Otherwise they are filled in.
    pub strict_wire: bool,
}

/// A request field that cannot be configured because the runner sets it.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("the request field `{0}` is set by the runner and cannot be configured")]
pub struct ReservedField(String);

impl AgentOptions {
    /// Sets the additional request fields.
    pub fn set_request(&mut self, fields: Map<String, Value>) -> Result<(), ReservedField> {
        if let Some(field) = fields.keys().find(|field| RESERVED.contains(&field.as_str())) {
            return Err(ReservedField(field.clone()));
        }
        self.request = fields;
        Ok(())
    }

    /// Returns a request body: the common fields, the fields of the case, and the tools.
    pub(super) fn request(
        &self,
        request_input: RequestInput<'_>,
        dialogue: &dyn Dialogue,
        case_fields: Map<String, Value>,
    ) -> Result<Vec<u8>, serde_json::Error> {
        let mut request = self.common_fields();
        request.extend(case_fields);
        if let Some(tools) = self.tools(request_input, dialogue) {
            request.insert("tools".to_owned(), tools);
        }
        serde_json::to_vec(&request)
    }

    /// Returns the model and the additional fields, with or without streaming.
    fn common_fields(&self) -> Map<String, Value> {
        let mut request = Map::new();
        if let Some(model) = &self.model {
            request.insert("model".to_owned(), model.as_str().into());
        }
        request.extend(self.request.clone());
        // Last, and explicit: servers have different defaults.
        request.insert("stream".to_owned(), self.stream.into());
        request
    }

    /// Returns the options as `run.json` records them. Long values are recorded as digests of their redacted form.
    pub(crate) fn document(&self, redactor: &Redactor) -> Extra {
        let digest = |mut value: Value| {
            // The digest of the original would let a reader test guesses of a secret.
            redactor.json(&mut value, &mut Applied::default());
            Value::from(value_digest(value).to_string())
        };
        let request = (!self.request.is_empty()).then(|| Value::Object(self.request.clone()));
        let http = (*self.http != HttpMapping::default()).then(|| json!(*self.http));
        let risk = (!self.risk.0.is_empty()).then(|| json!(self.risk.0));
        let fields = [
            ("model", self.model.as_deref().map(Value::from)),
            ("system_prompt_sha256", self.system_prompt.as_deref().map(|text| digest(text.into()))),
            ("tools_sha256", self.tools.clone().map(|tools| digest(tools.into()))),
            ("stream", self.stream.then(|| true.into())),
            ("request_sha256", request.map(digest)),
            ("risk", risk),
            ("http_sha256", http.map(digest)),
        ];
        fields.into_iter().filter_map(|(name, value)| Some((name.to_owned(), value?))).collect()
    }

    /// Returns the tools for a case.
    fn tools(&self, request_input: RequestInput<'_>, dialogue: &dyn Dialogue) -> Option<Value> {
        // The tools of a case replace the configured ones.
        if let Some(tools) = request_input.case.input.extra.get("tools") {
            return Some(tools.clone());
        }
        let mut tools = self.tools.clone().unwrap_or_default();
        let names: HashSet<_> = tools.iter().filter_map(dialogue::name_of).map(str::to_owned).collect();
        let added = request_input.tools.iter().filter(|tool| !names.contains(&tool.name));
        tools.extend(added.map(|tool| dialogue.definition(tool)));
        (self.tools.is_some() || !tools.is_empty()).then_some(Value::Array(tools))
    }
}

/// Risk levels by tool name. `*` in a name matches any characters.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct RiskTable(BTreeMap<String, RiskLevel>);

impl FromIterator<(String, RiskLevel)> for RiskTable {
    fn from_iter<I: IntoIterator<Item = (String, RiskLevel)>>(rows: I) -> Self {
        Self(rows.into_iter().collect())
    }
}

impl RiskTable {
    /// Returns the level of a tool: by exact name, then by the longest matching pattern, then `unknown`.
    pub fn level(&self, tool: &str) -> RiskLevel {
        if let Some(level) = self.0.get(tool) {
            return *level;
        }
        let matching = self.0.iter().filter(|(pattern, _)| glob::fits(pattern, tool));
        // Of equally long patterns, the last one in the alphabet counts, whatever the order of the configuration.
        matching.max_by_key(|(pattern, _)| pattern.len()).map_or(RiskLevel::Unknown, |(_, level)| *level)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn an_exact_name_precedes_patterns_and_a_long_pattern_precedes_a_short_one() {
        let rows = [("*", RiskLevel::Low), ("issue_*", RiskLevel::High), ("issue_note", RiskLevel::Medium)];
        let table: RiskTable = rows.into_iter().map(|(name, level)| (name.to_owned(), level)).collect();
        assert_eq!(table.level("issue_note"), RiskLevel::Medium);
        assert_eq!(table.level("issue_refund"), RiskLevel::High);
        assert_eq!(table.level("lookup"), RiskLevel::Low);
        assert_eq!(RiskTable::default().level("lookup"), RiskLevel::Unknown);
    }

    #[test]
    fn fields_of_the_runner_cannot_be_configured() {
        let mut options = AgentOptions::default();
        let fields = |value: Value| value.as_object().cloned().unwrap();
        assert!(options.set_request(fields(json!({"stream": true}))).is_err());
        options.set_request(fields(json!({"temperature": 0}))).unwrap();
        assert_eq!(Value::Object(options.common_fields()), json!({"temperature": 0, "stream": false}));
    }
}
