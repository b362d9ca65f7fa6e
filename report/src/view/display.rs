//! Values in displayable form: bounded in size, without characters that affect the text around them, and escaped for the content
//! of elements.

use std::cell::Cell;
use std::fmt;
use std::io::{self, Write};

use askama::filters::Escaper;
use counterproof_artifact::into_visible;
use serde::Serialize;
use serde_json::ser::Formatter;

pub(crate) use counterproof_artifact::{group_digits as number, visible};

/// The size limit of all values of a page. Later values are only in the linked files.
const PAGE_UP_TO_BYTES: usize = 1_500_000;

/// A text, or the start of a long one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct DisplayText {
    pub(crate) text: String,
    /// A note on the omitted rest; empty for a whole text.
    pub(crate) more: String,
}

impl DisplayText {
    pub(crate) fn lines(&self) -> usize {
        self.text.lines().count()
    }
}

#[derive(Debug)]
pub(crate) struct Budget {
    // Shared by the sections of a page, which one thread builds.
    left: Cell<usize>,
}

impl Budget {
    pub(crate) const fn for_page() -> Self {
        Self { left: Cell::new(PAGE_UP_TO_BYTES) }
    }

    pub(crate) fn text(&self, text: &str, most: usize) -> DisplayText {
        let most = most.min(self.left.get());
        // Cut before invisible characters are spelled out, so that the note counts bytes of the file.
        let head = head(text, most);
        let rest = text.len() - head.len();
        let more = if rest > 0 { format!("… {rest} more bytes in the file") } else { String::new() };
        let text = visible(head);
        self.spend(text.len());
        DisplayText { text, more }
    }

    /// A value as indented JSON of at most `most` bytes.
    pub(crate) fn json(&self, value: &impl Serialize, most: usize) -> DisplayText {
        let most = most.min(self.left.get());
        let mut written = Bounded::new(most);
        // Only the size limit can fail here: a value that was read from JSON can be written as JSON.
        let cut = serde_json::to_writer_pretty(&mut written, value).is_err();
        // The limit may have split a character.
        let text = into_visible(compact(&String::from_utf8_lossy(&written.bytes)));
        self.spend(text.len());
        DisplayText { text, more: if cut { "… more in the file".to_owned() } else { String::new() } }
    }

    fn spend(&self, bytes: usize) {
        self.left.set(self.left.get().saturating_sub(bytes));
    }
}

/// The maximum length in bytes of a list or an object on one line.
const LINE_UP_TO: usize = 88;

/// A list or an object whose end is not read yet.
struct Open {
    /// The position of its first line in the text.
    start: usize,
    /// The length of its first line, and of the indentation of that line.
    first: usize,
    indentation: usize,
    /// The length of its other lines without indentation, each with a separator.
    rest: usize,
}

/// Puts each list and object that fits on one line. Truncated ones stay indented.
fn compact(indented: &str) -> String {
    let mut text = String::with_capacity(indented.len());
    // After serialization, because only the end of a list shows whether it fits on a line.
    let mut open: Vec<Open> = Vec::new();
    for (index, line) in indented.lines().enumerate() {
        if index > 0 {
            text.push('\n');
        }
        // The serializer indents with spaces.
        let indentation = line.bytes().take_while(|byte| *byte == b' ').count();
        let content = &line[indentation..];
        let start = text.len();
        text.push_str(line);
        if matches!(line.as_bytes().last(), Some(b'{' | b'[')) {
            open.push(Open { start, first: line.len(), indentation, rest: 0 });
            continue;
        }
        let Some(innermost) = open.last_mut() else { continue };
        innermost.rest += content.len() + 1;
        if matches!(content.as_bytes().first(), Some(b'}' | b']'))
            && let Some(closed) = open.pop()
        {
            let mut length = closed.first + closed.rest;
            if length <= LINE_UP_TO {
                let joined = joined(&text[closed.start..]);
                length = joined.len();
                text.truncate(closed.start);
                text.push_str(&joined);
            }
            if let Some(outer) = open.last_mut() {
                outer.rest += length - closed.indentation + 1;
            }
        }
    }
    text
}

