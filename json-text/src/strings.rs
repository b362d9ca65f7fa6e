//! The strings of a JSON text: what their escapes mean, and which bytes encode a part of a string.

use std::borrow::Cow;
use std::ops::Range;

/// Decodes the escapes of a quoted string. What cannot be decoded is returned as it is, without the quotes.
pub fn decode(quoted: &str) -> Cow<'_, str> {
    let inner = quoted.trim_matches('"');
    // Most strings have no escape and are borrowed.
    if quoted.contains('\\') {
        return serde_json::from_str::<String>(quoted).map_or(inner.into(), Into::into);
    }
    inner.into()
}

/// Returns the bytes of `quoted`, a JSON string with its quotes, that encode the bytes `part` of its value. Returns `None` if
/// `quoted` is not a string, or the value is shorter.
pub fn within(quoted: &str, part: &Range<usize>) -> Option<Range<usize>> {
    let inner = quoted.strip_prefix('"')?.strip_suffix('"')?;
    let (mut decoded, mut start, mut at) = (0, None, 0);
    loop {
        // Not `==`: the part may start within the bytes of a character.
        if start.is_none() && decoded >= part.start {
            start = Some(at);
        }
        if let Some(start) = start.filter(|_| decoded >= part.end) {
            return Some(start + 1..at + 1);
        }
        let (encoded, length) = next_char(&inner[at..])?;
        at += encoded;
        decoded += length;
    }
}

/// Returns the number of bytes of the first character in the text, and in UTF-8.
fn next_char(text: &str) -> Option<(usize, usize)> {
    if !text.starts_with('\\') {
        let length = text.chars().next()?.len_utf8();
        return Some((length, length));
    }
    let (character, encoded) = escape(text.as_bytes())?;
    Some((encoded, character.len_utf8()))
}

/// Returns the character of the escape with which a text starts, and the length of the escape.
pub fn escape(text: &[u8]) -> Option<(char, usize)> {
    let character = match text {
        [b'\\', b'u', ..] => return unit(text),
        [b'\\', byte @ (b'"' | b'\\' | b'/'), ..] => char::from(*byte),
        [b'\\', b'b', ..] => '\u{8}',
        [b'\\', b'f', ..] => '\u{c}',
        [b'\\', b'n', ..] => '\n',
        [b'\\', b'r', ..] => '\r',
        [b'\\', b't', ..] => '\t',
        _ => return None,
    };
    Some((character, 2))
}

/// Returns the character of one or two escaped units of UTF-16.
fn unit(text: &[u8]) -> Option<(char, usize)> {
    let unit = |at: usize| {
        let digits = text.get(at..at + 6)?.strip_prefix(b"\\u")?;
        // A sign is accepted by the parser, and is not a digit.
        let digits = std::str::from_utf8(digits).ok().filter(|digits| digits.bytes().all(|it| it.is_ascii_hexdigit()));
        u16::from_str_radix(digits?, 16).ok()
    };
    let first = unit(0)?;
    if let Some(character) = char::from_u32(u32::from(first)) {
        return Some((character, 6));
    }
    let pair = [first, unit(6)?];
    let character = char::decode_utf16(pair).next()?.ok()?;
    Some((character, 12))
}

/// Returns the length of the escape at the start of a text. Both halves of a surrogate pair are one escape, because they encode one
/// character.
fn escape_length(text: &[u8]) -> usize {
    let is_unit = |at: usize, second: &[u8]| match text.get(at..at + 4) {
        Some([b'\\', b'u', b'd' | b'D', digit]) => second.contains(digit),
        _ => false,
    };
    match text.get(1) {
        Some(b'u') if is_unit(0, b"89abAB") && is_unit(6, b"cdefCDEF") => 12,
        Some(b'u') => 6,
        _ => 2,
    }
}

/// Finds the escapes around places in the content of a string, from a place on that is not within one. Places must not decrease.
///
/// A mask must replace whole escapes, otherwise the content is no longer valid JSON.
#[derive(Debug)]
pub struct EscapeCursor<'a> {
    text: &'a [u8],
    at: usize,
}

impl<'a> EscapeCursor<'a> {
    /// Starts at a place.
    pub const fn new(text: &'a [u8], start: usize) -> Self {
        Self { text, at: start }
    }

    /// Returns the start of the escape around a place, or the place itself if it is not within one.
    pub fn start(&mut self, place: usize) -> usize {
        self.around(place).map_or(place, |escape| escape.start)
    }

    /// Returns the end of the escape around a place, or the place itself if it is not within one.
    pub fn end(&mut self, place: usize) -> usize {
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
            let end = start + escape_length(&self.text[start..]);
            if end > place {
                // Stays at the escape, because the next place may be within it too.
                self.at = start;
                return Some(start..end);
            }
            self.at = end;
        }
        None
    }
}
