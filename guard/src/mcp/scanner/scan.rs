//! Reads a message that is too large to be held in memory: piece by piece, and only the fields that decide.
//!
//! The scanner follows strings and brackets. It looks at the members of the message and of `params`, `result` and `error`, and
//! hashes the bytes of `arguments` and of `result`. It works on any bytes: a message of the server is forwarded whatever it is.
//! [`ScannedMessage::syntax`] states whether the message is JSON at all.

use counterproof_artifact::Sha256Digest;
use counterproof_artifact::canonical::Sha256Hasher;
use serde::de::DeserializeOwned;
use serde_json::Value;

use super::fields::{FIELDS, Field};
use super::syntax::{Syntax, SyntaxProblem};
use crate::mcp::client_message::state_text;
use crate::mcp::client_message::{PROTOCOL_VERSION, TOOLS_CALL, look_alike};
use crate::mcp::server_message::{error_kind, tool_error_with};
use crate::mcp::{RequestId, ResponseKind, StrictError, ToolCallProblem};

/// Longest key and longest small value that are read. Longer keys and values are not read.
const MAX_FIELD_BYTES: usize = 64 * 1024;

#[derive(Debug, Clone, Default)]
#[expect(clippy::struct_excessive_bools, reason = "facts of a message that do not depend on each other")]
pub struct ScannedMessage {
    pub id: Option<RequestId>,
    /// The method; none for a response.
    pub method: Option<String>,
    /// `params.name`.
    pub tool_name: String,
    /// The hash of the bytes of `params.arguments`, or of `{}`.
    pub args_hash: Option<Sha256Digest>,
    /// The hash of the bytes of `result` or `error`.
    pub payload_hash: Option<Sha256Digest>,
    /// The kind of the response, if the message is one.
    pub response: Option<ResponseKind>,
    pub problem: Option<ToolCallProblem>,
    /// True if the request continues an earlier one.
    pub is_retry: bool,
    /// The field `params.requestState`.
    pub request_state: Option<String>,
    /// True if the request states its protocol revision.
    pub is_stateless: bool,
    /// False if the message is a batch, is not a JSON object, or ends early.
    pub is_object: bool,
    /// Why the message is not one JSON value.
    pub syntax: Option<SyntaxProblem>,
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
            Some(problem) => Some(problem.to_string()),
            None if self.is_object => None,
            None => Some("the message is larger than the guard inspects, and is not a JSON object".to_owned()),
        }
    }
}

/// Where the scanner is in the text.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
enum Lexer {
    #[default]
    Between,
    /// Inside a string; `escaped` after a backslash.
    Text { escaped: bool, is_key: bool },
    /// Inside a number or a literal.
    Scalar,
}

#[derive(Debug, Default)]
pub struct Scanner {
    syntax: Syntax,
    lexer: Lexer,
    extent: Extent,
    depth: usize,
    /// For depth 1 and 2: whether the container is an object, and whether a key comes next.
    is_object: [bool; 3],
    awaits_key: [bool; 3],
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

/// How much of the message was read.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
enum Extent {
    #[default]
    Nothing,
    Beginning,
    Whole,
}

/// The parts of a response that state how a call ended.
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
    /// Scans the next piece of the message.
    pub fn push(&mut self, piece: &[u8]) {
        self.syntax.push(piece);
        let mut at = 0;
        // Start of the bytes that are not yet hashed and captured.
        let mut taken = 0;
        while at < piece.len() {
            let byte = piece[at];
            match self.lexer {
                Lexer::Text { escaped: false, is_key } => {
                    (at, taken) = self.text(piece, at, taken, is_key);
                    continue;
                }
                Lexer::Text { escaped: true, is_key } => {
                    if is_key {
                        self.push_key(&[byte]);
                    }
                    self.lexer = Lexer::Text { escaped: false, is_key };
                }
                Lexer::Scalar if !matches!(byte, b',' | b'}' | b']' | b' ' | b'\t' | b'\r' | b'\n') => {}
                Lexer::Scalar => {
                    self.take(&piece[taken..at]);
                    taken = at;
                    self.lexer = Lexer::Between;
                    self.end_value();
                    continue;
                }
                Lexer::Between => {
                    if starts_value(byte) && !self.expects_key() {
                        // The bytes before the value belong to values around it.
                        self.take(&piece[taken..at]);
                        taken = at;
                    }
                    self.between(byte);
                    if matches!(byte, b'}' | b']') {
                        self.take(&piece[taken..=at]);
                        taken = at + 1;
                        self.end_value();
                    }
                }
            }
            at += 1;
        }
        self.take(&piece[taken..]);
    }

