//! YAML documents as JSON values, with positions.
//!
//! The document must be one that JSON can express. [`parse`] limits the depth and what aliases add, since the text can come from
//! anyone. [`Positions`] is built only to report something.

use std::collections::HashMap;
use std::ops::Range;

use counterproof_artifact::pointer;
use counterproof_json_text::Position;
use serde_json::Value;
use serde_saphyr::budget::BudgetBreach;
use serde_saphyr::granit_parser::{Event, Marker, Parser};
use serde_saphyr::{Budget, Error};

/// Bytes of text that aliases may add to any file. Large files may add as much as they have.
const MAX_ALIAS_TEXT_BYTES: usize = 64 << 20;

/// Why a text is not a YAML document that JSON can express.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct YamlError {
    /// The place in the text, if known.
    pub position: Option<Position>,
    /// What is wrong.
    pub message: String,
    /// How to fix it.
    pub remedy: &'static str,
}

/// Parses one YAML 1.2 document: `no` is a string, and an id such as `007` keeps its zeros. An empty text is null.
pub fn parse(text: &str) -> Result<Value, YamlError> {
    let options = serde_saphyr::options! {
        strict_booleans: true,
        leading_zero_numbers_as_strings: true,
        underscored_numbers_as_strings: true,
        // The finding has an excerpt.
        with_snippet: false,
        budget: budget(text.len()),
        alias_limits: serde_saphyr::alias_limits! { max_total_replayed_events: alias_events(text.len()) },
    };
    serde_saphyr::from_str_with_options(text, options).map_err(|error| {
        let position = error.location().and_then(|location| {
            let (line, column) = (usize::try_from(location.line()).ok()?, usize::try_from(location.column()).ok()?);
            (line > 0).then_some(Position { line, column: column.max(1) })
        });
        let (what, remedy) = explain(&error, text.len());
        // The position has its own field, so the message does not repeat it.
        let message = what.split(" at line ").next().unwrap_or(&what).to_owned();
        YamlError { position, message, remedy }
    })
}

/// Returns a message and a remedy for an error in a text of this size. The parser's own messages for limits refer to its
/// options.
fn explain(error: &Error, bytes: usize) -> (String, &'static str) {
    let (mut cause, mut in_alias) = (error.without_snippet(), false);
    // Aliases inside each other wrap the error once per level.
    while let Error::AliasError { error, .. } = cause {
        (cause, in_alias) = (error.without_snippet(), true);
    }
    let limits = format!(
        "more than {} YAML events or {} bytes of text, the limits for a file of this size",
        alias_events(bytes),
        alias_text_bytes(bytes)
    );
    let aliases =
        (format!("the aliases expand to {limits}"), "write the values out, or use no aliases inside each other");
    match cause {
        Error::DuplicateMappingKey { key: Some(key), .. } => {
            (format!("duplicate key \"{key}\""), "keep one of the two")
        }
        Error::MultipleDocuments { .. } => {
            ("a second YAML document starts here".to_owned(), "write one document, without `---` between its parts")
        }
        Error::AliasReplayLimitExceeded { .. } => aliases,
        Error::Budget { breach, .. } => match breach {
            BudgetBreach::Depth { depth } => {
                (format!("the values are nested {depth} levels deep, which is more than the limit"), "nest less")
            }
            BudgetBreach::ScalarBytes { .. } => aliases,
            BudgetBreach::RecordedAnchorEvents { .. } | BudgetBreach::RecordedAnchorBytes { .. } if in_alias => aliases,
            // Each anchor keeps a copy of what is below it.
            BudgetBreach::RecordedAnchorEvents { .. } | BudgetBreach::RecordedAnchorBytes { .. } => (
                format!("the values below anchors, counted once for each anchor, are {limits}"),
                "remove anchors that no alias uses, or put them on smaller values",
            ),
            _ => (format!("invalid YAML: {cause}"), "correct the YAML at this position"),
        },
        other => (format!("invalid YAML: {other}"), "correct the YAML at this position"),
    }
}

