//! Values as they are said in a sentence: short, on one line, and harmless in a terminal.

use counterproof_artifact::is_invisible;
use serde_json::Value;

/// Longest value within a sentence, in characters.
const SHORT: usize = 60;

/// Characters shown before the place where two long values part.
const CONTEXT: usize = 20;

/// A value in a sentence.
pub fn short_value(value: &Value) -> String {
    one_line(&value.to_string(), SHORT)
}

/// Two values that differ, each short: where they are long, from shortly before the place where they part.
pub fn differing_values(old: &Value, new: &Value) -> (String, String) {
    differing_texts(&old.to_string(), &new.to_string(), SHORT)
}

/// Two texts that differ, each cut to a number of characters around the place where they part.
pub fn differing_texts(old: &str, new: &str, longest: usize) -> (String, String) {
    let common = old.chars().zip(new.chars()).take_while(|(old, new)| old == new).count();
    let fits = |side: &str| side.chars().nth(longest).is_none();
    let skipped = if fits(old) && fits(new) { 0 } else { common.saturating_sub(CONTEXT) };
    let shown = |side: &str| {
        let rest: String = side.chars().skip(skipped).collect();
        format!("{}{}", if skipped > 0 { "…" } else { "" }, one_line(&rest, longest))
    };
    (shown(old), shown(new))
}

/// A text on one line, cut to a number of characters; what a reader would not see is spelled out.
pub fn one_line(text: &str, longest: usize) -> String {
    let mut short = String::new();
    let mut characters = text.chars();
    for c in characters.by_ref().take(longest) {
        match c {
            '\n' | '\r' | '\t' => short.push(' '),
            c if is_invisible(c) => short.extend(c.escape_unicode()),
            c => short.push(c),
        }
    }
    if characters.next().is_some() {
        short.push('…');
    }
    short
}

/// Names in a row: `a, b and c`.
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

/// A count with its noun.
pub fn count(count: usize, one: &str, many: &str) -> String {
    format!("{count} {}", if count == 1 { one } else { many })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn two_long_texts_are_shown_where_they_part() {
        let (old, new) = ("a".repeat(100) + "old", "a".repeat(100) + "new");
        let before = "a".repeat(20);
        assert_eq!(differing_texts(&old, &new, 60), (format!("…{before}old"), format!("…{before}new")));
        assert_eq!(differing_texts("short", "other", 60), ("short".to_owned(), "other".to_owned()));
    }

    #[test]
    fn a_text_in_a_sentence_cannot_steer_a_terminal() {
        assert_eq!(one_line("a\u{1b}[31m\u{202e}b\nc", 60), "a\\u{1b}[31m\\u{202e}b c");
        assert_eq!(one_line("abcdef", 3), "abc…");
    }
}
