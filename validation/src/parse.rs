//! Parses bytes into JSON values, and reports encoding errors, syntax errors and duplicate keys.

use std::cell::{Cell, RefCell};
use std::fmt;

use serde::de::{DeserializeSeed, Deserializer, MapAccess, SeqAccess, Visitor};
use serde_json::{Map, Number, Value};

use crate::Code;
use crate::excerpt::quote;
use crate::finding::{Findings, RuleFinding};
use crate::locate;
use crate::yaml::{self, YamlError};

pub(crate) const BYTE_ORDER_MARK: &[u8] = b"\xef\xbb\xbf";

/// Returns the text of a file that starts with `{` and is UTF-8. Any other file has findings anyway.
pub(crate) fn text(bytes: &[u8]) -> Option<&str> {
    (bytes.first() == Some(&b'{')).then(|| std::str::from_utf8(bytes).ok()).flatten()
}

/// Parses a document. Returns `None` after adding the reason to the findings.
pub(crate) fn parse(bytes: &[u8], findings: &mut Findings) -> Option<Value> {
    if bytes.starts_with(BYTE_ORDER_MARK) {
        let span = 0..BYTE_ORDER_MARK.len();
        findings.add_at(Code::ByteOrderMark, span, "the file starts with a byte order mark", "JSON without one");
    }
    let Text { body: text, skipped } = decode(bytes, "a JSON document", findings)?;
    let buffers = ParseBuffers::default();
    let mut reader = serde_json::Deserializer::from_str(text);
    let parsed = ValueSeed(&buffers).deserialize(&mut reader).and_then(|value| reader.end().map(|()| value));
    match parsed {
        Ok(value) => {
            // Located in a second pass: documents without duplicate keys, nearly all, do not pay for their positions.
            if buffers.has_duplicates() {
                report_duplicates(text, skipped, findings);
            }
            Some(value)
        }
        Err(error) => {
            report_syntax(&error, text, skipped, findings);
            None
        }
    }
}

/// The text of a file after its byte order mark.
struct Text<'a> {
    body: &'a str,
    /// The bytes of the byte order mark.
    skipped: usize,
}

/// Decodes a file. Returns `None` after adding the reason to the findings.
fn decode<'a>(bytes: &'a [u8], expected: &str, findings: &mut Findings) -> Option<Text<'a>> {
    let body = bytes.strip_prefix(BYTE_ORDER_MARK).unwrap_or(bytes);
    let skipped = bytes.len() - body.len();
    // Reported on its own: the parser would call a file that was never written a syntax error.
    if body.iter().all(u8::is_ascii_whitespace) {
        findings.add(Code::EmptyFile, "", "the file is empty", expected);
        return None;
    }
    match std::str::from_utf8(body) {
        Ok(body) => Some(Text { body, skipped }),
        Err(error) => {
            let at = skipped + error.valid_up_to();
            let message = format!("byte {at} (0x{:02x}) is not UTF-8", bytes.get(at).copied().unwrap_or_default());
            findings.add_at(Code::NotUtf8, at..at + 1, message, "UTF-8 text");
            None
        }
    }
}

/// Parses a YAML document. Returns `None` after adding the reason to the findings.
pub(crate) fn parse_yaml(bytes: &[u8], findings: &mut Findings) -> Option<Value> {
    let text = decode(bytes, "a YAML document", findings)?;
    yaml::parse(text.body).map_err(|error| report_yaml(&error, &text, findings)).ok()
}

fn report_yaml(error: &YamlError, text: &Text<'_>, findings: &mut Findings) {
    let start = error.position.map_or(0, |position| locate::offset(text.body, position));
    let end = text.body[start..].chars().next().map_or(start, |c| start + c.len_utf8());
    let finding = RuleFinding::new(Code::YamlSyntax, "", error.message.clone(), "a YAML document");
    findings.add_rule_at(finding.with_remedy(error.remedy), start + text.skipped..end + text.skipped);
}