/// Returns how many YAML events the aliases of a text may expand to: in proportion to its size, so that every case of a
/// large file can use a default, but nested aliases cannot multiply.
fn alias_events(bytes: usize) -> usize {
    (bytes / 2).max(1_000_000)
}

/// Returns how many bytes of text the aliases of a text may add.
fn alias_text_bytes(bytes: usize) -> usize {
    bytes.max(MAX_ALIAS_TEXT_BYTES)
}

/// Returns the limits of the YAML parser for a text of this size. They bound what aliases add, and the depth.
fn budget(bytes: usize) -> Option<Budget> {
    let text_bytes = bytes.saturating_add(alias_text_bytes(bytes));
    serde_saphyr::budget! {
        // The size of the text bounds what is written out. Only aliases multiply it.
        max_events: usize::MAX,
        max_nodes: usize::MAX,
        max_aliases: usize::MAX,
        max_anchors: usize::MAX,
        max_merge_keys: usize::MAX,
        enforce_alias_anchor_ratio: false,
        max_total_scalar_bytes: text_bytes,
        max_recorded_anchor_events: alias_events(bytes),
        max_recorded_anchor_bytes: text_bytes,
    }
}

/// Positions of the values of a document, by JSON Pointer.
#[derive(Debug, Default)]
pub struct Positions {
    nodes: HashMap<String, NodePosition>,
}

#[derive(Debug, Clone)]
struct NodePosition {
    key: Option<Position>,
    value: Place,
}

/// The start of a value, and its bytes, which are empty for a collection.
#[derive(Debug, Clone)]
struct Place {
    position: Position,
    bytes: Range<usize>,
}

/// A collection that is not closed yet.
enum Open {
    Sequence { pointer: String, next: usize },
    Mapping { pointer: String, key: Option<(String, Position)> },
}

impl Positions {
    /// Parses a text and records the positions of all values.
    pub fn parse(text: &str) -> Self {
        let mut positions = Self::default();
        let mut open: Vec<Open> = Vec::new();
        for event in Parser::new_from_str(text) {
            // Values after a syntax error have no position, and `nearest` finds a parent.
            let Ok((event, span)) = event else { break };
            let at = Place { position: position(span.start), bytes: span.byte_range().unwrap_or_default() };
            match event {
                Event::Scalar(text, ..) => {
                    if let Some(Open::Mapping { key: key @ None, .. }) = open.last_mut() {
                        *key = Some((text.into_owned(), at.position));
                    } else {
                        positions.enter(&mut open, at);
                    }
                }
                Event::SequenceStart(..) => {
                    let pointer = positions.enter(&mut open, at);
                    open.push(Open::Sequence { pointer, next: 0 });
                }
                Event::MappingStart(..) => {
                    let pointer = positions.enter(&mut open, at);
                    open.push(Open::Mapping { pointer, key: None });
                }
                Event::Alias(_) => {
                    // Values below an alias are not recorded: `nearest` finds the alias.
                    positions.enter(&mut open, at);
                }
                Event::SequenceEnd | Event::MappingEnd => {
                    open.pop();
                }
                // A second document would overwrite the positions of the first.
                Event::DocumentEnd => break,
                _ => {}
            }
        }
        positions
    }

    /// Records the position of the next value and returns its pointer.
    fn enter(&mut self, open: &mut [Open], value: Place) -> String {
        let (pointer, key) = match open.last_mut() {
            None => (String::new(), None),
            Some(Open::Sequence { pointer, next }) => {
                let child = format!("{pointer}/{next}");
                *next += 1;
                (child, None)
            }
            Some(Open::Mapping { pointer, key }) => match key.take() {
                Some((name, at)) => (pointer::child(pointer, &name), Some(at)),
                // A collection as a key does not exist in JSON, so no pointer refers to it.
                None => (pointer::child(pointer, "?"), None),
            },
        };
        self.nodes.insert(pointer.clone(), NodePosition { key, value });
        pointer
    }

