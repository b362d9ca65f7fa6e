//! Violations of the contract, the bounded list of them for one file, and the lines of the file around each.

use std::fmt::Write as _;
use std::ops::Range;

use camino::{Utf8Path, Utf8PathBuf};
use counterproof_artifact::is_invisible;
use counterproof_json_text::{self as json_text, Position};

use crate::document::{BYTE_ORDER_MARK, DocumentFormat};
use crate::{Code, yaml};

/// Largest number of findings that are listed for one file; the others are counted. A file with a million invalid events
/// usually has one cause.
pub const MAX_FINDINGS: usize = 1000;

/// A violation of the contract at one place of a document.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Finding {
    /// The violated rule.
    pub code: Code,
    /// The file: the path of the caller, or a path below it.
    pub file: Utf8PathBuf,
    /// A JSON Pointer into the file; empty for the whole document.
    pub pointer: String,
    /// Line and column, if the file is text.
    pub position: Option<Position>,
    /// The surrounding lines, if the file is text.
    pub excerpt: Option<Excerpt>,
    /// The actual state.
    pub message: String,
    pub expected: String,
    /// How to fix it.
    pub remedy: String,
}

/// A violation of a rule that the caller checks, at one place of a document.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RuleFinding {
    /// The violated rule.
    pub(crate) code: Code,
    /// A JSON Pointer into the document.
    pub(crate) pointer: String,
    /// The bytes of the text that `pointer` names, if the finding is about a part of it.
    pub(crate) within: Option<Range<usize>>,
    /// The actual state.
    pub(crate) message: String,
    pub(crate) expected: String,
    /// How to fix it; `None` for the remedy of the code.
    pub(crate) remedy: Option<String>,
}

impl RuleFinding {
    /// Creates a finding about a whole value, with the remedy of its code.
    pub fn new(
        code: Code,
        pointer: impl Into<String>,
        message: impl Into<String>,
        expected: impl Into<String>,
    ) -> Self {
        let (pointer, message, expected) = (pointer.into(), message.into(), expected.into());
        Self { code, pointer, within: None, message, expected, remedy: None }
    }

    /// Sets another remedy than the one of the code.
    #[must_use]
    pub fn with_remedy(self, remedy: impl Into<String>) -> Self {
        Self { remedy: Some(remedy.into()), ..self }
    }

    /// Sets another remedy than the one of the code, if there is one.
    #[must_use]
    pub fn with_any_remedy(self, remedy: Option<impl Into<String>>) -> Self {
        Self { remedy: remedy.map(Into::into), ..self }
    }

    /// Points at these bytes of the text that the pointer names.
    #[must_use]
    pub fn within(self, span: Range<usize>) -> Self {
        Self { within: Some(span), ..self }
    }
}

impl Finding {
    /// Moves the finding down by some lines, for a document that does not start at the first line of its file.
    pub(crate) fn move_down(&mut self, lines: usize) {
        if let Some(position) = &mut self.position {
            position.line += lines;
        }
        if let Some(excerpt) = &mut self.excerpt {
            excerpt.first_line += lines;
        }
    }
}

/// The place of a finding in the text.
#[derive(Debug)]
enum Place {
    /// The value that its pointer names.
    Value,
    /// These bytes of the text that its pointer names.
    Within(Range<usize>),
    /// These bytes of the file.
    Bytes(Range<usize>),
}

/// The findings of one file.
#[derive(Debug)]
pub(crate) struct Findings {
    file: Utf8PathBuf,
    list: Vec<Finding>,
    places: Vec<Place>,
    omitted: usize,
}

impl Findings {
    pub(crate) fn new(file: &Utf8Path) -> Self {
        Self { file: file.to_owned(), list: Vec::new(), places: Vec::new(), omitted: 0 }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.list.is_empty()
    }

    /// True if further findings are only counted.
    pub(crate) fn is_full(&self) -> bool {
        self.list.len() >= MAX_FINDINGS
    }

    pub(crate) fn add(
        &mut self,
        code: Code,
        pointer: impl Into<String>,
        message: impl Into<String>,
        expected: impl Into<String>,
    ) {
        self.add_with_span(code, pointer, None, message, expected);
    }

    /// Adds a finding at a byte range that no pointer names, such as a syntax error.
    pub(crate) fn add_at(
        &mut self,
        code: Code,
        span: Range<usize>,
        message: impl Into<String>,
        expected: impl Into<String>,
    ) {
        self.add_with_span(code, "", Some(span), message, expected);
    }

    pub(crate) fn add_with_span(
        &mut self,
        code: Code,
        pointer: impl Into<String>,
        span: Option<Range<usize>>,
        message: impl Into<String>,
        expected: impl Into<String>,
    ) {
        self.push(RuleFinding::new(code, pointer, message, expected), span.map_or(Place::Value, Place::Bytes));
    }

    /// Adds a finding with its remedy at a byte range.
    pub(crate) fn add_rule_at(&mut self, finding: RuleFinding, span: Range<usize>) {
        self.push(finding, Place::Bytes(span));
    }

    /// Adds a finding of the caller's rules.
    pub(crate) fn add_rule(&mut self, mut finding: RuleFinding) {
        let place = finding.within.take().map_or(Place::Value, Place::Within);
        self.push(finding, place);
    }

