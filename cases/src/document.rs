//! Parses a cases file into JSON values. The file extension selects the format.

use std::cell::OnceCell;
use std::iter;
use std::ops::Range;
use std::rc::Rc;

use camino::{Utf8Path, Utf8PathBuf};
use counterproof_json_text::{self as json_text, DuplicateKey, DuplicateKeys, Position};
use counterproof_validation::yaml::{self, Positions};
use serde_json::Value;

use crate::load::Problem;

/// The format of a cases file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Format {
    Json,
    JsonLines,
    Yaml,
}

impl Format {
    /// Returns the format for a file extension, or `None` for an unknown one.
    pub(crate) fn from_path(path: &Utf8Path) -> Option<Self> {
        match path.extension()?.to_ascii_lowercase().as_str() {
            "json" => Some(Format::Json),
            "jsonl" | "ndjson" => Some(Format::JsonLines),
            "yaml" | "yml" => Some(Format::Yaml),
            _ => None,
        }
    }
}

/// The name and text of a file.
#[derive(Debug)]
struct Source {
    file: Utf8PathBuf,
    text: String,
}

/// The text of one JSON value: a whole file, or one line of JSON Lines. It shares the text of its file, because a suite can
/// have one document for each case.
#[derive(Debug)]
pub(crate) struct Document {
    source: Rc<Source>,
    range: Range<usize>,
    first_line: usize,
    // A box, because there is a document for each case, and few of them need positions.
    positions: OnceCell<Box<Positions>>,
}

/// The part of a field that a problem points at.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Part {
    Key,
    Value,
}

impl Document {
    fn new(source: &Rc<Source>, range: Range<usize>, first_line: usize) -> Self {
        Self { source: source.clone(), range, first_line, positions: OnceCell::new() }
    }

    pub(crate) fn file(&self) -> &Utf8Path {
        &self.source.file
    }

    fn text(&self) -> &str {
        self.source.text.get(self.range.clone()).unwrap_or_default()
    }

    /// Returns the position of a field in the file.
    pub(crate) fn position(&self, pointer: &str, part: Part) -> Option<Position> {
        // Only a document with a problem pays for its positions. JSON is YAML too, so one parser locates both.
        let positions = self.positions.get_or_init(|| Box::new(Positions::parse(self.text())));
        let within = match part {
            Part::Key => positions.key(pointer),
            Part::Value => positions.value(pointer),
        };
        within.map(|Position { line, column }| Position { line: line + self.first_line - 1, column })
    }

    /// Returns the position of a byte offset inside a string value. Falls back to the start of the value.
    pub(crate) fn position_within(&self, pointer: &str, value: &str, offset: usize) -> Option<Position> {
        let start = self.position(pointer, Part::Value)?;
        let exact = || {
            let line = self.text().lines().nth(start.line - self.first_line)?;
            let rest = line.char_indices().nth(start.column - 1).map(|(index, _)| &line[index..])?;
            let quotes = usize::from(rest.starts_with(['"', '\'']));
            // With escapes or folded lines, the source spells the value differently, and its offsets do not apply.
            rest[quotes..].starts_with(value).then(|| {
                let before = quotes + value[..offset].chars().count();
                Position { line: start.line, column: start.column + before }
            })
        };
        Some(exact().unwrap_or(start))
    }
}

/// A document with its value, or its syntax errors.
pub(crate) type Parsed = Result<(Document, Value), Vec<Problem>>;

/// Parses the documents of a file lazily, so that JSON Lines are processed line by line.
pub(crate) fn parse(file: &Utf8Path, format: Format, bytes: Vec<u8>) -> Box<dyn Iterator<Item = Parsed>> {
    let text = match String::from_utf8(bytes) {
        Ok(text) => text,
        Err(error) => {
            let problems = not_utf8(file, error.as_bytes(), error.utf8_error().valid_up_to());
            return Box::new(iter::once(Err(problems)));
        }
    };
    // serde_json rejects a byte order mark, which some editors write.
    let start = if text.starts_with('\u{feff}') { '\u{feff}'.len_utf8() } else { 0 };
    let source = Rc::new(Source { file: file.to_owned(), text });
    let whole = Document::new(&source, start..source.text.len(), 1);
    match format {
        Format::Json => Box::new(iter::once(with_value(whole, parse_json(file, &source.text[start..], 1)))),
        Format::Yaml => Box::new(iter::once(with_value(whole, parse_yaml(file, &source.text[start..])))),
        Format::JsonLines => Box::new(lines(source, start)),
    }
}

