//! Values as they are said in a sentence: short, on one line, and harmless in a terminal.

use counterproof_artifact::check::is_invisible;
use serde_json::Value;

/// Longest value within a sentence, in characters.
const SHORT: usize = 60;

/// A value in a sentence.
pub fn value(value: &Value) -> String {
    text(&value.to_string(), SHORT)
}

/// A text on one line, cut to a number of characters; what a reader would not see is spelled out.
pub fn text(text: &str, longest: usize) -> String {
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
    fn a_text_in_a_sentence_cannot_steer_a_terminal() {
        assert_eq!(text("a\u{1b}[31m\u{202e}b\nc", 60), "a\\u{1b}[31m\\u{202e}b c");
        assert_eq!(text("abcdef", 3), "abc…");
    }
}
