//! Redaction of JSON: secrets are masked so that a JSON text stays one, with the same structure.

use std::borrow::Cow;

use counterproof_json_text::{Kind, Token, Tokenizer};

use crate::redactor::{Applied, Redactor};
use crate::stream::RedactingStream;

/// Strings beyond this length are redacted as they arrive, in bytes.
const BUFFERED: usize = 64 * 1024;

/// Bytes between two strings that are held back at least: if they turn out to be no JSON, they may be the start of a secret. At most
/// twice as many, and a number, are held back.
const HELD: usize = 1024;

/// Longest number or literal in bytes: one is held back as a whole, because a mask replaces it as a whole.
const MAX_SCALAR_BYTES: usize = 4096;

/// Deepest nesting that is followed. Each level costs a byte of memory for as long as the line.
const MAX_DEPTH: usize = 4096;

/// Fields of a message by which the other side recognises it. Their values are never masked.
const ENVELOPE: [&[u8]; 3] = [b"jsonrpc", b"id", b"method"];

/// What a JSON text is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum JsonUse {
    /// A JSON-RPC message, or a batch of them, which a program reads.
    ///
    /// Secrets are masked within string values, and within keys that have other characters than letters, `_` and `$`: no key of a
    /// protocol is one of these. Numbers, and the values of `jsonrpc`, `id` and `method` of a message stay.
    Message,
    /// A value that is stored. Secrets are masked within all strings and keys. The mask replaces a number with a secret, as a string.
    Storage,
}

/// Redacts a whole line or value. A text that is not JSON is redacted as text.
pub fn redact_json<'a>(redactor: &Redactor, text: &'a [u8], usage: JsonUse, applied: &mut Applied) -> Cow<'a, [u8]> {
    let mut applied_to_text = Applied::default();
    let masked = redactor.bytes(text, &mut applied_to_text);
    // Nearly all texts have no secret. They are not parsed.
    if matches!(masked, Cow::Borrowed(_)) {
        return masked;
    }
    let mut stream = JsonRedactingStream::new(redactor.clone(), usage);
    let mut json = stream.push(text);
    let Ok((rest, applied_to_json)) = stream.finish_json() else {
        applied.merge(&applied_to_text);
        return masked;
    };
    applied.merge(&applied_to_json);
    json.extend(rest);
    Cow::Owned(json)
}

/// Redacts one line that may be JSON, as it arrives. From the first byte on that cannot be JSON, the line is redacted as text.
#[derive(Debug)]
pub struct JsonRedactingStream {
    redactor: Redactor,
    usage: JsonUse,
    state: State,
    tokenizer: Tokenizer,
    /// The bytes since the last string that were not yet returned.
    held: Vec<u8>,
    /// True between a key of the envelope and its value.
    is_envelope: bool,
    /// True after the end of the outermost value.
    is_complete: bool,
    applied: Applied,
}

#[derive(Debug)]
enum State {
    /// Between strings, numbers and literals.
    Between,
    /// In a number or a literal, of which these bytes were read.
    Scalar(Vec<u8>),
    /// In a string.
    Text(Text),
    /// In something that is not JSON.
    Other(RedactingStream),
}

#[derive(Debug)]
struct Text {
    role: Role,
    /// The content, as long as it is short.
    content: Vec<u8>,
    /// Redacts a long content.
    stream: Option<RedactingStream>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Role {
    Key,
    /// The value of a field of the envelope.
    Envelope,
    Value,
}

impl JsonRedactingStream {
    /// Starts a line.
    pub fn new(redactor: Redactor, usage: JsonUse) -> Self {
        Self {
            redactor,
            usage,
            state: State::Between,
            tokenizer: Tokenizer::with_max_depth(MAX_DEPTH),
            held: Vec::new(),
            is_envelope: false,
            is_complete: false,
            applied: Applied::default(),
        }
    }

    /// Adds a part of the line. Returns the bytes that are safe to output.
    pub fn push(&mut self, part: &[u8]) -> Vec<u8> {
        let mut out = Vec::with_capacity(part.len());
        let mut rest = part;
        while !rest.is_empty() {
            let read = self.step(rest, &mut out);
            rest = &rest[read..];
        }
        out
    }

    /// Ends the line. Returns the remaining bytes, and the rules that were applied.
    pub fn finish(self) -> (Vec<u8>, Applied) {
        match self.finish_json() {
            // Only `redact_json` has to know whether it was JSON.
            Ok(end) | Err(end) => end,
        }
    }

    /// Ends the line as [`Self::finish`] does. Returns the same as an error if the line was not JSON.
    fn finish_json(mut self) -> Result<(Vec<u8>, Applied), (Vec<u8>, Applied)> {
        let mut out = Vec::new();
        // A number at the top has no delimiter: the end of the line ends it.
        if matches!(self.state, State::Scalar(_)) && self.tokenizer.finish().is_ok() {
            self.end_scalar(&mut out);
            self.is_complete = true;
        }
        if matches!(self.state, State::Between | State::Scalar(_)) {
            if matches!(self.state, State::Between) && self.is_complete {
                out.append(&mut self.held);
                return Ok((out, self.applied));
            }
            self.give_up(&mut out);
        }
        match std::mem::replace(&mut self.state, State::Between) {
            // A string without an end is not JSON.
            State::Text(text) => self.end_text(Text { role: Role::Value, ..text }, &mut out),
            State::Other(stream) => self.end_stream(stream, &mut out),
            State::Between | State::Scalar(_) => {}
        }
        Err((out, self.applied))
    }