    /// Returns the position of a value, or of its nearest parent.
    pub fn value(&self, pointer: &str) -> Option<Position> {
        self.nearest(pointer).map(|node| node.value.position)
    }

    /// Returns the position of the key of a value, or of the value if it has no key.
    pub fn key(&self, pointer: &str) -> Option<Position> {
        self.nearest(pointer).map(|node| node.key.unwrap_or(node.value.position))
    }

    /// Returns the bytes of a value, or of its nearest parent. For a collection, they are empty and name its start.
    pub fn bytes(&self, pointer: &str) -> Option<Range<usize>> {
        self.nearest(pointer).map(|node| node.value.bytes.clone())
    }

    fn nearest(&self, mut pointer: &str) -> Option<&NodePosition> {
        loop {
            if let Some(node) = self.nodes.get(pointer) {
                return Some(node);
            }
            pointer = &pointer[..pointer.rfind('/')?];
        }
    }
}

/// The parser counts lines from 1 and columns from 0.
fn position(marker: Marker) -> Position {
    Position { line: marker.line(), column: marker.col() + 1 }
}

/// Returns the bytes of a scalar that hold the bytes `part` of its value. `scalar` is the place of the scalar in the text, and the result
/// counts from its start. Returns `None` for values with blank lines, for other scalars over several lines, and for escapes that JSON
/// does not have.
pub(crate) fn within(text: &str, scalar: &Range<usize>, part: &Range<usize>) -> Option<Range<usize>> {
    let (before, written) = (text.get(..scalar.start)?, text.get(scalar.clone())?);
    if let Some(indentation) = block_indentation(before) {
        return within_block(written, indentation, part);
    }
    // Folding removes line ends and indentation, so the bytes of the value are not the bytes of the text.
    if written.contains('\n') {
        return None;
    }
    match written.chars().next()? {
        '"' => has_only_json_escapes(written).then(|| counterproof_json_text::within(written, part))?,
        '\'' => within_single_quotes(written, part),
        _ => written.get(part.clone()).map(|_| part.clone()),
    }
}

/// Returns the indentation of a block scalar by the text before its first line. Returns `None` for other scalars.
fn block_indentation(before: &str) -> Option<usize> {
    let (header, indentation) = before.rsplit_once('\n')?;
    let style = header.trim_end().trim_end_matches(['-', '+']).chars().next_back()?;
    (matches!(style, '|' | '>') && indentation.bytes().all(|byte| byte == b' ')).then_some(indentation.len())
}

/// Returns the bytes of a block scalar that hold a part of its value, which lacks the indentation of each line.
fn within_block(written: &str, indentation: usize, part: &Range<usize>) -> Option<Range<usize>> {
    let (mut decoded, mut at, mut start) = (0, 0, None);
    for (index, line) in written.split('\n').enumerate() {
        let skipped = if index == 0 { 0 } else { indentation };
        let content = line.get(skipped..).filter(|_| line.trim_start().len() + skipped <= line.len())?;
        let place = |wanted: usize| wanted.checked_sub(decoded).filter(|within| *within <= content.len());
        start = start.or(place(part.start).map(|within| at + skipped + within));
        if let (Some(start), Some(end)) = (start, place(part.end)) {
            return Some(start..at + skipped + end);
        }
        // A line end is one character of the value in both styles, a newline or a space, unless a line is blank.
        decoded += content.len() + 1;
        at += line.len() + 1;
    }
    None
}

/// True if JSON has every escape of a text too.
fn has_only_json_escapes(text: &str) -> bool {
    let mut characters = text.chars();
    while let Some(character) = characters.next() {
        if character == '\\' && !matches!(characters.next(), Some('"' | '\\' | '/' | 'b' | 'f' | 'n' | 'r' | 't')) {
            return false;
        }
    }
    true
}

