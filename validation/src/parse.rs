//! Parses bytes into JSON values, and reports encoding errors, syntax errors and duplicate keys.

use counterproof_json_text as json_text;
use serde_json::Value;

use crate::Code;
use crate::excerpt::quote;
use crate::finding::{Findings, RuleFinding};
use crate::yaml::{self, YamlError};

pub(crate) const BYTE_ORDER_MARK: &[u8] = b"\xef\xbb\xbf";

/// Parses a document. Returns `None` after adding the reason to the findings.
pub(crate) fn parse(bytes: &[u8], findings: &mut Findings) -> Option<Value> {
    if bytes.starts_with(BYTE_ORDER_MARK) {
        let span = 0..BYTE_ORDER_MARK.len();
        findings.add_at(Code::ByteOrderMark, span, "the file starts with a byte order mark", "JSON without one");
    }
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
