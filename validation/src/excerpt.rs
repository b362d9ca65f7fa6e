//! The lines of a file around a finding, in bounded length.

use std::fmt::Write as _;
use std::ops::Range;

use counterproof_artifact::is_invisible;

use counterproof_json_text::{Position, positions};

/// Largest number of bytes of a line on either side of the finding.
const MAX_CONTEXT_BYTES: usize = 160;

/// Longest quotation from a document in a message, in characters.
const MAX_QUOTE_CHARS: usize = 80;

/// A line of a file with the line before it, cut to a bounded length.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Excerpt {
    /// The text, copied from the file: it may contain control characters.
    pub text: String,
    /// The number of its first line in the file, counted from 1.
    pub first_line: usize,
    /// The bytes of [`Excerpt::text`] that the finding is about.
    pub span: Range<usize>,
}

impl Excerpt {
    /// Cuts the excerpt around a span of a text. `position` is the position of its start.
    pub fn around(text: &[u8], span: Range<usize>, position: Position) -> Self {
        let start = span.start.min(text.len());
        let line_start = text[..start].iter().rposition(|&byte| byte == b'\n').map_or(0, |newline| newline + 1);
        // Bounded: minified JSON can have one line of many megabytes.
        let reach = &text[start..text.len().min(start + MAX_CONTEXT_BYTES)];
        let line_end = start + reach.iter().position(|&byte| byte == b'\n').unwrap_or(reach.len());

        let mut excerpt = String::new();
        let mut first_line = position.line;
        if let Some(before) = line_start.checked_sub(1) {
            let from = before.saturating_sub(MAX_CONTEXT_BYTES);
            let previous = text[from..before].iter().rposition(|&byte| byte == b'\n');
            // A truncated line before is useless, so it is shown completely or not at all.
            if let Some(from) = previous.map(|newline| from + newline + 1).or((from == 0).then_some(0)) {
                push(&mut excerpt, &text[from..before]);
                excerpt.push('\n');
                first_line -= 1;
            }
        }
        let from = line_start.max(start.saturating_sub(MAX_CONTEXT_BYTES));
        if from > line_start {
            excerpt.push('…');
        }
        push(&mut excerpt, &text[from..start]);
        let marked = excerpt.len();
        // A value over several lines is marked only up to the end of its first line.
        let end = span.end.clamp(start, line_end);
        push(&mut excerpt, &text[start..end]);
        let marked = marked..excerpt.len();
        push(&mut excerpt, &text[end..line_end]);
        if line_end < text.len() && text[line_end] != b'\n' {
            excerpt.push('…');
        }
        Self { text: excerpt, first_line, span: marked }
    }
}

/// Appends bytes as text. A character cut at either end becomes U+FFFD.
fn push(text: &mut String, bytes: &[u8]) {
    for chunk in bytes.utf8_chunks() {
        text.push_str(chunk.valid());
        if !chunk.invalid().is_empty() {
            text.push('\u{fffd}');
        }
    }
}

/// Quotes text of a document between backticks: shortened, with invisible characters escaped.
pub(crate) fn quote(text: &str) -> String {
    let mut quoted = String::from("`");
    for (count, c) in text.chars().enumerate() {
        if count == MAX_QUOTE_CHARS {
            quoted.push('…');
            break;
        }
        // Text of the agent may contain terminal escapes and bidirectional controls.
        if is_invisible(c) {
            let _ = write!(quoted, "{}", c.escape_unicode());
        } else {
            quoted.push(c);
        }
    }
    quoted.push('`');
    quoted
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::locate;

    fn around(text: &str, span: Range<usize>) -> Excerpt {
        let position = positions(text.as_bytes(), &[span.start])[0];
        Excerpt::around(text.as_bytes(), span, position)
    }

    #[test]
    fn a_short_line_is_complete_and_has_the_line_before_it() {
        let text = "{\n  \"a\": 1,\n  \"b\": 2\n}";
        let at = text.find('2').unwrap();
        let excerpt = around(text, at..at + 1);
        assert_eq!(excerpt.text, "  \"a\": 1,\n  \"b\": 2");
        assert_eq!((excerpt.first_line, &excerpt.text[excerpt.span]), (2, "2"));
    }

    #[test]
    fn a_long_line_is_cut_on_both_sides() {
        let text = "é".repeat(1000);
        let excerpt = around(&text, 1000..1004);
        assert!(excerpt.text.len() < 3 * MAX_CONTEXT_BYTES, "{}", excerpt.text.len());
        assert_eq!(&excerpt.text[excerpt.span.clone()], "éé");
        assert!(excerpt.text.starts_with('…') && excerpt.text.ends_with('…'));
    }

    #[test]
    fn a_span_over_many_lines_is_marked_up_to_the_end_of_its_first_line() {
        let excerpt = around("{\n 1\n}", 0..6);
        assert_eq!((excerpt.text.as_str(), excerpt.span), ("{", 0..1));
    }

    #[test]
    fn quotations_are_bounded_and_escape_terminal_controls() {
        assert_eq!(quote("a\u{1b}[2J\u{202e}b"), "`a\\u{1b}[2J\\u{202e}b`");
        assert_eq!(quote(&"x".repeat(5000)).chars().count(), MAX_QUOTE_CHARS + 3);
    }
}
