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
}