    /// Scans a string up to its end or its next escape. Returns the new position, and the start of the bytes that were not yet
    /// taken.
    fn text(&mut self, piece: &[u8], at: usize, taken: usize, is_key: bool) -> (usize, usize) {
        // Long strings are most of a large message.
        let rest = &piece[at..];
        let skipped = memchr::memchr2(b'"', b'\\', rest).unwrap_or(rest.len());
        if is_key {
            self.push_key(&rest[..skipped]);
        }
        let at = at + skipped;
        match piece.get(at) {
            Some(b'\\') => {
                if is_key {
                    self.push_key(b"\\");
                }
                self.lexer = Lexer::Text { escaped: true, is_key };
                (at + 1, taken)
            }
            Some(_) => {
                self.lexer = Lexer::Between;
                if is_key {
                    self.end_key();
                    return (at + 1, taken);
                }
                self.take(&piece[taken..=at]);
                self.end_value();
                (at + 1, at + 1)
            }
            None => (at, taken),
        }
    }

    fn expects_key(&self) -> bool {
        (1..=2).contains(&self.depth) && self.is_object[self.depth] && self.awaits_key[self.depth]
    }

    fn between(&mut self, byte: u8) {
        match byte {
            b'"' if self.expects_key() => {
                self.key.clear();
                self.lexer = Lexer::Text { escaped: false, is_key: true };
            }
            b'"' => {
                self.start_value(byte);
                self.lexer = Lexer::Text { escaped: false, is_key: false };
            }
            b'{' | b'[' => {
                self.start_value(byte);
                self.depth += 1;
                if let Some(is_object) = self.is_object.get_mut(self.depth) {
                    *is_object = byte == b'{';
                    self.awaits_key[self.depth] = byte == b'{';
                }
            }
            b'}' | b']' => self.depth = self.depth.saturating_sub(1),
            b',' => {
                if self.depth <= 2 && self.depth > 0 {
                    self.awaits_key[self.depth] = self.is_object[self.depth];
                }
            }
            b':' | b' ' | b'\t' | b'\r' | b'\n' => {}
            _ => {
                self.start_value(byte);
                self.lexer = Lexer::Scalar;
            }
        }
        if self.depth > 0 {
            self.extent = Extent::Beginning;
        } else if self.extent == Extent::Beginning {
            self.extent = Extent::Whole;
        }
    }

    fn push_key(&mut self, bytes: &[u8]) {
        if self.key.len() + bytes.len() <= MAX_FIELD_BYTES {
            self.key.extend_from_slice(bytes);
        }
    }

    fn end_key(&mut self) {
        let depth = self.depth;
        self.awaits_key[depth] = false;
        self.current[depth] = None;
        let key: String = parse(&[b"\"", &*self.key, b"\""].concat()).unwrap_or_default();
        let section = match depth {
            1 => None,
            // Only the sections have fields of their own.
            _ => match self.section {
                Some(section) => Some(section),
                None => return,
            },
        };
        match FIELDS.iter().find(|(of, name, _)| *of == section && *name == key) {
            Some((_, _, field)) => {
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

    fn start_value(&mut self, first: u8) {
        let depth = self.depth;
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

    fn end_value(&mut self) {
        let depth = self.depth;
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

    /// Adds bytes to the values that are being read.
    fn take(&mut self, bytes: &[u8]) {
        if self.capture.is_some() && self.captured.len() <= MAX_FIELD_BYTES {
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

    /// Ends the message.
    pub fn finish(mut self) -> ScannedMessage {
        self.found.is_object = self.extent == Extent::Whole && self.is_object[1];
        self.found.syntax = self.syntax.finish().err();
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

fn starts_value(byte: u8) -> bool {
    !matches!(byte, b'}' | b']' | b',' | b':' | b' ' | b'\t' | b'\r' | b'\n')
}

fn parse<T: DeserializeOwned>(bytes: &[u8]) -> Option<T> {
    serde_json::from_slice(bytes).ok()
}
