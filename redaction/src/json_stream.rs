//! Redaction of JSON-RPC messages: only string values and unusual keys are masked, so that a message stays a message.

use std::borrow::Cow;

use serde_json::Value;

use crate::redactor::{Applied, Redactor};
use crate::stream::RedactingStream;

/// Strings beyond this length are redacted as they arrive, in bytes.
const BUFFERED: usize = 64 * 1024;

/// Bytes between two strings that are held back at most. If they turn out to be no JSON, they may be the start of a secret.
const HELD: usize = 1024;

/// Largest depth whose containers are tracked. Deeper messages are redacted as text.
const MAX_DEPTH: usize = 4096;

/// Fields of a message by which the other side recognises it. Their values are never masked.
const ENVELOPE: [&[u8]; 3] = [b"jsonrpc", b"id", b"method"];

/// Names of JSON besides numbers.
const LITERALS: [&[u8]; 3] = [b"true", b"false", b"null"];

/// Redacts one line that may be a JSON-RPC message, or a batch of them.
///
/// In JSON, secrets are masked within string values, and within keys that have other characters than letters, `_` and `$`: no key of
/// a protocol is one of these. Numbers, literals, and the values of `jsonrpc`, `id` and `method` of a message stay. From the first
/// byte on that cannot be JSON, the line is redacted as text.
#[derive(Debug)]
pub struct JsonRedactingStream {
    redactor: Redactor,
    state: State,
    /// The bytes since the last string that were not yet returned.
    held: Vec<u8>,
    /// The containers around the current place: true for objects.
    containers: Vec<bool>,
    /// True where the next string is a key.
    expects_key: bool,
    /// True for the value of a field of the envelope.
    is_envelope: bool,
    applied: Applied,
}

#[derive(Debug)]
enum State {
    /// Between strings.
    Between,
    /// In a number.
    Number,
    /// In a literal, of which these bytes were read.
    Literal(Vec<u8>),
    /// In a string.
    Text(Text),
    /// In something that is not JSON.
    Other(RedactingStream),
}

#[derive(Debug)]
struct Text {
    is_key: bool,
    is_escaped: bool,
    /// The content, as long as it is short.
    content: Vec<u8>,
    /// Redacts a long content.
    stream: Option<RedactingStream>,
}

