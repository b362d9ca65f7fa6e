//! Builds one regular expression for all forms that common encoders give a value.
//!
//! Encoders differ in the characters that they encode, so each character of the value may occur in any form: literal,
//! escaped for JSON (possibly repeatedly), percent-encoded (possibly twice), or as an HTML entity. Base64 does not preserve
//! byte boundaries, so the value has three base64 forms, one for each alignment.

use std::fmt::Write;

/// Longest form of one character, in bytes: a JSON escape after eight backslashes.
const LONGEST_CHARACTER: usize = 13;

/// Smallest number of bytes for the base64 forms: shorter ones occur in unrelated text.
const SHORTEST_ENCODED: usize = 6;

/// Returns the pattern of all forms of a value.
pub(super) fn all(value: &str) -> String {
    forms(value, Before::Any)
}

/// Returns the pattern that detects the start of any form of a value.
pub(super) fn beginnings(value: &str) -> String {
    forms(value, Before::Nothing)
}

fn forms(value: &str, before: Before) -> String {
    let mut forms = vec![plain(value)];
    if value.len() >= SHORTEST_ENCODED {
        forms.extend((0..3).map(|offset| base64(value.as_bytes(), offset, before)));
    }
    forms.join("|")
}

/// The context before the base64 form of a value.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Before {
    /// The character that encodes bits of the value and of the preceding byte.
    Any,
    /// None: that character can be any, so every text would end with a match.
    Nothing,
}

/// Returns the largest length of a form in bytes. A character outside the BMP takes two UTF-16 escapes.
pub(super) fn longest(value: &str) -> usize {
    value.len() * LONGEST_CHARACTER
}

fn plain(value: &str) -> String {
    value.chars().map(character).collect()
}

fn character(character: char) -> String {
    let mut buffer = [0; 4];
    let bytes = character.encode_utf8(&mut buffer).as_bytes();
    let mut forms = vec![literal(bytes)];
    let percent: String = bytes.iter().fold(String::new(), |mut text, byte| {
        // `%25` is an encoded `%`: each further round of percent-encoding adds one.
        let _ = write!(text, "%(?:25){{0,2}}(?i:{byte:02x})");
        text
    });
    forms.push(percent);
    let mut units = [0; 2];
    let escaped = character.encode_utf16(&mut units).iter().fold(String::new(), |mut text, unit| {
        // Four rounds of JSON escaping write one backslash as eight.
        let _ = write!(text, r"\\{{1,8}}u(?i:{unit:04x})");
        text
    });
    forms.push(escaped);
    let short = match character {
        '\n' => Some('n'),
        '\r' => Some('r'),
        '\t' => Some('t'),
        '"' | '/' | '\'' => Some(character),
        _ => None,
    };
    if let Some(short) = short {
        forms.push(format!(r"\\{{1,8}}{}", literal(short.to_string().as_bytes())));
    }
    match character {
        // Every round of escaping doubles the backslashes.
        '\\' => forms.insert(0, r"\\{1,16}".to_owned()),
        ' ' => forms.push(r"\+".to_owned()),
        '&' => forms.push("&amp;".to_owned()),
        '<' => forms.push("&lt;".to_owned()),
        '>' => forms.push("&gt;".to_owned()),
        '"' => forms.push("&quot;".to_owned()),
        '\'' => forms.push("&apos;".to_owned()),
        _ => {}
    }
    if !character.is_ascii_alphanumeric() {
        let code = u32::from(character);
        forms.push(format!("&#0{{0,3}}(?:{code}|[xX]0{{0,3}}(?i:{code:x}));"));
    }
    format!("(?:{})", forms.join("|"))
}

/// Returns the base64 form of the value at an alignment of `offset` bytes (modulo three). Characters that depend on the
/// surrounding bytes are omitted, except one at each end, which encodes bits of both.
fn base64(value: &[u8], offset: usize, before: Before) -> String {
    const ALPHABET: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    // Bits, not bytes: the value starts within a group of three bytes, and each character encodes six bits.
    let bit = |index: usize| {
        // The bits before the value are unknown; the character that encodes only them is omitted.
        let byte = (index / 8).checked_sub(offset).and_then(|at| value.get(at)).copied().unwrap_or_default();
        byte >> (7 - index % 8) & 1
    };
    let (start, end) = (offset * 8, (offset + value.len()) * 8);
    let digit = |index: usize| {
        let sextet = (index * 6..index * 6 + 6).fold(0, |sextet, at| sextet << 1 | bit(at));
        match ALPHABET[usize::from(sextet)] {
            // Standard and URL-safe alphabet, and the forms in which URLs and JSON write these two characters.
            b'+' => r"(?:\+|-|%(?:25)?2[bB]|\\{1,8}u002[bB])".to_owned(),
            b'/' => r"(?:\\{0,8}/|_|%(?:25)?2[fF]|\\{1,8}u002[fF])".to_owned(),
            other => char::from(other).to_string(),
        }
    };
    let known: String = (start.div_ceil(6)..end / 6).map(digit).collect();
    let shared = |is_shared: bool| if is_shared { "[A-Za-z0-9+/_-]?" } else { "" };
    // A character at an edge encodes bits of the value and of a neighbour, so it can be any character.
    let first = before == Before::Any && !start.is_multiple_of(6);
    format!("{}{known}{}", shared(first), shared(!end.is_multiple_of(6)))
}

fn literal(bytes: &[u8]) -> String {
    bytes.iter().fold(String::new(), |mut text, byte| {
        let _ = write!(text, r"\x{byte:02x}");
        text
    })
}