/// In single quotes, two quotes stand for one.
fn within_single_quotes(written: &str, part: &Range<usize>) -> Option<Range<usize>> {
    let inner = written.strip_prefix('\'')?.strip_suffix('\'')?;
    let quotes = inner.match_indices("''").map(|(at, _)| at).enumerate();
    // The place of each doubled quote in the value.
    let quotes: Vec<usize> = quotes.map(|(before, at)| at - before).collect();
    let place = |at: usize| 1 + at + quotes.iter().filter(|quote| **quote < at).count();
    let found = place(part.start)..place(part.end);
    written.get(found.clone()).filter(|_| found.end < written.len()).map(|_| found)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[expect(clippy::unnecessary_wraps, reason = "the helper is compared with lookups, which return options")]
    fn at(line: usize, column: usize) -> Option<Position> {
        Some(Position { line, column })
    }

    #[test]
    fn values_and_keys_of_yaml_are_found() {
        let positions = Positions::parse("# cases\n- id: a\n  input:\n    user: hi\n- id: b\n");
        assert_eq!(positions.value("/0/input/user"), at(4, 11));
        assert_eq!(positions.key("/0/input/user"), at(4, 5));
        assert_eq!(positions.value("/1/id"), at(5, 7));
    }

    #[test]
    fn values_of_json_are_found_with_tabs_and_escapes() {
        let positions =
            Positions::parse("[\n\t{\n\t\t\"id\": \"a\",\n\t\t\"a/b\": {\"x\":[1,{\"\\u0079\":2}]}\n\t}\n]\n");
        assert_eq!(positions.value("/0/id"), at(3, 9));
        assert_eq!(positions.key("/0/a~1b"), at(4, 3));
        assert_eq!(positions.value("/0/a~1b/x/1/y"), at(4, 28));
    }

    #[test]
    fn a_value_without_its_own_position_has_that_of_its_parent() {
        let positions = Positions::parse("base: &b {x: 1}\ncopy: *b\n");
        assert_eq!(positions.value("/copy/x"), at(2, 7));
        assert_eq!(Positions::parse("").value("/x"), None);
    }

    #[test]
    fn a_part_is_found_in_a_block() {
        for header in ["|", "|-", ">", ">+"] {
            let text = format!("a:\n  cel: {header}\n    has(x)\n    && (y\n      || z)\n  b: 1\n");
            let start = text.find("has").unwrap();
            let scalar = start..text.find("\n  b").unwrap();
            let value = "has(x)\n&& (y\n  || z)";
            for part in ["has(x)", "x", "&& (y", "z"] {
                let at = value.find(part).unwrap();
                let found = within(&text, &scalar, &(at..at + part.len())).unwrap();
                assert_eq!(&text[start + found.start..start + found.end], part, "{text}");
            }
        }
    }

    #[test]
    fn a_part_is_found_in_each_style() {
        for (written, part, expected) in [
            ("a == b", 2..4, "=="),
            ("\"a == b\"", 2..4, "=="),
            ("'a == b'", 0..1, "a"),
            ("\"x == 'ci' && y\"", 13..14, "y"),
            (r#""a\"b\" == c""#, 5..7, "=="),
            (r#""a.matches('\\d') && b""#, 19..20, "b"),
            ("'a == ''b'' && c'", 12..13, "c"),
            ("'a == ''b'''", 5..8, "''b''"),
            ("'a'", 0..1, "a"),
        ] {
            let found = within(written, &(0..written.len()), &part);
            assert_eq!(found.and_then(|found| written.get(found)), Some(expected), "{written}");
        }
    }

    #[test]
    fn other_texts_have_no_place() {
        for written in [r#""\x41 == b""#, "a\n  b", "ab", "'a'"] {
            assert_eq!(within(written, &(0..written.len()), &(1..3)), None, "{written}");
        }
    }
}
