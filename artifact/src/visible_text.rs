//! Characters that are invisible or that change how their neighbours are displayed, and how to escape them.

/// True for control characters, bidirectional controls, line and paragraph separators, and characters without width.
///
/// They can steer a terminal, reorder text, or make two different texts look the same.
pub fn is_invisible(c: char) -> bool {
    c.is_control()
        || matches!(c, '\u{ad}' | '\u{61c}' | '\u{180e}' | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}'
            | '\u{2060}'..='\u{206f}' | '\u{feff}' | '\u{fff9}'..='\u{fffb}' | '\u{e0000}'..='\u{e007f}')
}

/// Escapes every invisible character, so that untrusted text cannot steer a terminal.
///
/// ```
/// assert_eq!(counterproof_artifact::escape_invisible("a\u{1b}[2J"), "a\\u{1b}[2J");
/// ```
pub fn escape_invisible(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for c in text.chars() {
        if is_invisible(c) {
            escaped.extend(c.escape_unicode());
        } else {
            escaped.push(c);
        }
    }
    escaped
}

/// Puts a text on one line and shortens it to `longest` characters. Invisible characters are escaped.
pub fn one_line(text: &str, longest: usize) -> String {
    // Most names and values are short and printable.
    if text.len() <= longest && text.bytes().all(|byte| matches!(byte, b' '..=b'~')) {
        return text.to_owned();
    }
    let mut short = String::new();
    let mut characters = text.chars();
    for c in characters.by_ref().take(longest) {
        match c {
            '\n' | '\r' | '\t' => short.push(' '),
            // Control and bidirectional characters from an agent could rewrite the line in a terminal.
            c if is_invisible(c) => short.extend(c.escape_unicode()),
            c => short.push(c),
        }
    }
    if characters.next().is_some() {
        short.push('…');
    }
    short
}

/// Makes a message harmless, with any names and texts of others in it: escapes the invisible characters except line breaks and
/// tabs, and the start of a workflow command, which GitHub Actions would execute.
///
/// ```
/// assert_eq!(counterproof_artifact::harmless("one\n::error::two"), "one\n\\u{3a}:error::two");
/// ```
pub fn harmless(message: &str) -> String {
    let lines: Vec<String> = message.split('\n').map(harmless_line).collect();
    lines.join("\n")
}

fn harmless_line(line: &str) -> String {
    let parts: Vec<String> = line.split('\t').map(escape_invisible).collect();
    let line = without_inline_commands(&parts.join("\t"));
    match line.trim_start().strip_prefix("::") {
        Some(rest) => format!("{}\\u{{3a}}:{rest}", &line[..line.len() - rest.len() - 2]),
        None => line,
    }
}

/// Escapes the older syntax of workflow commands, which works anywhere in a line.
pub fn without_inline_commands(text: &str) -> String {
    text.replace("##[", "#\\u{23}[")
}

/// Escapes the invisible characters of a text for a page. Line breaks and tabs stay. So do the zero-width joiners: scripts and
/// emoji need them, and they do not affect other text.
///
/// ```
/// assert_eq!(counterproof_artifact::visible("a\u{202e}b\n"), "a\\u{202e}b\n");
/// ```
pub fn visible(text: &str) -> String {
    let is_harmless = |c: char| matches!(c, '\u{200c}' | '\u{200d}');
    let mut visible = String::with_capacity(text.len());
    let mut rest = text;
    loop {
        // Most texts are printable ASCII, which is copied in one piece.
        let (printable, after) = rest.split_at(printable_prefix(rest));
        visible.push_str(printable);
        let Some(c) = after.chars().next() else { return visible };
        rest = &after[c.len_utf8()..];
        // A line break of Windows stays one. A lone carriage return is escaped: it can hide what is before it.
        if c == '\r' && rest.starts_with('\n') {
            continue;
        }
        if is_invisible(c) && !is_harmless(c) {
            visible.extend(c.escape_unicode());
        } else {
            visible.push(c);
        }
    }
}

/// Like [`visible`], without a copy of a text that needs no change.
pub fn into_visible(text: String) -> String {
    if printable_prefix(&text) == text.len() { text } else { visible(&text) }
}

/// The number of bytes before the first character that is not printable ASCII, a line break or a tab.
fn printable_prefix(text: &str) -> usize {
    const BLOCK: usize = 32;
    let is_printable = |byte: &u8| matches!(byte, b' '..=b'~' | b'\n' | b'\t');
    let bytes = text.as_bytes();
    // Without an early exit within a block, the compiler checks several bytes at once.
    let is_printable_block = |block: &&[u8]| block.iter().fold(true, |all, byte| all & is_printable(byte));
    let blocks = bytes.chunks_exact(BLOCK).take_while(is_printable_block).count() * BLOCK;
    let rest = &bytes[blocks..];
    blocks + rest.iter().position(|byte| !is_printable(byte)).unwrap_or(rest.len())
}

/// Returns an error with all its causes in one line.
pub fn with_causes(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        text = format!("{text}: {error}");
        cause = error.source();
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_are_harmless() {
        for (message, expected) in [
            ("case \u{1b}[2J\u{9b}2J\u{202e}", "case \\u{1b}[2J\\u{9b}2J\\u{202e}"),
            ("one\n\ttwo ::three", "one\n\ttwo ::three"),
            ("one\n::error::two", "one\n\\u{3a}:error::two"),
            ("one\n \t::error::two", "one\n \t\\u{3a}:error::two"),
            ("one ##[error]two", "one #\\u{23}[error]two"),
            ("one\rtwo", "one\\u{d}two"),
        ] {
            assert_eq!(harmless(message), expected);
        }
    }

    #[test]
    fn invisible_characters_are_escaped() {
        assert_eq!(visible("a\r\nb\t\u{202e}c\u{1b}[31m\u{0}"), "a\nb\t\\u{202e}c\\u{1b}[31m\\u{0}");
        assert_eq!(visible("👨\u{200d}👩 مرحبا"), "👨\u{200d}👩 مرحبا");
    }

    #[test]
    fn invisible_characters_are_escaped_at_every_position_of_a_long_text() {
        for length in [1, 31, 32, 33, 64, 100] {
            for position in 0..length {
                let mut text = vec!["x"; length];
                for (character, escaped) in [
                    ("\u{7}", "\\u{7}"),
                    ("\u{7f}", "\\u{7f}"),
                    ("\r", "\\u{d}"),
                    ("é", "é"),
                    ("\u{202e}", "\\u{202e}"),
                ] {
                    text[position] = character;
                    let expected = text.concat().replace(character, escaped);
                    assert_eq!(visible(&text.concat()), expected);
                    assert_eq!(into_visible(text.concat()), expected);
                }
            }
        }
    }
}
