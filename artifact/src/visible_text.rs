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
