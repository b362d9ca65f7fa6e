//! The place of a part of a YAML string in the text that writes it.

use std::ops::Range;

use crate::locate;

/// Returns the bytes of a scalar that hold the bytes `part` of its value. `scalar` is the place of the scalar in the text, and the result
/// counts from its start. Returns `None` for values with blank lines, for other scalars over several lines, and for escapes that JSON
/// does not have.
pub(crate) fn within(text: &str, scalar: &Range<usize>, part: &Range<usize>) -> Option<Range<usize>> {
    let (before, written) = (text.get(..scalar.start)?, text.get(scalar.clone())?);
    if let Some(indentation) = block_indentation(before) {
        return within_block(written, indentation, part);
    }
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

/// In a block, each line lacks the indentation. The end of a line is one character in both styles, unless a line is blank.
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