fn joined(lines: &str) -> String {
    let mut joined = String::with_capacity(LINE_UP_TO);
    let mut lines = lines.lines().enumerate().peekable();
    while let Some((index, line)) = lines.next() {
        // No space inside the brackets, and one after each comma.
        if index > 1 && lines.peek().is_some() {
            joined.push(' ');
        }
        joined.push_str(if index == 0 { line } else { line.trim_start() });
    }
    joined
}

/// A value as JSON on one line, with spaces where a line may break; `None` if it has more than `most` bytes.
pub(crate) fn on_one_line(value: &impl Serialize, most: usize) -> Option<String> {
    let mut written = Bounded::new(most);
    value.serialize(&mut serde_json::Serializer::with_formatter(&mut written, Spaced)).ok()?;
    String::from_utf8(written.bytes).ok()
}

/// JSON on one line, with a space after each comma and colon.
struct Spaced;

impl Formatter for Spaced {
    fn begin_array_value<W: ?Sized + Write>(&mut self, writer: &mut W, first: bool) -> io::Result<()> {
        if first { Ok(()) } else { writer.write_all(b", ") }
    }

    fn begin_object_key<W: ?Sized + Write>(&mut self, writer: &mut W, first: bool) -> io::Result<()> {
        if first { Ok(()) } else { writer.write_all(b", ") }
    }

    fn begin_object_value<W: ?Sized + Write>(&mut self, writer: &mut W) -> io::Result<()> {
        writer.write_all(b": ")
    }
}

/// A writer that fails after a number of bytes.
struct Bounded {
    bytes: Vec<u8>,
    most: usize,
}

impl Bounded {
    fn new(most: usize) -> Self {
        // Most values are short: one allocation holds them.
        Self { bytes: Vec::with_capacity(most.min(256)), most }
    }
}

