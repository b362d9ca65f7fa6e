//! From the bytes of a file to its JSON values, by the format that the file's name tells.

use std::cell::OnceCell;
use std::iter;
use std::ops::Range;
use std::rc::Rc;

use camino::{Utf8Path, Utf8PathBuf};
use counterproof_artifact::locate::{self, DuplicateKey, DuplicateKeys, Position};
use serde_json::Value;
use serde_saphyr::Error as YamlError;

use crate::positions::Positions;
use crate::problem::Problem;

/// How a cases file is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Format {
    Json,
    JsonLines,
    Yaml,
}

impl Format {
    /// The format that the ending of a name stands for.
    pub(crate) fn of(path: &Utf8Path) -> Option<Self> {
        match path.extension()?.to_ascii_lowercase().as_str() {
            "json" => Some(Format::Json),
            "jsonl" | "ndjson" => Some(Format::JsonLines),
            "yaml" | "yml" => Some(Format::Yaml),
            _ => None,
        }
    }
}

/// A file as it was read.
#[derive(Debug)]
struct Source {
    file: Utf8PathBuf,
    text: String,
}

/// The text that one JSON value was read from: a whole file, or a line of JSON Lines. It holds little beside the text, since
/// there may be one for each case.
#[derive(Debug)]
pub(crate) struct Document {
    source: Rc<Source>,
    range: Range<usize>,
    first_line: usize,
    positions: OnceCell<Box<Positions>>,
}

/// Which part of a field a problem is about.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Part {
    Key,
    Value,
}

impl Document {
    fn new(source: &Rc<Source>, range: Range<usize>, first_line: usize) -> Self {
        Self { source: source.clone(), range, first_line, positions: OnceCell::new() }
    }

    /// The file.
    pub(crate) fn file(&self) -> &Utf8Path {
        &self.source.file
    }

    fn text(&self) -> &str {
        self.source.text.get(self.range.clone()).unwrap_or_default()
    }

    /// Where a field stands in the file.
    pub(crate) fn position(&self, pointer: &str, part: Part) -> Option<Position> {
        let positions = self.positions.get_or_init(|| Box::new(Positions::of(self.text())));
        let within = match part {
            Part::Key => positions.key(pointer),
            Part::Value => positions.value(pointer),
        };
        within.map(|Position { line, column }| Position { line: line + self.first_line - 1, column })
    }

    /// Where a part of a text value stands in the file: exactly, where the value is written as it is; else where the value
    /// starts.
    pub(crate) fn position_within(&self, pointer: &str, value: &str, offset: usize) -> Option<Position> {
        let start = self.position(pointer, Part::Value)?;
        let exact = || {
            let line = self.text().lines().nth(start.line - self.first_line)?;
            let rest = line.char_indices().nth(start.column - 1).map(|(place, _)| &line[place..])?;
            let quotes = usize::from(rest.starts_with(['"', '\'']));
            rest[quotes..].starts_with(value).then(|| {
                let before = quotes + value[..offset].chars().count();
                Position { line: start.line, column: start.column + before }
            })
        };
        Some(exact().unwrap_or(start))
    }
}

/// A document with its value, or what is wrong with its syntax.
pub(crate) type Parsed = Result<(Document, Value), Vec<Problem>>;

/// Reads the documents of a file, one after another: the value of a line need not wait for that of the last.
pub(crate) fn parse(file: &Utf8Path, format: Format, bytes: Vec<u8>) -> Box<dyn Iterator<Item = Parsed>> {
    let text = match String::from_utf8(bytes) {
        Ok(text) => text,
        Err(error) => {
            let problems = not_utf8(file, error.as_bytes(), error.utf8_error().valid_up_to());
            return Box::new(iter::once(Err(problems)));
        }
    };
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
        // At the end of the text serde_json counts column 0, or from bytes: good enough to find the place.
        let position = Position { line: error.line().max(1) + first_line - 1, column: error.column().max(1) };
        let what = error.to_string();
        let what = what.split(" at line ").next().unwrap_or(&what);
        syntax(file, Some(position), format!("the JSON cannot be read: {what}"), "correct the JSON there")
    })?;
    let twice = keys_that_are_there_twice(file, text, first_line);
    if twice.is_empty() { Ok(value) } else { Err(twice) }
}

/// The JSON reader keeps the last of two values and says nothing; a person meant one of them.
fn keys_that_are_there_twice(file: &Utf8Path, text: &str, first_line: usize) -> Vec<Problem> {
    let twice = locate::duplicate_keys(text);
    let DuplicateKeys { listed: twice, left_out } = twice;
    let offsets: Vec<usize> = twice.iter().map(|duplicate| duplicate.span.start).collect();
    let places = locate::positions(text.as_bytes(), &offsets);
    let problem = |(duplicate, Position { line, column }): (DuplicateKey, Position)| Problem {
        file: file.to_owned(),
        position: Some(Position { line: line + first_line - 1, column }),
        pointer: duplicate.pointer,
        case_id: None,
        message: format!("the key {} is there twice", shortened(text.get(duplicate.span).unwrap_or_default())),
        remedy: "keep one of the two".to_owned(),
        marked: None,
    };
    let mut problems: Vec<Problem> = twice.into_iter().zip(places).map(problem).collect();
    if left_out > 0 {
        problems.append(&mut syntax(file, None, format!("{left_out} more keys are there twice"), "keep one of each"));
    }
    problems
}

/// A key as it is written, cut where it is longer than anyone reads.
fn shortened(key: &str) -> String {
    match key.char_indices().nth(80) {
        Some((end, _)) => format!("{}…", &key[..end]),
        None => key.to_owned(),
    }
}

fn parse_yaml(file: &Utf8Path, text: &str) -> Result<Value, Vec<Problem>> {
    // YAML 1.2: `no` is a word and `007` is an id.
    let options = serde_saphyr::options! {
        strict_booleans: true,
        leading_zero_numbers_as_strings: true,
        underscored_numbers_as_strings: true,
        with_snippet: false,
    };
    serde_saphyr::from_str_with_options(text, options).map_err(|error| {
        let position = error.location().and_then(|location| {
            let (line, column) = (usize::try_from(location.line()).ok()?, usize::try_from(location.column()).ok()?);
            (line > 0).then_some(Position { line, column: column.max(1) })
        });
        // The parser's own words for these two are about its options.
        let (what, remedy) = match error.without_snippet() {
            YamlError::DuplicateMappingKey { key: Some(key), .. } => {
                (format!("the key \"{key}\" is there twice"), "keep one of the two")
            }
            YamlError::MultipleDocuments { .. } => {
                ("a second YAML document starts".to_owned(), "write the cases as one list, without `---` between them")
            }
            other => (format!("the YAML cannot be read: {other}"), "correct the YAML there"),
        };
        // The position is told apart from the message, so it need not be told within.
        let what = what.split(" at line ").next().unwrap_or(&what);
        syntax(file, position, what.to_owned(), remedy)
    })
}

fn lines(source: Rc<Source>, start: usize) -> impl Iterator<Item = Parsed> {
    let (mut next, mut number) = (start, 0);
    iter::from_fn(move || {
        loop {
            let start = next;
            let rest = source.text.get(start..)?;
            next += rest.find('\n').map_or(rest.len(), |end| end + 1);
            number += 1;
            let line = rest.lines().next()?;
            if !line.trim().is_empty() {
                let document = Document::new(&source, start..start + line.len(), number);
                return Some(with_value(document, parse_json(&source.file, line, number)));
            }
        }
    })
}

fn not_utf8(file: &Utf8Path, bytes: &[u8], valid: usize) -> Vec<Problem> {
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
