//! Escaping of text for Markdown: any text stays plain text, on its line or in its table cell.
//!
//! Two parsers must not find markup in it: the Markdown parser, and the code host, which searches the rendered page for names
//! after `@`, numbers after `#`, `!` and `&`, words between colons, and addresses. Characters that are special in Markdown become
//! character references. A zero-width space breaks what the code host would recognize.

use std::fmt::Write as _;

use counterproof_evaluator::text;

/// A zero-width space. It breaks what a code host would recognize as a name or an address.
const BREAK: &str = "&#8203;";

/// A text of at most `longest` characters for a sentence or a table cell. The caller must not put it at the start of a line.
pub(crate) fn text(text: &str, longest: usize) -> String {
    let short = text::one_line(text, longest);
    let mut safe = String::with_capacity(short.len() + short.len() / 4);
    let characters: Vec<char> = short.chars().collect();
    for (index, c) in characters.iter().copied().enumerate() {
        let before = &characters[..index];
        let next = characters.get(index + 1).copied();
        let is_followed = next.is_some_and(|next| !next.is_whitespace());
        match c {
            '&' | '@' | '#' | '!' | '$' | '~' | '^' if is_followed => {
                refer(&mut safe, c);
                safe.push_str(BREAK);
            }
            // An underscore within a word is not emphasis. Leaving it keeps tool names readable.
            '_' if before.last().is_some_and(|c| c.is_alphanumeric()) && next.is_some_and(char::is_alphanumeric) => {
                safe.push(c);
            }
            '@' | '<' | '>' | '|' | '\\' | '`' | '*' | '[' | ']' | '{' | '}' | '_' => refer(&mut safe, c),
            ':' | '%' if is_followed => {
                safe.push(c);
                safe.push_str(BREAK);
            }
            '.' if ends_with(before, "www") => {
                refer(&mut safe, c);
                safe.push_str(BREAK);
            }
            '-' if ends_with(before, "gh") => {
                safe.push(c);
                safe.push_str(BREAK);
            }
            c => safe.push(c),
        }
    }
    safe
}

/// An id as code. Ids contain neither backticks nor pipes.
pub(crate) fn code(id: &str) -> String {
    format!("`{id}`")
}

/// A link with an id as code.
pub(crate) fn link(id: &str, target: &str) -> String {
    format!("[{}]({target})", code(id))
}

fn refer(safe: &mut String, c: char) {
    let _ = write!(safe, "&#{};", u32::from(c));
}

fn ends_with(before: &[char], word: &str) -> bool {
    let start = before.len().checked_sub(word.len());
    start.is_some_and(|start| before[start..].iter().map(char::to_ascii_lowercase).eq(word.chars()))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// The text that a reader of the page sees.
    fn read(markdown: &str) -> String {
        let mut seen = String::new();
        let mut rest = markdown;
        while let Some(start) = rest.find("&#") {
            seen.push_str(&rest[..start]);
            let end = start + rest[start..].find(';').unwrap();
            let c = char::from_u32(rest[start + 2..end].parse().unwrap()).unwrap();
            if c != '\u{200b}' {
                seen.push(c);
            }
            rest = &rest[end + 1..];
        }
        seen + rest
    }

    #[test]
    fn plain_sentences_stay_readable() {
        for plain in
            ["cancel_order: risk low → high without evidence", "output: “50 EUR” → “500 EUR”; 1 line gone", "a - b"]
        {
            assert_eq!(text(plain, 200), plain);
        }
    }

    #[test]
    fn patterns_that_a_code_host_recognizes_are_broken() {
        for (input, safe) in [
            ("@octocat", "&#64;&#8203;octocat"),
            ("o/r#12", "o/r&#35;&#8203;12"),
            ("https://x.y/z", "https:&#8203;//x.y/z"),
            ("WWW.x.y", "WWW&#46;&#8203;x.y"),
            (":tada:", ":&#8203;tada:"),
            ("GH-7", "GH-&#8203;7"),
            ("![a](b)", "&#33;&#8203;&#91;a&#93;(b)"),
            ("<img src=x>", "&#60;img src=x&#62;"),
            ("Stop! ~ a", "Stop! ~ a"),
            ("~~a~~", "&#126;&#8203;&#126;&#8203;a&#126;&#8203;~"),
            ("__init__", "&#95;&#95;init&#95;&#95;"),
            ("a|b\n|c`d`", "a&#124;b &#124;c&#96;d&#96;"),
            ("\u{202e}a", "&#92;u&#123;202e&#125;a"),
        ] {
            assert_eq!(text(input, 200), safe);
        }
    }

    proptest! {
        #[test]
        fn any_text_is_one_cell_with_the_same_text(input in any::<String>(), longest in 0_usize..200) {
            let safe = text(&input, longest);
            prop_assert!(!safe.contains(['\n', '\r', '|', '`', '<', '>', '\\', '*', '[', ']', '@']), "{safe}");
            prop_assert_eq!(read(&safe), text::one_line(&input, longest));
        }

        #[test]
        fn all_markdown_characters_are_plain_text(input in "[-!\"#$%&'()*+,./:;<=>?@\\[\\]^_`{|}~a1 \n\\\\]{0,60}") {
            let safe = text(&input, 200);
            prop_assert!(!safe.contains(['\n', '|', '`', '<', '>', '\\', '*', '[', ']', '@', '{', '}']), "{safe}");
            prop_assert_eq!(read(&safe), text::one_line(&input, 200));
        }
    }
}
