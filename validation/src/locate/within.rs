//! The place of a part of a JSON string in the text that encodes it.

use std::ops::Range;

/// Returns the bytes of `quoted`, a JSON string with its quotes, that encode the bytes `part` of its value. Returns `None` if
/// `quoted` is not a string, or the value is shorter.
pub fn within(quoted: &str, part: &Range<usize>) -> Option<Range<usize>> {
    let inner = quoted.strip_prefix('"')?.strip_suffix('"')?;
    let (mut decoded, mut start, mut at) = (0, None, 0);
    loop {
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

/// Returns the number of bytes of the first character as it is written, and in UTF-8.
fn next_char(text: &str) -> Option<(usize, usize)> {
    let Some(escape) = text.strip_prefix('\\') else {
        let length = text.chars().next()?.len_utf8();
        return Some((length, length));
    };
    let unit = |text: &str| u32::from_str_radix(text.strip_prefix('u')?.get(..4)?, 16).ok();
    let Some(first) = unit(escape) else { return (!escape.is_empty()).then_some((2, 1)) };
    match char::from_u32(first) {
        Some(c) => Some((6, c.len_utf8())),
        // Two escapes of surrogates are one character, which has four bytes.
        None => Some((12, 4)).filter(|_| text.len() >= 12),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn found(quoted: &str, part: Range<usize>) -> Option<&str> {
        within(quoted, &part).map(|span| &quoted[span])
    }

    #[test]
    fn a_part_is_found_after_escapes() {
        assert_eq!(found(r#""a \"b\" == c""#, 3..4), Some("b"));
        assert_eq!(found(r#""\u00e9\ud83d\ude00x""#, 6..7), Some("x"));
        assert_eq!(found(r#""\u00e9x""#, 0..2), Some("\\u00e9"));
        assert_eq!(found(r#""abc""#, 3..3), Some(""));
        assert_eq!(found(r#""abc""#, 2..4), None);
        assert_eq!(found("12", 0..1), None);
    }

    proptest! {
        #[test]
        fn each_character_is_found_as_it_is_written(text in "[a\"\\\\\n\u{1}é😀]{0,12}", escape_all: bool) {
            let escaped = |c: char| {
                let units: Vec<u16> = c.encode_utf16(&mut [0; 2]).to_vec();
                units.iter().map(|unit| format!("\\u{unit:04x}")).collect::<Vec<_>>().concat()
            };
            let encode = |c: char| match serde_json::to_string(&c).unwrap() {
                _ if escape_all => escaped(c),
                plain => plain[1..plain.len() - 1].to_owned(),
            };
            let parts: Vec<String> = text.chars().map(encode).collect();
            let quoted = format!("\"{}\"", parts.concat());
            for ((at, c), part) in text.char_indices().zip(&parts) {
                prop_assert_eq!(found(&quoted, at..at + c.len_utf8()), Some(part.as_str()));
            }
        }
    }
}