impl Write for Bounded {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        // An error, because only an error stops the serializer of a huge value early.
        let room = self.most.saturating_sub(self.bytes.len()).min(bytes.len());
        self.bytes.extend_from_slice(&bytes[..room]);
        if room == 0 && !bytes.is_empty() { Err(io::Error::other("size limit reached")) } else { Ok(room) }
    }

    // The serializer calls this for each token, and the default calls `write` in a loop.
    fn write_all(&mut self, bytes: &[u8]) -> io::Result<()> {
        let written = self.write(bytes)?;
        if written < bytes.len() { Err(io::Error::other("size limit reached")) } else { Ok(()) }
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

fn head(text: &str, most: usize) -> &str {
    &text[..text.floor_char_boundary(most)]
}

pub(crate) fn duration(millis: f64) -> String {
    if millis < 1000.0 { format!("{millis:.0} ms") } else { format!("{:.1} s", millis / 1000.0) }
}

/// A severity or a share of it with two digits.
pub(crate) fn score(share: f64) -> String {
    // A value that rounds to zero must not look like none.
    if share > 0.0 && share < 0.005 { "<0.01".to_owned() } else { format!("{share:.2}") }
}

/// Escapes `&` and `<`, and `>` for lenient parsers.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Content;

impl Escaper for Content {
    fn write_escaped_str<W: fmt::Write>(&self, mut dest: W, string: &str) -> fmt::Result {
        let mut rest = string;
        // Comparing bytes is safe: in UTF-8, none of the three is part of another character.
        while let Some(place) = rest.bytes().position(|byte| matches!(byte, b'&' | b'<' | b'>')) {
            let (plain, special) = rest.split_at(place);
            dest.write_str(plain)?;
            dest.write_str(match special.as_bytes().first() {
                Some(b'&') => "&#38;",
                Some(b'<') => "&#60;",
                _ => "&#62;",
            })?;
            rest = &special[1..];
        }
        dest.write_str(rest)
    }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::path::{Path, PathBuf};

    use serde_json::json;

    use super::*;

    #[test]
    fn a_long_text_is_truncated_between_characters() {
        let shown = Budget::for_page().text("äöü", 3);
        assert_eq!((shown.text.as_str(), shown.more.as_str()), ("ä", "… 4 more bytes in the file"));
    }

    #[test]
    fn a_short_value_is_one_line_with_spaces() {
        let value = json!({"a": [1, "x"], "b": {}});
        assert_eq!(on_one_line(&value, 100).as_deref(), Some(r#"{"a": [1, "x"], "b": {}}"#));
        assert_eq!(on_one_line(&value, 10), None);
    }

    #[test]
    fn lists_and_objects_that_fit_are_on_one_line() {
        let value = json!({
            "items": [{"article": "a kettle {", "price": 75.2}, {"article": "x".repeat(80), "price": 1}], "none": [], "ids": [1, 2],
        });
        let shown = Budget::for_page().json(&value, 1_000).text;
        let long = format!("      \"article\": \"{}\",", "x".repeat(80));
        let expected = [
            "{",
            "  \"items\": [",
            "    {\"article\": \"a kettle {\", \"price\": 75.2},",
            "    {",
            &long,
            "      \"price\": 1",
            "    }",
            "  ],",
            "  \"none\": [],",
            "  \"ids\": [1, 2]",
            "}",
        ];
        assert_eq!(shown.lines().collect::<Vec<_>>(), expected);
        assert!(serde_json::from_str::<serde_json::Value>(&shown).is_ok_and(|read| read == value));
    }

    #[test]
    fn a_page_has_a_budget() {
        let budget = Budget::for_page();
        let long = "x".repeat(PAGE_UP_TO_BYTES);
        assert_eq!(budget.text(&long, usize::MAX).more, "");
        assert_eq!(
            budget.json(&json!({"a": 1}), 100),
            DisplayText { text: String::new(), more: "… more in the file".into() }
        );
    }

    /// Every template by its path within the templates folder.
    fn templates() -> Vec<(PathBuf, String)> {
        let mut folders = vec![Path::new(env!("CARGO_MANIFEST_DIR")).join("../templates")];
        let mut templates = Vec::new();
        while let Some(folder) = folders.pop() {
            for entry in fs::read_dir(folder).unwrap() {
                let path = entry.unwrap().path();
                if path.is_dir() {
                    folders.push(path);
                } else if path.extension().is_some_and(|extension| extension == "html") {
                    let text = fs::read_to_string(&path).unwrap();
                    templates.push((path, text));
                }
            }
        }
        templates
    }

    fn escaped(text: &str) -> String {
        let mut written = String::new();
        Content.write_escaped_str(&mut written, text).unwrap();
        written
    }

    #[test]
    fn markup_is_escaped_and_quotes_are_not() {
        assert_eq!(escaped("<a href=\"x\">it's &amp;</a>"), "&#60;a href=\"x\"&#62;it's &#38;amp;&#60;/a&#62;");
        assert_eq!(escaped("é€"), "é€");
    }

    #[test]
    fn no_attribute_of_a_template_uses_the_escaping_for_content() {
        let templates = templates();
        assert!(templates.len() > 20, "{templates:?}");
        for (path, template) in templates {
            let mut rest = template.as_str();
            while let Some(place) = rest.find("|e(\"content\")") {
                let before = &rest[..place];
                assert!(
                    !is_within_a_tag(before),
                    "{}: {}",
                    path.display(),
                    before.lines().next_back().unwrap_or_default()
                );
                rest = &rest[place + 1..];
            }
        }
    }

    /// Returns whether the template ends within a tag: outside of template expressions, the last angle bracket is `<`.
    fn is_within_a_tag(template: &str) -> bool {
        let mut html = template.to_owned();
        for (open, close) in [("{#", "#}"), ("{%", "%}"), ("{{", "}}")] {
            while let Some(start) = html.find(open) {
                let end = html[start..].find(close).map_or(html.len(), |end| start + end + close.len());
                html.replace_range(start..end, "");
            }
        }
        html.rfind('<') > html.rfind('>')
    }

    #[test]
    fn an_open_tag_is_recognized() {
        assert!(is_within_a_tag("<p>{% if a > b %}<a href=\"{{ x"));
        assert!(!is_within_a_tag("<p><a href=\"{{ x }}\">{{ y"));
    }
}
