//! Quotes a command as one line that `sh` splits into the same arguments.
//!
//! The line contains no line breaks, no other control characters, and only UTF-8. A command with other bytes is written as
//! `eval "$(printf '…')"`, which also works in POSIX shells without `$'…'`.
//!
//! This module does not use the `shell_words` crate, for three reasons. Conformance vectors pin which words are quoted. Reading a
//! record back compares its arguments with its quoted command, so other quoting would reject existing records. And
//! `shell_words` takes neither control characters out of the line nor bytes that are not UTF-8.

use std::ffi::OsString;
use std::fmt::Write as _;

/// Words with a special meaning in the position of the command name.
const RESERVED: [&str; 16] = [
    "case", "do", "done", "elif", "else", "esac", "fi", "for", "function", "if", "in", "select", "then", "time",
    "until", "while",
];

pub(crate) fn quote(command: &[OsString]) -> String {
    quote_bytes(command.iter().map(|word| word.as_encoded_bytes()))
}

/// Quotes a command that is given as the bytes of its words.
pub(crate) fn quote_bytes<'a>(words: impl Iterator<Item = &'a [u8]>) -> String {
    let words = words.enumerate().map(|(index, word)| if index == 0 { quote_name(word) } else { quote_word(word) });
    let line = words.collect::<Vec<_>>().join(&b' ');
    match String::from_utf8(line) {
        Ok(line) if !line.chars().any(char::is_control) => line,
        Ok(line) => eval_of_printf(line.as_bytes()),
        Err(error) => eval_of_printf(error.as_bytes()),
    }
}

/// Quotes the command name, in whose position `A=b` would be an assignment and `if` a keyword.
fn quote_name(word: &[u8]) -> Vec<u8> {
    let is_special = word.contains(&b'=') || RESERVED.iter().any(|reserved| reserved.as_bytes() == word);
    if is_special { quoted(word) } else { quote_word(word) }
}

fn quote_word(word: &[u8]) -> Vec<u8> {
    let is_safe = |byte: &u8| byte.is_ascii_alphanumeric() || b"_-./=@%+:,".contains(byte);
    if !word.is_empty() && word.iter().all(is_safe) { word.to_vec() } else { quoted(word) }
}

fn quoted(word: &[u8]) -> Vec<u8> {
    let mut quoted = vec![b'\''];
    for byte in word {
        match byte {
            b'\'' => quoted.extend(br"'\''"),
            _ => quoted.push(*byte),
        }
    }
    quoted.push(b'\'');
    quoted
}

/// Encodes a line of any bytes as a `printf` call without control characters.
fn eval_of_printf(line: &[u8]) -> String {
    let mut text = String::from("eval \"$(printf '");
    for byte in line {
        match byte {
            b'\n' => text.push_str("\\n"),
            b'\t' => text.push_str("\\t"),
            b'%' => text.push_str("%%"),
            b'\\' => text.push_str("\\\\"),
            b' '..=b'~' if *byte != b'\'' => text.push(char::from(*byte)),
            _ => drop(write!(text, "\\{byte:03o}")),
        }
    }
    text.push_str("')\"");
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn quote_all(words: &[&str]) -> String {
        quote(&words.iter().map(OsString::from).collect::<Vec<_>>())
    }

    #[test]
    fn only_words_with_special_characters_are_quoted() {
        assert_eq!(quote_all(&["echo", "hello"]), "echo hello");
        assert_eq!(quote_all(&["echo", "hello world", ""]), "echo 'hello world' ''");
        assert_eq!(quote_all(&["echo", "it's", "ä"]), r"echo 'it'\''s' 'ä'");
        assert_eq!(quote_all(&["A=b", "A=b"]), "'A=b' A=b");
        assert_eq!(quote_all(&["if"]), "'if'");
        assert_eq!(quote_all(&["sh", "-c", "a\nb"]), r#"eval "$(printf 'sh -c \047a\nb\047')""#);
    }

    #[cfg(unix)]
    #[test]
    fn the_shell_splits_the_line_into_the_same_words() {
        use std::os::unix::ffi::OsStringExt as _;
        use std::process::Command;

        let words: [&[u8]; 12] = [
            b"a\nb\n\n",
            b"\t",
            b"'",
            b"\\",
            b"%s\\n",
            b"$HOME `id` \"x\"",
            b"",
            b"!",
            b"~",
            b"*",
            b"\xff\xfe\x01",
            b"-n",
        ];
        let mut command = vec![OsString::from("printf"), OsString::from("<%s>")];
        command.extend(words.iter().map(|word| OsString::from_vec(word.to_vec())));
        let line = quote(&command);
        assert!(!line.contains('\n'), "{line}");
        let expected: Vec<u8> = words.iter().flat_map(|word| [b"<", *word, b">"].concat()).collect();
        let output = Command::new("sh").arg("-c").arg(&line).output().unwrap();
        assert_eq!(output.stdout, expected, "{line}");
        let output = Command::new("sh").arg("-c").arg(quote(&command[..4])).output().unwrap();
        assert_eq!(output.stdout, b"<a\nb\n\n><\t>");
    }
}
