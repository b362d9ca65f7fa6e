//! The escapes in the content of a JSON string. A mask must replace whole escapes, otherwise the content is no longer valid JSON.

use std::ops::Range;

/// Finds escapes in a text from a place that is not within one. Places must not decrease.
#[derive(Debug)]
pub(crate) struct EscapeCursor<'a> {
    text: &'a [u8],
    at: usize,
}

impl<'a> EscapeCursor<'a> {
    /// Starts at a place.
    pub(crate) const fn new(text: &'a [u8], start: usize) -> Self {
        Self { text, at: start }
    }

    /// Returns the start of the escape around a place, or the place itself if it is not within one.
    pub(crate) fn start(&mut self, place: usize) -> usize {
        self.around(place).map_or(place, |escape| escape.start)
    }

    /// Returns the end of the escape around a place, or the place itself if it is not within one.
    pub(crate) fn end(&mut self, place: usize) -> usize {
        self.around(place).map_or(place, |escape| escape.end.min(self.text.len()))
    }

    /// Returns the escape that starts before a place and ends after it.
    fn around(&mut self, place: usize) -> Option<Range<usize>> {
        while self.at < place {
            let Some(found) = self.text[self.at..place].iter().position(|byte| *byte == b'\\') else {
                self.at = place;
                return None;
            };
            let start = self.at + found;
            let end = start + self.length(start);
            if end > place {
                self.at = start;
                return Some(start..end);
            }
            self.at = end;
        }
        None
    }

    /// Returns the length of an escape. Both halves of a surrogate pair are one escape.
    fn length(&self, start: usize) -> usize {
        let is_unit = |at: usize, second: &[u8]| match self.text.get(at..at + 4) {
            Some([b'\\', b'u', b'd' | b'D', digit]) => second.contains(digit),
            _ => false,
        };
        match self.text.get(start + 1) {
            Some(b'u') if is_unit(start, b"89abAB") && is_unit(start + 6, b"cdefCDEF") => 12,
            Some(b'u') => 6,
            _ => 2,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_place_within_an_escape_moves_to_its_bounds() {
        let text = br#"a\n\\"b\u00e9\ud83d\ude00c\"#;
        let around = |place| {
            let mut cursor = EscapeCursor::new(text, 0);
            (cursor.start(place), cursor.end(place))
        };
        let expected = [
            (0, (0, 0)),
            (1, (1, 1)),
            (2, (1, 3)),
            (4, (3, 5)),
            (5, (5, 5)),
            (8, (7, 13)),
            (13, (13, 13)),
            (19, (13, 25)),
            (25, (25, 25)),
            (27, (26, 27)),
        ];
        for (place, bounds) in expected {
            assert_eq!(around(place), bounds, "{place}");
        }
    }
}
