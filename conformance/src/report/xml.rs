//! Text within XML 1.0, for the test results that build servers read: what may not stand in a document is spelled out, what would
//! end its place is escaped.

use counterproof_artifact::is_invisible;

/// A text within quotes.
pub(super) fn attribute(text: &str) -> String {
    // A reader would make spaces of them.
    content(text).replace('\n', "&#10;").replace('\t', "&#9;")
}

/// A text within an element.
pub(super) fn content(text: &str) -> String {
    let mut safe = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => safe.push_str("&amp;"),
            '<' => safe.push_str("&lt;"),
            '>' => safe.push_str("&gt;"),
            '"' => safe.push_str("&quot;"),
            '\'' => safe.push_str("&apos;"),
            '\n' | '\t' => safe.push(c),
            c if is_invisible(c) || !is_legal(c) => safe.extend(c.escape_unicode()),
            c => safe.push(c),
        }
    }
    safe
}

/// The characters that a document may hold (XML 1.0, production 2); surrogates are no `char`.
const fn is_legal(c: char) -> bool {
    matches!(c, '\t' | '\n' | '\r' | '\u{20}'..='\u{d7ff}' | '\u{e000}'..='\u{fffd}' | '\u{10000}'..)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_text_ends_its_place_and_none_is_illegal() {
        let said = "<a b=\"c\" d='e'>]]>&\r\n\t\u{0}\u{1b}[31m\u{202e}\u{fffe}\u{e4}";
        let shown =
            "&lt;a b=&quot;c&quot; d=&apos;e&apos;&gt;]]&gt;&amp;\\u{d}\n\t\\u{0}\\u{1b}[31m\\u{202e}\\u{fffe}\u{e4}";
        assert_eq!(content(said), shown);
        assert_eq!(attribute(said), shown.replace('\n', "&#10;").replace('\t', "&#9;"));
    }
}