impl JsonRedactingStream {
    /// Starts a line.
    pub fn new(redactor: Redactor) -> Self {
        Self {
            redactor,
            state: State::Between,
            held: Vec::new(),
            containers: Vec::new(),
            expects_key: false,
            is_envelope: false,
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
    pub fn finish(mut self) -> (Vec<u8>, Applied) {
        let mut out = Vec::new();
        if let State::Literal(word) = &self.state
            && !LITERALS.contains(&word.as_slice())
        {
            self.give_up(&mut out);
        }
        match std::mem::replace(&mut self.state, State::Between) {
            State::Between | State::Number => out.append(&mut self.held),
            State::Literal(word) => out.extend([std::mem::take(&mut self.held), word].concat()),
            State::Text(text) => {
                // A string without an end is not JSON.
                self.is_envelope = false;
                self.end_text(Text { is_key: false, ..text }, &mut out);
            }
            State::Other(stream) => {
                let (rest, applied) = stream.finish();
                self.applied.merge(&applied);
                out.extend(rest);
            }
        }
        (out, self.applied)
    }

    /// Reads at least one byte, and returns how many. Reads none if only the state changes.
    fn step(&mut self, rest: &[u8], out: &mut Vec<u8>) -> usize {
        let byte = rest[0];
        match &mut self.state {
            State::Other(stream) => {
                out.extend(stream.push(rest));
                rest.len()
            }
            State::Text(text) => {
                let (read, is_end) = text.read(rest, &self.redactor, self.is_envelope, out);
                if is_end && let State::Text(text) = std::mem::replace(&mut self.state, State::Between) {
                    self.end_text(text, out);
                    out.push(b'"');
                }
                read
            }
            State::Number if byte.is_ascii_digit() || b"+-.eE".contains(&byte) => {
                self.hold(byte, out);
                1
            }
            State::Number => {
                self.state = State::Between;
                0
            }
            State::Literal(word) if byte.is_ascii_alphabetic() => {
                word.push(byte);
                let is_possible = LITERALS.iter().any(|literal| literal.starts_with(word));
                if !is_possible {
                    self.give_up(out);
                }
                1
            }
            State::Literal(word) if LITERALS.contains(&word.as_slice()) => {
                self.held.append(word);
                self.state = State::Between;
                0
            }
            State::Literal(_) => {
                self.give_up(out);
                0
            }
            State::Between => self.between(byte, out),
        }
    }

    /// Reads a byte outside of strings, numbers and literals.
    fn between(&mut self, byte: u8, out: &mut Vec<u8>) -> usize {
        match byte {
            b' ' | b'\t' | b'\r' | b'\n' | b':' => {}
            b'{' | b'[' if self.containers.len() < MAX_DEPTH => {
                self.containers.push(byte == b'{');
                self.expects_key = byte == b'{';
                self.is_envelope = false;
            }
            b'}' | b']' => {
                self.containers.pop();
                self.expects_key = false;
                self.is_envelope = false;
            }
            b',' => {
                self.expects_key = self.containers.last() == Some(&true);
                self.is_envelope = false;
            }
            b'"' => {
                out.append(&mut self.held);
                out.push(byte);
                let is_key = std::mem::take(&mut self.expects_key);
                self.state = State::Text(Text { is_key, is_escaped: false, content: Vec::new(), stream: None });
                return 1;
            }
            b'-' | b'0'..=b'9' => self.state = State::Number,
            b't' | b'f' | b'n' => {
                self.state = State::Literal(vec![byte]);
                return 1;
            }
            _ => {
                self.give_up(out);
                return 0;
            }
        }
        self.hold(byte, out);
        1
    }

    fn hold(&mut self, byte: u8, out: &mut Vec<u8>) {
        if self.held.len() == 2 * HELD {
            out.extend(self.held.drain(..HELD));
        }
        self.held.push(byte);
    }

    /// Treats the rest of the line as text.
    fn give_up(&mut self, out: &mut Vec<u8>) {
        let mut stream = RedactingStream::new(self.redactor.clone());
        out.extend(stream.push(&std::mem::take(&mut self.held)));
        if let State::Literal(word) = &self.state {
            out.extend(stream.push(word));
        }
        self.state = State::Other(stream);
    }

    /// Writes the content of a string that has ended.
    fn end_text(&mut self, text: Text, out: &mut Vec<u8>) {
        let Text { is_key, content, stream, .. } = text;
        if is_key {
            // The message is an object, or an element of a batch.
            let is_message = matches!(self.containers.as_slice(), [true] | [false, true]);
            self.is_envelope = is_message && ENVELOPE.contains(&content.as_slice());
        }
        let is_kept = is_key && stream.is_none() && content.iter().all(|byte| is_of_protocol_key(*byte));
        if is_kept || !is_key && self.is_envelope {
            out.extend(content);
            return;
        }
        match stream {
            Some(stream) => {
                let (rest, applied) = stream.finish();
                self.applied.merge(&applied);
                out.extend(rest);
            }
            None => self.redact_string(&content, out),
        }
    }

    /// Masks secrets in the content of a string, which stays the content of a string.
    fn redact_string(&mut self, content: &[u8], out: &mut Vec<u8>) {
        let masked = self.redactor.bytes(content, &mut self.applied);
        if matches!(masked, Cow::Borrowed(_)) || decoded(&masked).is_some() {
            out.extend_from_slice(&masked);
            return;
        }
        // What looks like a secret starts within an escape, such as the `n` of `\n`.
        match decoded(content) {
            Some(text) => {
                let quoted = Value::from(self.redactor.text(&text, &mut self.applied)).to_string();
                out.extend_from_slice(&quoted.as_bytes()[1..quoted.len() - 1]);
            }
            None => out.extend_from_slice(&masked),
        }
    }
}

impl Text {
    /// Reads up to the end of the string, or of the bytes. Returns how many bytes were read, and whether the string has ended.
    fn read(&mut self, rest: &[u8], redactor: &Redactor, is_kept: bool, out: &mut Vec<u8>) -> (usize, bool) {
        let mut end = None;
        for (at, byte) in rest.iter().enumerate() {
            if self.is_escaped {
                self.is_escaped = false;
            } else if *byte == b'\\' {
                self.is_escaped = true;
            } else if *byte == b'"' {
                end = Some(at);
                break;
            }
        }
        let content = &rest[..end.unwrap_or(rest.len())];
        match &mut self.stream {
            _ if is_kept && !self.is_key => out.extend_from_slice(content),
            Some(stream) => out.extend(stream.push(content)),
            None => {
                self.content.extend_from_slice(content);
                if self.content.len() > BUFFERED {
                    let mut stream = RedactingStream::new(redactor.clone());
                    out.extend(stream.push(&std::mem::take(&mut self.content)));
                    self.stream = Some(stream);
                }
            }
        }
        (end.map_or(rest.len(), |at| at + 1), end.is_some())
    }
}

/// Decodes the escapes of a string. Returns `None` if they are invalid.
fn decoded(content: &[u8]) -> Option<String> {
    serde_json::from_slice(&[b"\"", content, b"\""].concat()).ok()
}

/// True for the characters of keys that protocols and schemas define.
fn is_of_protocol_key(byte: u8) -> bool {
    byte.is_ascii_alphabetic() || matches!(byte, b'_' | b'$')
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn masked(secret: &str, line: &str, size: usize) -> String {
        let redactor = Redactor::of_values([secret]).unwrap();
        let mut stream = JsonRedactingStream::new(redactor);
        let mut out: Vec<u8> = line.as_bytes().chunks(size).flat_map(|part| stream.push(part)).collect();
        out.extend(stream.finish().0);
        String::from_utf8(out).unwrap()
    }

    #[track_caller]
    fn check(secret: &str, line: &str, expected: &str) {
        for size in [1, 3, line.len()] {
            assert_eq!(masked(secret, line, size), expected, "{size}");
        }
    }

    #[test]
    fn ids_numbers_literals_and_keys_of_the_protocol_stay() {
        let line =
            "{\"jsonrpc\":\"2.0\", \"id\": 1234, \"result\":{\"n\":[1234,-1234.5e3,true,null],\"text\":\"a 1234\"}}\n";
        check("1234", line, &line.replace("a 1234", "a [redacted]"));
        let line = r#"{"jsonrpc":"2.0","id":"text","method":"text","result":{"type":"x","text":"a text","id":"text"}}"#;
        let expected = r#"{"jsonrpc":"2.0","id":"text","method":"text","result":{"type":"x","text":"a [redacted]","id":"[redacted]"}}"#;
        check("text", line, expected);
        check("result", r#"[{"id":"result","result":"result"}]"#, r#"[{"id":"result","result":"[redacted]"}]"#);
        check("true", r#"{"a":true,"b":"true"}"#, r#"{"a":true,"b":"[redacted]"}"#);
    }

    #[test]
    fn keys_with_other_characters_than_those_of_protocols_are_masked() {
        check(
            "tok-1234",
            r#"{"result":{"a tok-1234":"x","tok-1234":2}}"#,
            r#"{"result":{"a [redacted]":"x","[redacted]":2}}"#,
        );
        check("to\"k\\1", r#"{"r":{"to\"k\\1":"to\"k\\1 \\"}}"#, r#"{"r":{"[redacted]":"[redacted] \\"}}"#);
    }

    #[test]
    fn lines_that_are_not_json_are_redacted_as_text() {
        for line in [
            "hunter2-x",
            "{hunter2-x}",
            "{\"a\": nul hunter2-x",
            "{\"a\": hunter2-x}",
            "truehunter2-x",
            "{\"a\": \"hunter2-x",
        ] {
            check("hunter2-x", line, &line.replace("hunter2-x", "[redacted]"));
        }
        check("12-hunter2", "[12:30:05] 12-hunter2", "[12:30:05] [redacted]");
        check("7,1,true", "7,1,true 7,1,truex", "[redacted] [redacted]x");
        let deep = format!("{}hunter2-x", "[".repeat(MAX_DEPTH + 1));
        assert!(masked("hunter2-x", &deep, 7).ends_with("[[redacted]"));
        check("hunter2-x", "nul", "nul");
        check("hunter2-x", "7 true", "7 true");
    }

    #[test]
    fn an_escape_is_never_cut() {
        check("nabcd", r#"{"a":"x\nabcd","b":"nabcd \nabcd"}"#, r#"{"a":"x\nabcd","b":"[redacted] \nabcd"}"#);
    }

    #[test]
    fn a_long_string_is_redacted_as_it_arrives() {
        let text = format!("{}hunter2-x", "x".repeat(1000)).repeat(300);
        let line = format!("{{\"id\":1,\"result\":\"{text}\"}}");
        let expected = line.replace("hunter2-x", "[redacted]");
        for size in [1000, 100_000, line.len()] {
            assert_eq!(masked("hunter2-x", &line, size), expected);
        }
    }

    proptest! {
        #[test]
        fn a_line_without_the_secret_stays_as_it_is(line in r#"[\[\]{}:,"a-e0-9tfn\\ .u-]{0,60}"#, size in 1_usize..9) {
            prop_assert_eq!(masked("hunter2-x", &line, size), line);
        }

        #[test]
        fn json_stays_json(value in "[a-z\"\\\\/ 0-9]{0,12}", secret in "[a-z0-9]{4,6}", size in 1_usize..9) {
            let line = serde_json::json!({"id": 1, "result": {"value": [value, 1234], "text": format!("x{secret}")}}).to_string();
            let masked = masked(&secret, &line, size);
            prop_assert!(serde_json::from_str::<serde_json::Value>(&masked).is_ok(), "{}", masked);
            prop_assert!(masked.contains("[redacted]"));
        }
    }
}
