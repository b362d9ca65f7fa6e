//! One file, read and parsed, with its findings: encoding, syntax and duplicate keys.

use std::io;

use camino::{Utf8Path, Utf8PathBuf};
use counterproof_json_text as json_text;
use counterproof_store::confined_path::{self, ResolveError};
use counterproof_store::{EVALUATION_FILE, read_file};
use serde_json::Value;

use crate::Code;
use crate::finding::quote;
use crate::finding::{Finding, Findings, RuleFinding};
use crate::yaml::{self, YamlError};

/// Reads a document of a folder without leaving the folder. A failure becomes a finding, which quotes no content.
pub(crate) fn read(root: &Utf8Path, name: &str, findings: &mut Findings) -> Option<Vec<u8>> {
    // An evaluation holds every case of a run, so it can be larger than any other document of the folder.
    let limit = if name == EVALUATION_FILE { read_file::MAX_LARGE_BYTES } else { read_file::MAX_DOCUMENT_BYTES };
    let error = match confined_path::read_up_to(root, name, limit) {
        Ok(bytes) => return Some(bytes),
        Err(error) => error,
    };
    let (code, expected) = match error {
        ResolveError::Escapes { .. } => (Code::HrefEscapes, "the document itself, in its folder"),
        ResolveError::NotAFile { .. } => (Code::Unreadable, "a file, not a folder, a pipe or a device"),
        ResolveError::Missing { .. } | ResolveError::Io { .. } => (Code::Unreadable, "a file that can be read"),
    };
    // Only the cause: the finding names the file already.
    let message = match error {
        ResolveError::Missing { source, .. } | ResolveError::Io { source, .. } => source.to_string(),
        error => counterproof_artifact::escape_invisible(&error.to_string()),
    };
    findings.add(code, "", message, expected);
    None
}

/// A file that was read and parsed, with the findings up to now.
#[derive(Debug)]
pub(crate) struct Document {
    pub(crate) path: Utf8PathBuf,
    /// Null if the file could not be parsed; `findings` has the reason.
    pub(crate) value: Value,
    pub(crate) is_json: bool,
    pub(crate) findings: Findings,
    bytes: Vec<u8>,
}

impl Document {
    /// Reads a file that the caller named, without confining it to a folder. It may be a pipe.
    pub(crate) fn read_requested(path: &Utf8Path) -> Self {
        Self::read_with(read_file::read_argument, path)
    }

    /// Reads a regular file that the walk of a tree found, without confining it to a folder.
    pub(crate) fn read_walked(path: &Utf8Path) -> Self {
        Self::read_with(read_file::read, path)
    }

    fn read_with(read: fn(&Utf8Path, u64) -> io::Result<Vec<u8>>, path: &Utf8Path) -> Self {
        let mut findings = Findings::new(path);
        // The kind of the document is known only after parsing, so the largest limit applies.
        let bytes = read(path, read_file::MAX_LARGE_BYTES)
            .map_err(|error| findings.add(Code::Unreadable, "", error.to_string(), "a file that can be read"));
        Self::from_bytes(path, bytes.ok(), findings)
    }

    pub(crate) fn read_in_folder(root: &Utf8Path, name: &str) -> Self {
        Self::read_in_folder_as(&root.join(name), root, name)
    }

    /// Reads a document of a folder, and reports it under the path that the caller used.
    pub(crate) fn read_in_folder_as(path: &Utf8Path, root: &Utf8Path, name: &str) -> Self {
        let mut findings = Findings::new(path);
        let bytes = read(root, name, &mut findings);
        Self::from_bytes(path, bytes, findings)
    }

    /// Parses the bytes, if there are any.
    pub(crate) fn from_bytes(path: &Utf8Path, bytes: Option<Vec<u8>>, mut findings: Findings) -> Self {
        let value = bytes.as_deref().and_then(|bytes| parse(bytes, &mut findings));
        Self {
            path: path.to_owned(),
            is_json: value.is_some(),
            value: value.unwrap_or_default(),
            findings,
            bytes: bytes.unwrap_or_default(),
        }
    }

