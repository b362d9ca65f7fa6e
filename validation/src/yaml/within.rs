//! The place of a part of a YAML string in the text that writes it.

use std::ops::Range;

use crate::locate;

/// Returns the bytes of `written`, a scalar as the text has it, that hold the bytes `part` of its value. Returns `None` for block
/// scalars, scalars over several lines, and escapes that JSON does not have.
pub(crate) fn within(written: &str, part: &Range<usize>) -> Option<Range<usize>> {
    if written.contains('\n') {
        return None;
    }
    match written.chars().next()? {
        '"' => has_only_json_escapes(written).then(|| locate::within(written, part))?,
        '\'' => within_single_quotes(written, part),
        // A block scalar.
        '|' | '>' => None,
        _ => written.get(part.clone()).map(|_| part.clone()),
    }
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
            let found = within(written, &part);
            assert_eq!(found.and_then(|found| written.get(found)), Some(expected), "{written}");
        }
    }

    #[test]
    fn other_texts_have_no_place() {
        for written in [r#""\x41 == b""#, "a\n  b", "|\n  a b", "ab", "'a'"] {
            assert_eq!(within(written, &(1..3)), None, "{written}");
        }
    }
}
