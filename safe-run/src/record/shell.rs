//! A command as one line that `sh` reads back to the same arguments.
//!
//! Line breaks, other control characters and bytes that are not UTF-8 cannot stand in such a line. A command with any of them
//! is written `eval "$(printf '…')"`, which POSIX shells without `$'…'` read too.

use std::ffi::OsString;
use std::fmt::Write as _;

/// Words that the shell takes for its own where a command's name stands.
const RESERVED: [&str; 16] = [
    "case", "do", "done", "elif", "else", "esac", "fi", "for", "function", "if", "in", "select", "then", "time",
    "until", "while",
];

/// The whole command.
pub(crate) fn quote(command: &[OsString]) -> String {
    quote_bytes(command.iter().map(|word| word.as_encoded_bytes()))
}

/// The whole command of the bytes of its words.
pub(crate) fn quote_bytes<'a>(words: impl Iterator<Item = &'a [u8]>) -> String {
    let words = words.enumerate().map(|(place, word)| quote_word(word, place == 0));
    let line = words.collect::<Vec<_>>().join(&b' ');
    match String::from_utf8(line) {
        Ok(line) if !line.chars().any(char::is_control) => line,
        Ok(line) => evaluated(line.as_bytes()),
        Err(error) => evaluated(error.as_bytes()),
    }
}

fn quote_word(word: &[u8], is_name: bool) -> Vec<u8> {
    let is_plain = |byte: &u8| byte.is_ascii_alphanumeric() || b"_-./=@%+:,".contains(byte);
    let means_more = is_name && (word.contains(&b'=') || RESERVED.iter().any(|reserved| reserved.as_bytes() == word));
    if !word.is_empty() && word.iter().all(is_plain) && !means_more {
        return word.to_vec();
    }
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

/// A line with anything in it, as one that has no control characters.
fn evaluated(line: &[u8]) -> String {
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

    fn quoted(words: &[&str]) -> String {
        quote(&words.iter().map(OsString::from).collect::<Vec<_>>())
    }

    #[test]
    fn plain_words_stay_as_they_are_and_others_are_quoted() {
        assert_eq!(quoted(&["echo", "hello"]), "echo hello");
        assert_eq!(quoted(&["echo", "hello world", ""]), "echo 'hello world' ''");
        assert_eq!(quoted(&["echo", "it's", "ä"]), r"echo 'it'\''s' 'ä'");
        assert_eq!(quoted(&["A=b", "A=b"]), "'A=b' A=b");
        assert_eq!(quoted(&["if"]), "'if'");
        assert_eq!(quoted(&["sh", "-c", "a\nb"]), r#"eval "$(printf 'sh -c \047a\nb\047')""#);
    }

    #[cfg(unix)]
    #[test]
    fn the_shell_reads_back_the_same_words() {
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