    /// Reads at least one byte, and returns how many. Reads none if only the state changes.
    fn step(&mut self, rest: &[u8], out: &mut Vec<u8>) -> usize {
        if let State::Other(stream) = &mut self.state {
            out.extend(stream.push(rest));
            return rest.len();
        }
        let Some((token, length)) = self.tokenizer.read(rest) else {
            // Reads nothing, so that the same bytes are read again as text.
            self.give_up(out);
            return 0;
        };
        let bytes = &rest[..length];
        let is_envelope = self.is_envelope;
        // The colon after the key is a gap. Any other token is the value, or follows it.
        self.is_envelope &= token == Token::Gap;
        match (token, &mut self.state) {
            (Token::Begin(Kind::Key), _) => self.begin_text(Role::Key, out),
            (Token::Begin(Kind::String), _) => {
                self.begin_text(if is_envelope { Role::Envelope } else { Role::Value }, out);
            }
            (Token::Begin(Kind::Scalar), _) => self.state = State::Scalar(Vec::new()),
            (Token::Content, State::Text(text)) => text.push(bytes, &self.redactor, out),
            (Token::Content, State::Scalar(scalar)) => {
                scalar.extend_from_slice(bytes);
                if scalar.len() > MAX_SCALAR_BYTES {
                    self.give_up(out);
                }
            }
            (Token::End(Kind::Key | Kind::String), _) => {
                if let State::Text(text) = std::mem::replace(&mut self.state, State::Between) {
                    self.end_text(text, out);
                    out.push(b'"');
                }
            }
            (Token::End(Kind::Scalar), _) => self.end_scalar(out),
            (Token::Gap | Token::Content | Token::Begin(_) | Token::End(_), _) => {
                self.held.extend_from_slice(bytes);
                // Only at twice the length, so that each byte is moved at most once.
                if self.held.len() > 2 * HELD {
                    let safe = self.held.len() - HELD;
                    out.extend(self.held.drain(..safe));
                }
            }
        }
        if let Token::End(kind) = token {
            self.is_complete = kind != Kind::Key && self.tokenizer.open().is_empty();
        }
        length
    }

    fn begin_text(&mut self, role: Role, out: &mut Vec<u8>) {
        out.append(&mut self.held);
        out.push(b'"');
        self.state = State::Text(Text { role, content: Vec::new(), stream: None });
    }

    fn end_scalar(&mut self, out: &mut Vec<u8>) {
        let State::Scalar(scalar) = &mut self.state else { return };
        // A program that reads a message expects a number where one was sent, so only stored numbers become strings.
        let is_number = !scalar[0].is_ascii_alphabetic();
        if self.usage == JsonUse::Storage
            && is_number
            && matches!(self.redactor.bytes(scalar, &mut self.applied), Cow::Owned(_))
        {
            out.append(&mut self.held);
            out.push(b'"');
            self.redactor.mask_bytes(&[], out);
            out.push(b'"');
        } else {
            self.held.append(scalar);
        }
        self.state = State::Between;
    }

    /// Treats the rest of the line as text.
    fn give_up(&mut self, out: &mut Vec<u8>) {
        let mut stream = RedactingStream::new(self.redactor.clone());
        // The bytes that were held back may be the start of a secret that the rest of the line continues.
        out.extend(stream.push(&std::mem::take(&mut self.held)));
        if let State::Scalar(scalar) = &self.state {
            out.extend(stream.push(scalar));
        }
        self.state = State::Other(stream);
    }

    /// Writes the content of a string that has ended.
    fn end_text(&mut self, text: Text, out: &mut Vec<u8>) {
        let Text { role, content, stream, .. } = text;
        // No key or id of a protocol is as long as a string with a stream, so its role does not matter.
        if let Some(stream) = stream {
            return self.end_stream(stream, out);
        }
        let is_message = self.usage == JsonUse::Message;
        if role == Role::Key {
            self.is_envelope = is_message && self.is_in_message() && ENVELOPE.contains(&content.as_slice());
        }
        let is_kept = match role {
            Role::Key => is_message && content.iter().all(|byte| is_of_protocol_key(*byte)),
            Role::Envelope => true,
            Role::Value => false,
        };
        if is_kept {
            return out.extend(content);
        }
        out.extend_from_slice(&self.redactor.json_string(&content, &mut self.applied));
    }

    /// True for the keys of a JSON-RPC message: of the outermost object, or of an element of a batch.
    fn is_in_message(&self) -> bool {
        matches!(self.tokenizer.open(), [Kind::Object] | [Kind::Array, Kind::Object])
    }

    fn end_stream(&mut self, stream: RedactingStream, out: &mut Vec<u8>) {
        let (rest, applied) = stream.finish();
        self.applied.merge(&applied);
        out.extend(rest);
    }
}

impl Text {
    fn push(&mut self, content: &[u8], redactor: &Redactor, out: &mut Vec<u8>) {
        if let Some(stream) = &mut self.stream {
            out.extend(stream.push(content));
            return;
        }
        self.content.extend_from_slice(content);
        // Without this, one long string would be held in memory completely.
        if self.content.len() > BUFFERED {
            let mut stream = RedactingStream::for_json_string(redactor.clone());
            out.extend(stream.push(&std::mem::take(&mut self.content)));
            self.stream = Some(stream);
        }
    }
}

/// True for the characters of keys that protocols and schemas define.
fn is_of_protocol_key(byte: u8) -> bool {
    byte.is_ascii_alphabetic() || matches!(byte, b'_' | b'$')
}
