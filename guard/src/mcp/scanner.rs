//! Reads a message that is too large to be held in memory: piece by piece, and only the fields that decide.
//!
//! The scanner looks at the members of the message and of `params`, `result` and `error`, and hashes the bytes of `arguments` and of
//! `result`. [`ScannedMessage::syntax`] states whether the message is JSON: by the grammar, also with values that a parser cannot
//! represent.

use counterproof_artifact::Sha256Digest;
use counterproof_artifact::canonical::Sha256Hasher;
use counterproof_json_text::{Kind, MAX_DEPTH, SyntaxError, Token, Tokenizer};
use serde::de::DeserializeOwned;
use serde_json::Value;

use super::message_parts::{PROTOCOL_VERSION, TOOLS_CALL, error_kind, look_alike, state_text, tool_error_with};
use super::{RequestId, ResponseKind, StrictError, ToolCallProblem};

/// Longest key and longest small value that are read. Longer keys and values are not read.
const MAX_FIELD_BYTES: usize = 64 * 1024;

#[derive(Debug, Clone, Default)]
#[expect(clippy::struct_excessive_bools, reason = "facts of a message that do not depend on each other")]
pub struct ScannedMessage {
    pub id: Option<RequestId>,
    pub method: Option<String>,
    pub tool_name: String,
    /// The hash of the bytes of `params.arguments`, or of `{}`.
    pub args_hash: Option<Sha256Digest>,
    /// The hash of the bytes of `result` or `error`.
    pub payload_hash: Option<Sha256Digest>,
    pub response: Option<ResponseKind>,
    pub problem: Option<ToolCallProblem>,
    pub is_retry: bool,
    pub request_state: Option<String>,
    pub is_stateless: bool,
    /// False if the message is a batch, is not a JSON object, or ends early.
    pub is_object: bool,
    pub syntax: Option<SyntaxError>,
    /// True if the message is a tool call, or some parsers take it for one.
    pub is_call: bool,
}

impl ScannedMessage {
    /// Reads the fields that decide from a message that cannot be parsed.
    pub fn read(message: &[u8]) -> Self {
        let mut scanner = Scanner::default();
        scanner.push(message);
        scanner.finish()
    }

