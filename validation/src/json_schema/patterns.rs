//! Estimates of the work of regular expressions.

use serde_json::{Map, Value};

use super::counted::for_each_schema;

/// Extra steps of a pattern that backtracks. With [`BACKTRACK_LIMIT`], a step then is at most some microseconds.
const BACKTRACKING_STEPS: u64 = 64;

/// Maximum number of backtracking steps for one match. A match that needs more is undecided.
pub(super) const BACKTRACK_LIMIT: usize = 10_000;

/// Maximum bytes of all compiled patterns of a schema.
const MAX_COMPILED_BYTES: usize = 64 << 20;

/// Limits of the compiled size of one pattern, in bytes.
const COMPILED_BYTES: (usize, usize) = (64 << 10, 10 << 20);

/// Maximum compiled bytes of one pattern if a schema has only this one.
pub(super) const MAX_PATTERN_BYTES: usize = COMPILED_BYTES.1;

/// Returns the maximum compiled size of each pattern of a schema, in bytes.
pub(super) fn size_limit(schema: &Value) -> usize {
    let mut patterns = 0;
    for_each_schema(schema, &mut |part| {
        patterns += usize::from(part.get("pattern").is_some());
        patterns += part.get("patternProperties").and_then(Value::as_object).map_or(0, Map::len);
    });
    (MAX_COMPILED_BYTES / patterns.max(1)).clamp(COMPILED_BYTES.0, COMPILED_BYTES.1)
}

/// Returns the steps that a match against 64 bytes of text can take.
pub(super) fn steps(pattern: &str) -> u64 {
    if may_have_comments(pattern) {
        // A comment can hide the parenthesis or bracket that gives a repetition its meaning.
        return u64::MAX;
    }
    let backtracks =
        ["(?=", "(?!", "(?<=", "(?<!"].iter().any(|around| pattern.contains(around)) || refers_back(pattern);
    let extra = if backtracks { BACKTRACKING_STEPS } else { 0 };
    // Without its cache, the engine follows each character of the pattern for each byte.
    (1 + expanded_chars(pattern) / 4).saturating_add(extra)
}

/// Whether a pattern has the flag `x` or a group that is a comment. JSON Schema has neither, but the engine accepts both, and
/// some drafts do not check patterns.
fn may_have_comments(pattern: &str) -> bool {
    pattern.split("(?").skip(1).any(|group| {
        let mut flags = group.chars().take_while(|char| char.is_ascii_alphabetic() || *char == '-');
        group.starts_with('#') || flags.any(|flag| flag == 'x')
    })
}

fn refers_back(pattern: &str) -> bool {
    pattern.as_bytes().windows(2).any(|pair| pair[0] == b'\\' && matches!(pair[1], b'1'..=b'9' | b'k'))
}

/// Returns the length of a pattern with its counted repetitions written out. The work of a match is at most this for each
/// character of the text.
fn expanded_chars(pattern: &str) -> u64 {
    /// The length of a group so far, and of its last atom, which a repetition multiplies.
    #[derive(Default)]
    struct Group {
        length: u64,
        atom: u64,
    }
    let (mut group, mut outer) = (Group::default(), Vec::new());
    let mut chars = pattern.char_indices();
    while let Some((at, char)) = chars.next() {
        let atom = match char {
            '(' => {
                outer.push(std::mem::take(&mut group));
                continue;
            }
            ')' => {
                let closed = std::mem::replace(&mut group, outer.pop().unwrap_or_default());
                closed.length.max(1)
            }
            '{' => group.atom.saturating_mul(repetitions(&pattern[at..])),
            // Braces and parentheses have no meaning in a class.
            '[' => {
                while let Some((_, inner)) = chars.next() {
                    match inner {
                        ']' => break,
                        '\\' => _ = chars.next(),
                        _ => {}
                    }
                }
                1
            }
            '\\' => {
                chars.next();
                1
            }
            _ => 1,
        };
        group.length = group.length.saturating_add(atom);
        group.atom = atom;
    }
    outer.into_iter().fold(group.length, |sum, group| sum.saturating_add(group.length))
}

/// Returns the larger number of `{n}`, `{n,}` or `{n,m}`, or 1 for other text.
fn repetitions(text: &str) -> u64 {
    let inner = text.strip_prefix('{').and_then(|text| text.split_once('}')).map_or("", |(inner, _)| inner);
    inner.split(',').filter_map(|number| number.trim().parse().ok()).max().unwrap_or(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn repetitions_multiply_the_groups_that_they_repeat() {
        assert_eq!(expanded_chars("abc"), 3);
        assert!((100..110).contains(&expanded_chars("a{100}")));
        assert!(expanded_chars("(a{100}b){100}") > 10_000);
        assert!(expanded_chars("((a{1000}){1000}){1000}") > 1_000_000_000);
        assert!(expanded_chars("^[0-9]{4}-[0-9]{2}-[0-9]{2}$") < 64);
        assert_eq!(expanded_chars(r"[(a{1000})\]{9}]b[[{5}]c"), 4, "classes");
        assert!(expanded_chars("[ab]{1000}") >= 1000);
        assert!(expanded_chars(r")(}{\") < 8, "invalid patterns do not matter, but must not panic");
    }

    #[test]
    fn patterns_with_comments_cost_more_than_any_budget() {
        for pattern in ["(?x)a", "(?i-x)a", "(?sx:a)", "(?#b)a"] {
            assert_eq!(steps(pattern), u64::MAX, "{pattern}");
        }
        for pattern in ["(?<x>a)", "(?:x)", "(?=x)", "(?P<x>a)", "(?i)x"] {
            assert!(steps(pattern) < 100, "{pattern}");
        }
    }

    #[test]
    fn patterns_that_backtrack_cost_more() {
        assert!(steps("^(?!x)a") > BACKTRACKING_STEPS);
        assert!(steps(r"^(a)\1$") > BACKTRACKING_STEPS);
        assert!(steps("^[a-z]+$") < 8);
    }
}