fn report_duplicates(text: &str, skipped: usize, findings: &mut Findings) {
    let duplicates = locate::duplicate_keys(text);
    for duplicate in duplicates.listed {
        let key = quote(&locate::decode(&text[duplicate.span.clone()]));
        let span = duplicate.span.start + skipped..duplicate.span.end + skipped;
        let message = format!("the key {key} appears twice in its object");
        findings.add_with_span(Code::DuplicateKey, duplicate.pointer, Some(span), message, "unique keys");
    }
    findings.omit(duplicates.omitted);
}

fn report_syntax(error: &serde_json::Error, text: &str, skipped: usize, findings: &mut Findings) {
    let full = error.to_string();
    let message = full.split(" at line ").next().unwrap_or(&full);
    // The parser counts lines and bytes within a line from 1. At the end of the text its position is after the last byte.
    let line_start = match error.line() {
        0 | 1 => 0,
        line => text.match_indices('\n').nth(line - 2).map_or(text.len(), |(at, _)| at + 1),
    };
    let mut start = (line_start + error.column().saturating_sub(1)).min(text.len());
    // The column of the parser counts bytes and may point into a character.
    while !text.is_char_boundary(start) {
        start -= 1;
    }
    let end = text[start..].chars().next().map_or(start, |c| start + c.len_utf8());
    let (code, expected) = if message.starts_with("recursion limit") {
        (Code::JsonTooDeep, "at most 127 levels")
    } else {
        (Code::JsonSyntax, "a JSON document")
    };
    findings.add_at(code, start + skipped..end + skipped, message, expected);
}

/// The elements of open arrays and objects. Their number is known only at the end; collecting them here lets each container
/// be allocated once, at its final size.
#[derive(Debug, Default)]
pub(crate) struct ParseBuffers {
    has_duplicates: Cell<bool>,
    items: RefCell<Vec<Value>>,
    fields: RefCell<Vec<(String, Value)>>,
}

impl ParseBuffers {
    /// True where an object has a key twice.
    pub(crate) const fn has_duplicates(&self) -> bool {
        self.has_duplicates.get()
    }
}

/// Builds a [`Value`] as `serde_json` does, and detects duplicate keys, which `serde_json` silently resolves to the last
/// value.
#[derive(Clone, Copy)]
pub(crate) struct ValueSeed<'a>(pub(crate) &'a ParseBuffers);

impl<'de> DeserializeSeed<'de> for ValueSeed<'_> {
    type Value = Value;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Value, D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for ValueSeed<'_> {
    type Value = Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("any JSON value")
    }

    fn visit_unit<E>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_bool<E>(self, value: bool) -> Result<Value, E> {
        Ok(Value::Bool(value))
    }

    fn visit_i64<E>(self, value: i64) -> Result<Value, E> {
        Ok(Value::Number(value.into()))
    }

    fn visit_u64<E>(self, value: u64) -> Result<Value, E> {
        Ok(Value::Number(value.into()))
    }

    fn visit_f64<E: serde::de::Error>(self, value: f64) -> Result<Value, E> {
        Number::from_f64(value).map(Value::Number).ok_or_else(|| E::custom("number out of range"))
    }

    fn visit_str<E>(self, value: &str) -> Result<Value, E> {
        Ok(Value::String(value.to_owned()))
    }

    fn visit_string<E>(self, value: String) -> Result<Value, E> {
        Ok(Value::String(value))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Value, A::Error> {
        let read = &self.0.items;
        // One buffer for all nesting levels: each array owns the part after `start`, so vectors are allocated at their final size.
        let start = read.borrow().len();
        while let Some(item) = items.next_element_seed(self)? {
            read.borrow_mut().push(item);
        }
        Ok(Value::Array(read.borrow_mut().drain(start..).collect()))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut entries: A) -> Result<Value, A::Error> {
        let read = &self.0.fields;
        let start = read.borrow().len();
        while let Some(key) = entries.next_key::<String>()? {
            let value = entries.next_value_seed(self)?;
            read.borrow_mut().push((key, value));
        }
        let mut read = read.borrow_mut();
        let mut object = Map::with_capacity(read.len() - start);
        for (key, value) in read.drain(start..) {
            if object.insert(key, value).is_some() {
                self.0.has_duplicates.set(true);
            }
        }
        Ok(Value::Object(object))
    }
}

