//! Values as they are shown on a page: bounded, and with nothing in them that steers what stands around them.
//!
//! Escaping for HTML is the templates' part.

use std::borrow::Cow;
use std::cell::Cell;
use std::io::{self, Write};

use counterproof_artifact::is_invisible;
use serde::Serialize;
use serde_json::ser::Formatter;

/// Values of one page together are shown up to this size; what comes after is left to the linked files.
const PAGE_UP_TO_BYTES: usize = 1_500_000;

/// A text of which at least the start is shown.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Shown {
    /// The text, or its start.
    pub(super) text: String,
    /// Says that there is more; empty where there is not.
    pub(super) more: String,
}

impl Shown {
    /// Lines that are shown.
    pub(super) fn lines(&self) -> usize {
        self.text.lines().count()
    }
}

/// What may still be shown on a page.
#[derive(Debug)]
pub(super) struct Budget {
    left: Cell<usize>,
}

impl Budget {
    /// The budget of one page.
    pub(super) const fn of_page() -> Self {
        Self { left: Cell::new(PAGE_UP_TO_BYTES) }
    }

    /// A text, up to a number of bytes.
    pub(super) fn text(&self, text: &str, most: usize) -> Shown {
        let most = most.min(self.left.get());
        let head = head(text, most);
        let rest = text.len() - head.len();
        let more = if rest > 0 { format!("… {rest} more bytes in the file") } else { String::new() };
        let text = visible(head);
        self.spend(text.len());
        Shown { text, more }
    }

    /// A value as indented JSON, up to a number of bytes.
    pub(super) fn json(&self, value: &impl Serialize, most: usize) -> Shown {
        let most = most.min(self.left.get());
        let mut written = Bounded { bytes: Vec::new(), most };
        // Only the bound makes it fail: a value that is read from JSON can be written as JSON.
        let cut = serde_json::to_writer_pretty(&mut written, value).is_err();
        let text = visible(&closer(&String::from_utf8_lossy(&written.bytes)));
        self.spend(text.len());
        Shown { text, more: if cut { "… more in the file".to_owned() } else { String::new() } }
    }

    fn spend(&self, bytes: usize) {
        self.left.set(self.left.get().saturating_sub(bytes));
    }
}

/// Widest line that the parts of a list or an object are put on together, in bytes.
const LINE_UP_TO: usize = 88;

/// Indented JSON with each list and object that fits on one line: what belongs together is read together. One that is cut
/// stays as it is where it is open.
fn closer(indented: &str) -> String {
    let mut lines: Vec<Cow<'_, str>> = Vec::new();
    // Where the lists and objects begin that are open.
    let mut open = Vec::new();
    for line in indented.lines() {
        lines.push(Cow::Borrowed(line));
        if line.ends_with(['{', '[']) {
            open.push(lines.len() - 1);
        } else if line.trim_start().starts_with(['}', ']'])
            && let Some(start) = open.pop()
        {
            let parts = &lines[start..];
            let inner = parts[1..].iter().map(|part| part.trim_start().len() + 1).sum::<usize>();
            if parts[0].len() + inner <= LINE_UP_TO {
                let joined = joined(parts);
                lines.truncate(start);
                lines.push(Cow::Owned(joined));
            }
        }
    }
    lines.join("\n")
}

/// The lines of one list or object, on one.
fn joined(parts: &[Cow<'_, str>]) -> String {
    let mut line = parts[0].clone().into_owned();
    let last = parts.len() - 1;
    for (index, part) in parts.iter().enumerate().skip(1) {
        // No space within the brackets, one behind each comma.
        if index > 1 && index < last {
            line.push(' ');
        }
        line.push_str(part.trim_start());
    }
    line
}

/// A short value as JSON on one line, with spaces where a line may break; `None` where it is longer.
pub(super) fn on_one_line(value: &impl Serialize, most: usize) -> Option<String> {
    let mut written = Bounded { bytes: Vec::new(), most };
    value.serialize(&mut serde_json::Serializer::with_formatter(&mut written, Spaced)).ok()?;
    String::from_utf8(written.bytes).ok()
}

/// JSON on one line, with a space behind every comma and colon.
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

/// Takes bytes up to a number, then refuses, so that the writer of a huge value stops early.
struct Bounded {
    bytes: Vec<u8>,
    most: usize,
}

impl Write for Bounded {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let room = self.most.saturating_sub(self.bytes.len()).min(bytes.len());
        self.bytes.extend_from_slice(&bytes[..room]);
        if room == 0 && !bytes.is_empty() { Err(io::Error::other("enough")) } else { Ok(room) }
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

fn head(text: &str, most: usize) -> &str {
    &text[..text.floor_char_boundary(most)]
}

/// A text of many lines with every character spelled out that is not seen, or that changes the direction of its
/// neighbours. The joiners stay: scripts and emoji are written with them, and they move nothing.
pub(super) fn visible(text: &str) -> String {
    let harmless = |c: char| matches!(c, '\n' | '\t' | '\u{200c}' | '\u{200d}');
    let mut shown = String::with_capacity(text.len());
    let mut characters = text.chars().peekable();
    while let Some(c) = characters.next() {
        if c == '\r' && characters.peek() == Some(&'\n') {
            continue;
        }
        if is_invisible(c) && !harmless(c) {
            shown.extend(c.escape_unicode());
        } else {
            shown.push(c);
        }
    }
    shown
}

/// A whole number with its thousands parted, as far as a reader needs it.
pub(super) fn number(number: u64) -> String {
    let digits = number.to_string();
    let mut parted = String::new();
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            parted.push('\u{202f}');
        }
        parted.push(digit);
    }
    parted
}

/// A span of time.
pub(super) fn duration(millis: f64) -> String {
    if millis < 1000.0 { format!("{millis:.0} ms") } else { format!("{:.1} s", millis / 1000.0) }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn what_cannot_be_seen_is_spelled_out() {
        assert_eq!(visible("a\r\nb\t\u{202e}c\u{1b}[31m\u{0}"), "a\nb\t\\u{202e}c\\u{1b}[31m\\u{0}");
        assert_eq!(visible("👨\u{200d}👩 مرحبا"), "👨\u{200d}👩 مرحبا");
    }

    #[test]
    fn a_long_text_is_cut_between_characters() {
        let shown = Budget::of_page().text("äöü", 3);
        assert_eq!((shown.text.as_str(), shown.more.as_str()), ("ä", "… 4 more bytes in the file"));
    }

    #[test]
    fn a_short_value_stands_on_one_line_that_can_break() {
        let value = json!({"a": [1, "x"], "b": {}});
        assert_eq!(on_one_line(&value, 100).as_deref(), Some(r#"{"a": [1, "x"], "b": {}}"#));
        assert_eq!(on_one_line(&value, 10), None);
    }

    #[test]
    fn what_fits_on_a_line_stands_on_one() {
        let value = json!({
            "items": [{"article": "a kettle {", "price": 75.2}, {"article": "x".repeat(80), "price": 1}], "none": [], "ids": [1, 2],
        });
        let shown = Budget::of_page().json(&value, 1_000).text;
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
        let budget = Budget::of_page();
        let long = "x".repeat(PAGE_UP_TO_BYTES);
        assert_eq!(budget.text(&long, usize::MAX).more, "");
        assert_eq!(
            budget.json(&json!({"a": 1}), 100),
            Shown { text: String::new(), more: "… more in the file".into() }
        );
    }

    #[test]
    fn thousands_are_parted() {
        assert_eq!(number(1_234_567).replace('\u{202f}', " "), "1 234 567");
        assert_eq!(number(999), "999");
    }
}