    fn push(&mut self, finding: RuleFinding, place: Place) {
        if self.is_full() {
            // Rules add findings without asking whether the list is full.
            self.omitted += 1;
            return;
        }
        let RuleFinding { code, pointer, within: _, message, expected, remedy } = finding;
        let remedy = remedy.unwrap_or_else(|| code.remedy().to_owned());
        let (position, excerpt, file) = (None, None, self.file.clone());
        self.list.push(Finding { code, file, pointer, position, excerpt, message, expected, remedy });
        self.places.push(place);
    }

    /// Counts findings that were not created because the list is full.
    pub(crate) fn omit(&mut self, count: usize) {
        self.omitted += count;
    }

    /// Returns the findings without positions, for documents that are not in a file.
    pub(crate) fn into_list(mut self) -> Vec<Finding> {
        if self.omitted > 0 {
            let message = format!("{} more findings are not listed", self.omitted);
            let expected = format!("at most {MAX_FINDINGS} findings in a file");
            self.list.push(Finding {
                code: Code::MoreFindings,
                file: self.file,
                pointer: String::new(),
                position: None,
                excerpt: None,
                message,
                expected,
                remedy: Code::MoreFindings.remedy().to_owned(),
            });
        }
        self.list
    }

    /// Returns the byte ranges of all findings. In invalid JSON every finding has its bytes already.
    fn find_spans(&self, format: DocumentFormat, text: &[u8]) -> Vec<Option<Range<usize>>> {
        // The locator expects JSON, which has no byte order mark; the spans count from the start of the file.
        let body = text.strip_prefix(BYTE_ORDER_MARK).unwrap_or(text);
        let skipped = text.len() - body.len();
        let by_pointer = |place: &Place| !matches!(place, Place::Bytes(_));
        let pointers = self.list.iter().zip(&self.places).filter(|(_, place)| by_pointer(place));
        let pointers: Vec<&str> = pointers.map(|(finding, _)| finding.pointer.as_str()).collect();
        // One pass for all pointers. Text that is not UTF-8 was not parsed, so no finding has a pointer into it.
        let body = std::str::from_utf8(body).ok().filter(|_| !pointers.is_empty());
        let found = body.map(|body| match format {
            DocumentFormat::Json => json_text::spans(body, &pointers),
            DocumentFormat::Yaml => {
                let positions = yaml::Positions::parse(body);
                pointers.iter().map(|pointer| positions.bytes(pointer)).collect()
            }
        });
        let mut found = found.unwrap_or_default().into_iter();
        let span = |place: &Place| {
            if let Place::Bytes(span) = place {
                return Some(span.clone());
            }
            let (body, value) = (body?, found.next().flatten()?);
            let part = match place {
                Place::Within(part) => match format {
                    DocumentFormat::Json => json_text::within(&body[value.clone()], part),
                    DocumentFormat::Yaml => yaml::within(body, &value, part),
                },
                Place::Value | Place::Bytes(_) => None,
            };
            let span = part.map_or(value.clone(), |part| value.start + part.start..value.start + part.end);
            Some(span.start + skipped..span.end + skipped)
        };
        self.places.iter().map(span).collect()
    }

    /// Returns the findings of a JSON text as [`Findings::into_located_as`] does.
    pub(crate) fn into_located(self, text: &[u8]) -> Vec<Finding> {
        self.into_located_as(DocumentFormat::Json, text)
    }

    /// Returns the findings in the order of the text, with line, column and excerpt. An empty `text` yields no positions.
    pub(crate) fn into_located_as(mut self, format: DocumentFormat, text: &[u8]) -> Vec<Finding> {
        if self.list.is_empty() || text.is_empty() {
            return self.into_list();
        }
        let spans = self.find_spans(format, text);
        let starts: Vec<usize> = spans.iter().map(|span| span.as_ref().map_or(0, |span| span.start)).collect();
        // One pass again: counting lines from the start for each finding would be quadratic.
        let positions = json_text::positions(text, &starts);
        for (finding, ((span, start), position)) in self.list.iter_mut().zip(spans.iter().zip(&starts).zip(positions)) {
            finding.position = Some(position);
            let span = span.clone().unwrap_or(*start..*start);
            finding.excerpt = Some(Excerpt::around(text, span, position));
        }
        // `into_list` adds only the count of omitted findings now, which stays last after the sort.
        let list = std::mem::take(&mut self.list);
        let mut rest = self.into_list();
        let mut list: Vec<Finding> = list;
        // The code breaks ties, so the order does not depend on which rule ran first.
        list.sort_by_key(|finding| (finding.position, finding.code));
        list.append(&mut rest);
        list
    }
}

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

/// Longest word that is compared, in bytes.
const MAX_WORD_BYTES: usize = 256;

/// Returns the known word that is closest to a misspelt one, within one edit plus one per five characters.
pub fn nearest<'k>(word: &str, known: &[&'k str]) -> Option<&'k str> {
    // The distance takes the product of both lengths, and a word can come from any document.
    if word.len() > MAX_WORD_BYTES {
        return None;
    }
    let distance = |other: &str| strsim::damerau_levenshtein(&word.to_lowercase(), &other.to_lowercase());
    // Equally close names are compared by the alphabet, so the suggestion does not depend on the order of `known`.
    let (edits, near) = known.iter().map(|candidate| (distance(candidate), *candidate)).min()?;
    (edits <= 1 + near.len() / 5).then_some(near)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn around(text: &str, span: Range<usize>) -> Excerpt {
        let position = counterproof_json_text::positions(text.as_bytes(), &[span.start])[0];
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