#[cfg(test)]
mod tests {
    use camino::Utf8Path;
    use proptest::prelude::*;

    use super::*;
    use crate::Finding;

    fn parsed(bytes: &[u8]) -> (Option<Value>, Vec<Finding>) {
        let mut findings = Findings::new(Utf8Path::new("x.json"));
        let value = parse(bytes, &mut findings);
        (value, findings.into_located(bytes))
    }

    fn only(bytes: &[u8]) -> (Code, usize, usize) {
        let (_, findings) = parsed(bytes);
        let [finding] = &findings[..] else { panic!("{findings:#?}") };
        let position = finding.position.map_or((0, 0), |position| (position.line, position.column));
        (finding.code, position.0, position.1)
    }

    #[test]
    fn each_kind_of_invalid_json_has_its_code_and_position() {
        assert_eq!(only(b""), (Code::EmptyFile, 0, 0));
        assert_eq!(only(b" \n"), (Code::EmptyFile, 1, 1));
        assert_eq!(only(b"{\n  \"a\": \xff}"), (Code::NotUtf8, 2, 8));
        assert_eq!(only("{\n \"é\": x}".as_bytes()), (Code::JsonSyntax, 2, 7));
        assert_eq!(only(b"{\"a\": 1,\n").0, Code::JsonSyntax);
        assert_eq!(only(b"{} {}"), (Code::JsonSyntax, 1, 4));
        assert_eq!(only(b"[1e999]").0, Code::JsonSyntax);
        assert_eq!(only(&[b'['; 1000]).0, Code::JsonTooDeep);
        assert_eq!(only(b"{\"a\": 1,\n \"a\": 2}"), (Code::DuplicateKey, 2, 2));
    }

    #[test]
    fn a_byte_order_mark_is_a_finding_and_the_rest_is_parsed() {
        let (value, findings) = parsed(b"\xef\xbb\xbf{\"a\": 1}");
        assert_eq!(value, Some(serde_json::json!({"a": 1})));
        assert_eq!(findings.iter().map(|finding| finding.code).collect::<Vec<_>>(), [Code::ByteOrderMark]);
    }

    #[test]
    fn findings_of_duplicate_keys_are_bounded() {
        let key = "k".repeat(100_000);
        let (_, findings) = parsed(format!("{{\"{key}\": {{\"{key}\": 1, \"{key}\": 2}}}}").as_bytes());
        let [finding] = &findings[..] else { panic!("{}", findings.len()) };
        assert!(finding.message.len() < 400 && finding.pointer.is_empty(), "{}", finding.message);
        let many = format!("{{{}\"a\": 0}}", "\"a\": 0, ".repeat(5000));
        let (_, findings) = parsed(many.as_bytes());
        assert_eq!(findings.last().map(|finding| finding.message.as_str()), Some("4000 more findings are not listed"));
    }

    proptest! {
        #[test]
        fn results_equal_those_of_serde_json(bytes: Vec<u8>, json in "[\\[\\]{}\",:\\\\a1.e +-]{0,40}") {
            for bytes in [&bytes[..], json.as_bytes()] {
                let (value, findings) = parsed(bytes);
                let body = bytes.strip_prefix(BYTE_ORDER_MARK).unwrap_or(bytes);
                prop_assert_eq!(&value, &serde_json::from_slice::<Value>(body).ok());
                prop_assert!(value.is_some() || !findings.is_empty());
            }
        }
    }
}
