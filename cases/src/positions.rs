//! JSON Pointer → line and column, for YAML and for JSON, which is nearly a part of it.
//!
//! An index is built only once something is wrong. It serves messages alone: where the parser gives up, positions above
//! the place stand in, and nothing fails.

use std::collections::HashMap;

use counterproof_artifact::check::Position;
use counterproof_artifact::pointer;
use serde_saphyr::granit_parser::{Event, Marker, Parser};

/// Where the values of a document stand.
#[derive(Debug, Default)]
pub(crate) struct Positions {
    places: HashMap<String, Place>,
}

#[derive(Debug, Clone, Copy)]
struct Place {
    key: Option<Position>,
    value: Position,
}

/// A collection whose end has not come yet.
enum Open {
    Sequence { pointer: String, next: usize },
    Mapping { pointer: String, key: Option<(String, Position)> },
}

impl Positions {
    /// Reads a whole text for the places of its values.
    pub(crate) fn of(text: &str) -> Self {
        let mut positions = Self::default();
        let mut open: Vec<Open> = Vec::new();
        for event in Parser::new_from_str(text) {
            let Ok((event, span)) = event else { break };
            let at = position(span.start);
            match event {
                Event::Scalar(text, ..) => {
                    if let Some(Open::Mapping { key: key @ None, .. }) = open.last_mut() {
                        *key = Some((text.into_owned(), at));
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
                // A second document would overwrite the places of the first.
                Event::DocumentEnd => break,
                _ => {}
            }
        }
        positions
    }

    /// Notes where the next value stands, and gives its pointer.
    fn enter(&mut self, open: &mut [Open], value: Position) -> String {
        let (pointer, key) = match open.last_mut() {
            None => (String::new(), None),
            Some(Open::Sequence { pointer, next }) => {
                let child = format!("{pointer}/{next}");
                *next += 1;
                (child, None)
            }
            Some(Open::Mapping { pointer, key }) => match key.take() {
                Some((name, at)) => (pointer::child(pointer, &name), Some(at)),
                // A collection as a key: no JSON has it, so no pointer leads here.
                None => (pointer::child(pointer, "?"), None),
            },
        };
        self.places.insert(pointer.clone(), Place { key, value });
        pointer
    }

    /// Where a value stands, or else the nearest value around it.
    pub(crate) fn value(&self, pointer: &str) -> Option<Position> {
        self.nearest(pointer).map(|place| place.value)
    }

    /// Where the key of a value stands, or else the value.
    pub(crate) fn key(&self, pointer: &str) -> Option<Position> {
        self.nearest(pointer).map(|place| place.key.unwrap_or(place.value))
    }

    fn nearest(&self, mut pointer: &str) -> Option<Place> {
        loop {
            if let Some(place) = self.places.get(pointer) {
                return Some(*place);
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

    #[expect(clippy::unnecessary_wraps, reason = "lookups give options, and are compared with this")]
    fn at(line: usize, column: usize) -> Option<Position> {
        Some(Position { line, column })
    }

    #[test]
    fn values_and_keys_of_yaml_are_found() {
        let positions = Positions::of("# cases\n- id: a\n  input:\n    user: hi\n- id: b\n");
        assert_eq!(positions.value("/0/input/user"), at(4, 11));
        assert_eq!(positions.key("/0/input/user"), at(4, 5));
        assert_eq!(positions.value("/1/id"), at(5, 7));
    }

    #[test]
    fn values_of_json_are_found_with_tabs_and_escapes() {
        let positions = Positions::of("[\n\t{\n\t\t\"id\": \"a\",\n\t\t\"a/b\": {\"x\":[1,{\"\\u0079\":2}]}\n\t}\n]\n");
        assert_eq!(positions.value("/0/id"), at(3, 9));
        assert_eq!(positions.key("/0/a~1b"), at(4, 3));
        assert_eq!(positions.value("/0/a~1b/x/1/y"), at(4, 28));
    }

    #[test]
    fn a_value_without_a_place_of_its_own_has_that_of_its_parent() {
        let positions = Positions::of("base: &b {x: 1}\ncopy: *b\n");
        assert_eq!(positions.value("/copy/x"), at(2, 7));
        assert_eq!(Positions::of("").value("/x"), None);
    }
}