    /// Why nothing can be decided about the message, if so.
    pub fn unreadable(&self) -> Option<String> {
        match self.syntax {
            Some(error) => Some(syntax_problem(error)),
            None if self.is_object => None,
            None => Some("the message is larger than the guard inspects, and is not a JSON object".to_owned()),
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Field {
    Id,
    Method,
    Params,
    Result,
    Error,
    Name,
    Arguments,
    InputResponses,
    RequestState,
    Meta,
    IsError,
    ResultType,
    Code,
    Message,
}

/// All fields: the section, the key, the field.
const FIELDS: [(Option<Field>, &str, Field); 15] = [
    (None, "id", Field::Id),
    (None, "method", Field::Method),
    (None, "params", Field::Params),
    (None, "result", Field::Result),
    (None, "error", Field::Error),
    (Some(Field::Params), "name", Field::Name),
    (Some(Field::Params), "arguments", Field::Arguments),
    (Some(Field::Params), "inputResponses", Field::InputResponses),
    (Some(Field::Params), "requestState", Field::RequestState),
    (Some(Field::Params), "_meta", Field::Meta),
    (Some(Field::Result), "isError", Field::IsError),
    (Some(Field::Result), "resultType", Field::ResultType),
    (Some(Field::Result), "requestState", Field::RequestState),
    (Some(Field::Error), "code", Field::Code),
    (Some(Field::Error), "message", Field::Message),
];

impl Field {
    const fn is_captured(self) -> bool {
        !matches!(self, Field::Params | Field::Result | Field::Error | Field::Arguments | Field::InputResponses)
    }

    const fn is_hashed(self) -> bool {
        matches!(self, Field::Result | Field::Error | Field::Arguments)
    }

    const fn is_section(self) -> bool {
        matches!(self, Field::Params | Field::Result | Field::Error)
    }
}

#[derive(Debug, Default)]
pub struct Scanner {
    tokenizer: Tokenizer,
    is_in_key: bool,
    key: Vec<u8>,
    section: Option<Field>,
    /// For depth 1 and 2: the field whose value is being read.
    current: [Option<Field>; 3],
    captured: Vec<u8>,
    capture: Option<(Field, usize)>,
    hashes: Vec<(Field, usize, Sha256Hasher)>,
    seen: Vec<Field>,
    name: Option<String>,
    /// True if the state is too long to be compared. The request is a new call then.
    has_long_state: bool,
    found: ScannedMessage,
    response: ResponseParts,
}

#[derive(Debug, Default)]
struct ResponseParts {
    has_result: bool,
    has_error: bool,
    is_error: bool,
    result_type: Option<String>,
    code: Option<i64>,
    message: Option<String>,
}

impl Scanner {
    /// Scans the next piece of the message. What comes after the first error of the syntax is not read.
    pub fn push(&mut self, piece: &[u8]) {
        let mut rest = piece;
        while let Some((token, length)) = self.tokenizer.read(rest) {
            let depth = self.tokenizer.open().len();
            match token {
                // Only the members of the message and of its sections decide.
                Token::Begin(Kind::Key) if depth <= 2 => {
                    self.is_in_key = true;
                    self.key.clear();
                }
                Token::Begin(kind @ (Kind::Object | Kind::Array)) => {
                    self.found.is_object |= depth == 1 && kind == Kind::Object;
                    self.start_value(depth - 1, rest[0]);
                }
                Token::Begin(Kind::String | Kind::Scalar) => self.start_value(depth, rest[0]),
                _ => {}
            }
            // The first byte of a value is part of it, so it is taken after the start and before the end.
            self.take(&rest[..length]);
            match token {
                Token::Content if self.is_in_key => self.push_key(&rest[..length]),
                Token::End(Kind::Key) if std::mem::take(&mut self.is_in_key) => self.end_key(depth),
                Token::End(Kind::Key) => {}
                Token::End(_) => self.end_value(depth),
                _ => {}
            }
            rest = &rest[length..];
        }
    }

    fn push_key(&mut self, bytes: &[u8]) {
        if self.key.len() + bytes.len() <= MAX_FIELD_BYTES {
            self.key.extend_from_slice(bytes);
        }
    }

    fn end_key(&mut self, depth: usize) {
        self.current[depth] = None;
        // Decoded: `n\u0061me` is `name` to every parser.
        let key: String = parse(&[b"\"", &*self.key, b"\""].concat()).unwrap_or_default();
        let section = match depth {
            1 => None,
            // Only the sections have fields.
            _ => match self.section {
                Some(section) => Some(section),
                None => return,
            },
        };
        match FIELDS.iter().find(|(of, name, _)| *of == section && *name == key) {
            Some((_, _, field)) => {
                // Parsers disagree on which value counts.
                if self.seen.contains(field) {
                    let problem = StrictError::DuplicateKey(key);
                    self.found.problem.get_or_insert(problem.into());
                }
                self.seen.push(*field);
                self.current[depth] = Some(*field);
            }
            None => {
                if let Some(known) = look_alike(&key) {
                    self.found.is_call |= depth == 1 && known == "method";
                    self.found.problem.get_or_insert(ToolCallProblem::LookAlike { key, known });
                }
            }
        }
    }

    fn start_value(&mut self, depth: usize, first: u8) {
        let Some(field) = self.current.get(depth).copied().flatten().filter(|_| depth > 0) else { return };
        if depth == 1 {
            self.section = field.is_section().then_some(field);
            self.response.has_result |= field == Field::Result;
            // An `error` that is `null` counts as missing.
            self.response.has_error |= field == Field::Error && first != b'n';
        }
        if field.is_captured() && self.capture.is_none() {
            self.captured.clear();
            self.capture = Some((field, depth));
        }
        if field.is_hashed() {
            self.hashes.push((field, depth, Sha256Hasher::default()));
        }
        match field {
            Field::InputResponses => self.found.is_retry = true,
            Field::Arguments if !matches!(first, b'{' | b'n') => {
                let problem = ToolCallProblem::Type { field: "arguments", expected: "an object" };
                self.found.problem.get_or_insert(problem);
            }
            _ => {}
        }
    }

    fn end_value(&mut self, depth: usize) {
        let Some(field) = self.current.get(depth).copied().flatten().filter(|_| depth > 0) else { return };
        self.current[depth] = None;
        if self.capture == Some((field, depth)) {
            self.capture = None;
            let bytes = std::mem::take(&mut self.captured);
            self.read_field(field, &bytes);
        }
        if let Some((_, _, hasher)) = self.hashes.pop_if(|(of, at, _)| (*of, *at) == (field, depth)) {
            let hash = Some(hasher.finish().0);
            if field == Field::Arguments {
                self.found.args_hash = hash;
            } else {
                self.found.payload_hash = hash;
            }
        }
        if depth == 1 {
            self.section = None;
        }
    }

    fn take(&mut self, bytes: &[u8]) {
        if self.capture.is_some() && self.captured.len() <= MAX_FIELD_BYTES {
            // One more than the limit, which shows that the value is too long.
            let room = (MAX_FIELD_BYTES + 1).saturating_sub(self.captured.len());
            self.captured.extend_from_slice(&bytes[..bytes.len().min(room)]);
        }
        for (_, _, hasher) in &mut self.hashes {
            hasher.update(bytes);
        }
    }

    fn read_field(&mut self, field: Field, bytes: &[u8]) {
        let value: Value = parse(bytes).unwrap_or_default();
        let text = || value.as_str().map(str::to_owned);
        match field {
            Field::Id => self.found.id = RequestId::parse(bytes),
            Field::Method => {
                self.found.is_call |= value == TOOLS_CALL;
                self.found.method = text();
            }
            Field::Name => self.name = text(),
            Field::RequestState if bytes.len() > MAX_FIELD_BYTES => self.has_long_state = true,
            Field::RequestState => {
                self.found.is_retry |= self.section == Some(Field::Params);
                self.found.request_state = Some(state_text(&value));
            }
            Field::Meta => self.found.is_stateless = value.get(PROTOCOL_VERSION).is_some(),
            // Repeated: an error for some parsers is an error.
            Field::IsError => self.response.is_error |= value == Value::Bool(true),
            Field::ResultType => self.response.result_type = text(),
            Field::Code => self.response.code = value.as_i64(),
            Field::Message => self.response.message = text(),
            Field::Params | Field::Result | Field::Error | Field::Arguments | Field::InputResponses => {}
        }
    }

    pub fn finish(mut self) -> ScannedMessage {
        self.found.is_object &= self.tokenizer.open().is_empty();
        self.found.syntax = self.tokenizer.finish().err();
        // A state that cannot be compared could belong to another call.
        self.found.is_retry &= !self.has_long_state;
        if self.found.is_call && self.name.is_none() {
            let problem = ToolCallProblem::Type { field: "name", expected: "a string" };
            self.found.problem.get_or_insert(problem);
        }
        self.found.tool_name = self.name.unwrap_or_default();
        let parts = self.response;
        if self.found.method.is_none() && (parts.has_result || parts.has_error) {
            self.found.response = Some(if parts.has_error {
                error_kind(parts.code, parts.message.unwrap_or_default())
            } else if parts.result_type.as_deref() == Some("input_required") {
                ResponseKind::InputRequired { request_state: self.found.request_state.clone() }
            } else if parts.is_error {
                tool_error_with("the tool reports an error; the result is too large to be inspected".to_owned())
            } else {
                ResponseKind::Result
            });
        }
        self.found
    }
}

pub(super) fn syntax_problem(error: SyntaxError) -> String {
    match error {
        SyntaxError::NotUtf8 { .. } => "the message is not UTF-8".to_owned(),
        SyntaxError::Unexpected { offset } => format!("the message is not JSON: unexpected byte at offset {offset}"),
        SyntaxError::SecondValue { .. } => "the message has more than one JSON value".to_owned(),
        SyntaxError::Unfinished => "the message is not JSON: it ends early".to_owned(),
        SyntaxError::TooDeep { .. } => format!("the message is nested more than {MAX_DEPTH} levels deep"),
    }
}

fn parse<T: DeserializeOwned>(bytes: &[u8]) -> Option<T> {
    serde_json::from_slice(bytes).ok()
}

#[cfg(test)]
#[path = "scanner_tests.rs"]
mod tests;
