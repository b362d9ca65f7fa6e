//! The place of a part of a YAML string in the text that writes it.

use std::ops::Range;

/// Returns the bytes of `written`, a scalar as the text has it, that hold the bytes `part` of its value. Returns `None` if the text
/// may differ from the value, as in scalars with escapes or over several lines.
pub(crate) fn within(written: &str, part: &Range<usize>) -> Option<Range<usize>> {
    let (inner, start) = match written.chars().next()? {
        quote @ ('"' | '\'') => (written.get(1..)?.strip_suffix(quote)?, 1),
        // A block scalar.
        '|' | '>' => return None,
        _ => (written, 0),
    };
    if inner.contains('\n') || start == 1 && inner.contains(['\\', '\'']) {
        return None;
    }
    inner.get(part.clone())?;
    Some(part.start + start..part.end + start)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_part_is_found_where_the_text_equals_the_value() {
        assert_eq!(within("a == b", &(2..4)), Some(2..4));
        assert_eq!(within("\"a == b\"", &(2..4)), Some(3..5));
        assert_eq!(within("'a == b'", &(0..1)), Some(1..2));
        for written in ["\"a\\n b\"", "'a ''b'''", "a\n  b", "|\n  a b", "ab"] {
            assert_eq!(within(written, &(1..3)), None, "{written}");
        }
    }
}