    /// Returns all findings in the order of the text.
    pub(crate) fn finish(self) -> Vec<Finding> {
        self.findings.into_located(&self.bytes)
    }
}

pub(crate) const BYTE_ORDER_MARK: &[u8] = b"\xef\xbb\xbf";

/// Parses a document. Returns `None` after adding the reason to the findings.
pub(crate) fn parse(bytes: &[u8], findings: &mut Findings) -> Option<Value> {
    if bytes.starts_with(BYTE_ORDER_MARK) {
        let span = 0..BYTE_ORDER_MARK.len();
        findings.add_at(Code::ByteOrderMark, span, "the file starts with a byte order mark", "JSON without one");
    }
    // Parsing continues after the mark, so that it hides no other finding.
    let Text { body: text, skipped } = decode(bytes, "a JSON document", findings)?;
    match json_text::parse(text) {
        Ok(parsed) => {
            // Located in a second pass: documents without duplicate keys, nearly all, do not pay for their positions.
            if parsed.has_duplicate_keys {
                report_duplicates(text, skipped, findings);
            }
            Some(parsed.value)
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
    let start = error.position.map_or(0, |position| json_text::offset(text.body, position));
    let end = text.body[start..].chars().next().map_or(start, |c| start + c.len_utf8());
    let finding = RuleFinding::new(Code::YamlSyntax, "", error.message.clone(), "a YAML document");
    findings.add_rule_at(finding.with_remedy(error.remedy), start + text.skipped..end + text.skipped);
}

fn report_duplicates(text: &str, skipped: usize, findings: &mut Findings) {
    let duplicates = json_text::duplicate_keys(text);
    for duplicate in duplicates.listed {
        let key = quote(&json_text::decode(&text[duplicate.span.clone()]));
        let span = duplicate.span.start + skipped..duplicate.span.end + skipped;
        let message = format!("the key {key} appears twice in its object");
        findings.add_with_span(Code::DuplicateKey, duplicate.pointer, Some(span), message, "unique keys");
    }
    findings.omit(duplicates.omitted);
}

fn report_syntax(error: &serde_json::Error, text: &str, skipped: usize, findings: &mut Findings) {
    let full = error.to_string();
    // serde_json ends its message with the position, which the finding has in a field.
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
    // serde_json reports this limit in the category of syntax errors, so only the text distinguishes it.
    let (code, expected) = if message.starts_with("recursion limit") {
        (Code::JsonTooDeep, "at most 127 levels")
    } else {
        (Code::JsonSyntax, "a JSON document")
    };
    findings.add_at(code, start + skipped..end + skipped, message, expected);
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum DocumentFormat {
    /// JSON.
    #[default]
    Json,
    /// YAML 1.2, as far as JSON can express it.
    Yaml,
}

/// Returns the elements of an array field with their indices; none if the field is not an array.
pub(crate) fn items<'a>(document: &'a Value, field: &str) -> impl Iterator<Item = (usize, &'a Value)> {
    document.get(field).and_then(Value::as_array).into_iter().flatten().enumerate()
}

/// Parses a count as [`counterproof_artifact::Count`] does.
pub(crate) fn count(value: &Value) -> Option<u64> {
    serde::Deserialize::deserialize(value).map(counterproof_artifact::Count::get).ok()
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

#[cfg(all(test, unix))]
mod file_kind_tests {
    use super::*;

    #[test]
    fn only_a_requested_file_may_be_something_else_than_a_regular_file() {
        let device = Utf8Path::new("/dev/null");
        let codes = |document: Document| document.finish().into_iter().map(|finding| finding.code).collect::<Vec<_>>();
        assert_eq!(codes(Document::read_walked(device)), [Code::Unreadable]);
        assert_eq!(codes(Document::read_requested(device)), [Code::EmptyFile]);
    }
}
