//! Values as short text for messages: one line, and safe to print in a terminal.

pub use counterproof_artifact::one_line;
use serde_json::Value;

const SHORT: usize = 60;

/// Characters kept before the first difference of two long values.
const CONTEXT: usize = 20;

/// Formats a value as short JSON.
pub fn short_value(value: &Value) -> String {
    one_line(&value.to_string(), SHORT)
}

/// Formats two different values as short JSON. Long values start shortly before their first difference.
pub fn differing_values(old: &Value, new: &Value) -> (String, String) {
    differing_texts(&old.to_string(), &new.to_string(), SHORT)
}

/// Shortens two different texts to `longest` characters each. Long texts start shortly before their first difference.
pub fn differing_texts(old: &str, new: &str, longest: usize) -> (String, String) {
    // By characters, because a cut within a character would not be valid text.
    let common = old.chars().zip(new.chars()).take_while(|(old, new)| old == new).count();
    let fits = |side: &str| side.chars().nth(longest).is_none();
    // Both sides skip the same prefix, so that the shown parts stay comparable.
    let skipped = if fits(old) && fits(new) { 0 } else { common.saturating_sub(CONTEXT) };
    let shown = |side: &str| {
        let rest: String = side.chars().skip(skipped).collect();
        format!("{}{}", if skipped > 0 { "…" } else { "" }, one_line(&rest, longest))
    };
    (shown(old), shown(new))
}

/// The words with a digit, such as ids and numbers, without the punctuation around them.
pub(crate) fn words_with_digits(text: &str) -> impl Iterator<Item = &str> {
    let words = text.split_whitespace().map(|word| word.trim_matches(|c: char| !c.is_alphanumeric()));
    words.filter(|word| word.bytes().any(|byte| byte.is_ascii_digit()))
}

/// Joins names: `a, b and c`.
pub fn list<S: AsRef<str>>(names: &[S]) -> String {
    match names {
        [] => "nothing".to_owned(),
        [one] => one.as_ref().to_owned(),
        [first @ .., last] => {
            let first: Vec<_> = first.iter().map(AsRef::as_ref).collect();
            format!("{} and {}", first.join(", "), last.as_ref())
        }
    }
}

/// Starts a sentence with a capital letter.
pub fn first_upper(sentence: &str) -> String {
    let mut characters = sentence.chars();
    characters.next().map(|first| first.to_uppercase().chain(characters).collect()).unwrap_or_default()
}

/// Formats a count with its noun: `1 case`, `2 cases`.
pub fn count(count: usize, one: &str, many: &str) -> String {
    format!("{count} {}", if count == 1 { one } else { many })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn two_long_texts_start_shortly_before_their_first_difference() {
        let (old, new) = ("a".repeat(100) + "old", "a".repeat(100) + "new");
        let before = "a".repeat(20);
        assert_eq!(differing_texts(&old, &new, 60), (format!("…{before}old"), format!("…{before}new")));
        assert_eq!(differing_texts("short", "other", 60), ("short".to_owned(), "other".to_owned()));
    }

    #[test]
    fn control_characters_cannot_reach_a_terminal() {
        assert_eq!(one_line("a\u{1b}[31m\u{202e}b\nc", 60), "a\\u{1b}[31m\\u{202e}b c");
        assert_eq!(one_line("abcdef", 3), "abc…");
    }
}
