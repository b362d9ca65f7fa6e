//! Maps JSON Pointers to lines and columns. One YAML parser serves both formats, because JSON is almost a subset of YAML.
//!
//! The index is built only to report a problem. Where the parser stops, the position of the nearest parent is used, so a
//! lookup never fails a load.

use std::collections::HashMap;
use std::ops::Range;

use counterproof_artifact::pointer;
use serde_saphyr::granit_parser::{Event, Marker, Parser};

use counterproof_json_text::Position;

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

/// The start of a value, and its bytes. Those of a collection end where it starts.
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

    /// Returns the bytes of a value, or of its nearest parent. Those of a collection are empty, and name its start.
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
}