fn with_value(document: Document, value: Result<Value, Vec<Problem>>) -> Parsed {
    value.map(|value| (document, value))
}

fn parse_json(file: &Utf8Path, text: &str, first_line: usize) -> Result<Value, Vec<Problem>> {
    let value = serde_json::from_str(text).map_err(|error| {
        // serde_json counts columns in bytes and reports column 0 at the end of the text. The position may be a few columns
        // off after non-ASCII text, but it stays on the right line.
        let position = Position { line: error.line().max(1) + first_line - 1, column: error.column().max(1) };
        let what = error.to_string();
        let what = what.split(" at line ").next().unwrap_or(&what);
        syntax(file, Some(position), format!("invalid JSON: {what}"), "correct the JSON at this position")
    })?;
    let duplicates = duplicate_keys(file, text, first_line);
    // The JSON parser silently keeps the last value, and the author may have meant the other one.
    if duplicates.is_empty() { Ok(value) } else { Err(duplicates) }
}

fn duplicate_keys(file: &Utf8Path, text: &str, first_line: usize) -> Vec<Problem> {
    let DuplicateKeys { listed, omitted } = json_text::duplicate_keys(text);
    let offsets: Vec<usize> = listed.iter().map(|duplicate| duplicate.span.start).collect();
    let positions = json_text::positions(text.as_bytes(), &offsets);
    let problem = |(duplicate, Position { line, column }): (DuplicateKey, Position)| Problem {
        file: file.to_owned(),
        position: Some(Position { line: line + first_line - 1, column }),
        pointer: duplicate.pointer,
        case_id: None,
        message: format!("duplicate key {}", shortened(text.get(duplicate.span).unwrap_or_default())),
        remedy: "keep one of the two".to_owned(),
        marked: None,
    };
    let mut problems: Vec<Problem> = listed.into_iter().zip(positions).map(problem).collect();
    if omitted > 0 {
        problems.append(&mut syntax(file, None, format!("{omitted} more duplicate keys"), "keep one of each"));
    }
    problems
}

/// Returns a key as it is written, truncated to 80 characters.
fn shortened(key: &str) -> String {
    match key.char_indices().nth(80) {
        Some((end, _)) => format!("{}…", &key[..end]),
        None => key.to_owned(),
    }
}

fn parse_yaml(file: &Utf8Path, text: &str) -> Result<Value, Vec<Problem>> {
    yaml::parse(text).map_err(|error| syntax(file, error.position, error.message, error.remedy))
}

fn lines(source: Rc<Source>, start: usize) -> impl Iterator<Item = Parsed> {
    let (mut next, mut number) = (start, 0);
    iter::from_fn(move || {
        loop {
            let start = next;
            let rest = source.text.get(start..)?;
            next += rest.find('\n').map_or(rest.len(), |end| end + 1);
            number += 1;
            // `lines` also removes a carriage return before the line feed.
            let line = rest.lines().next()?;
            if !line.trim().is_empty() {
                let document = Document::new(&source, start..start + line.len(), number);
                return Some(with_value(document, parse_json(&source.file, line, number)));
            }
        }
    })
}

fn not_utf8(file: &Utf8Path, bytes: &[u8], valid: usize) -> Vec<Problem> {
    // Valid up to here, so lines and characters are counted exactly.
    let before = String::from_utf8_lossy(&bytes[..valid]);
    let line = before.matches('\n').count() + 1;
    let column = before.rsplit('\n').next().unwrap_or_default().chars().count() + 1;
    let position = Some(Position { line, column });
    syntax(file, position, "the file is not UTF-8 text".to_owned(), "save the file as UTF-8")
}

fn syntax(file: &Utf8Path, position: Option<Position>, message: String, remedy: &str) -> Vec<Problem> {
    let file = file.to_owned();
    let remedy = remedy.to_owned();
    vec![Problem { file, position, pointer: String::new(), case_id: None, message, remedy, marked: None }]
}
