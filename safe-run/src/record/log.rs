//! Writes the log of a record: one section per stream and the ledger, or the merged output, with the command quoted for a shell.
//! The conformance contract M0-v0.1.0 defines the format.

use std::ffi::OsString;
use std::fmt::Write as _;
use std::io::{self, Write};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

use super::Record;
use super::command_record::{Event, EventKind};
use crate::capture::{Line, Stream};

/// Marks a ledger text that is base64 because its bytes are not UTF-8. Text that begins with this prefix itself is also
/// written in base64, so that a reader can decode every text without ambiguity.
pub(crate) const BASE64_PREFIX: &str = "base64:";

/// The marker before the ledger. It includes the newline of the line above, because the text counts as a marker only at the
/// start of a line.
pub(crate) const LEDGER_BEGIN: &[u8] = b"\n--- BEGIN EVENTS ---\n";

pub(crate) const LEDGER_END: &[u8] = b"--- END EVENTS ---\n";

pub(crate) const fn section_header(stream: Stream) -> &'static [u8] {
    match stream {
        Stream::Stdout => b"=== STDOUT ===\n",
        Stream::Stderr => b"=== STDERR ===\n",
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum LogView {
    /// One section per stream, then the ledger of events.
    #[default]
    Ledger,
    /// The bytes of both streams in the order of the reads.
    Merged,
}

impl Record {
    pub fn write_log(&self, view: LogView, out: &mut impl Write) -> io::Result<()> {
        match view {
            LogView::Ledger => self.write_ledger(out),
            LogView::Merged => self.write_merged(out),
        }
    }

    fn write_ledger(&self, out: &mut impl Write) -> io::Result<()> {
        self.write_section(Stream::Stdout, out)?;
        self.write_section(Stream::Stderr, out)?;
        // The section before the marker ends with its own newline.
        out.write_all(&LEDGER_BEGIN[1..])?;
        let mut prefix = Vec::new();
        self.for_each_event(|event| self.write_event(&event, &mut prefix, out))?;
        out.write_all(LEDGER_END)
    }

    fn write_section(&self, stream: Stream, out: &mut impl Write) -> io::Result<()> {
        out.write_all(section_header(stream))?;
        let bytes = self.capture.bytes(stream);
        bytes.copy(0, bytes.len(), out)?;
        let mut last = *b"\n";
        if !bytes.is_empty() {
            bytes.read_at(bytes.len() - 1, &mut last)?;
        }
        out.write_all(if last == *b"\n" { b"\n" } else { b"\n\n" })
    }

    fn write_event(&self, event: &Event<'_>, prefix: &mut Vec<u8>, out: &mut impl Write) -> io::Result<()> {
        // One buffer for all events, and one write before each line: a large log spends most of its time here.
        prefix.clear();
        prefix.extend_from_slice(b"[SEQ=");
        write_number(event.seq, prefix);
        match &event.kind {
            EventKind::Line(stream, line) => {
                prefix.extend_from_slice(match stream {
                    Stream::Stdout => b"][STDOUT] ",
                    Stream::Stderr => b"][STDERR] ",
                });
                out.write_all(prefix)?;
                write_text(line, out)?;
            }
            meta => {
                out.write_all(prefix)?;
                write!(out, "][META] {}", self.meta(meta))?;
            }
        }
        out.write_all(b"\n")
    }

    pub(crate) fn meta(&self, kind: &EventKind<'_>) -> String {
        match kind {
            EventKind::Started => format!("safe-run start: cmd=\"{}\"", self.command_line()),
            EventKind::Incomplete(error) => format!("safe-run incomplete: {error}"),
            EventKind::Exited(code) => format!("safe-run exit: code={code}"),
            EventKind::Line(..) => String::new(),
        }
    }

    fn write_merged(&self, out: &mut impl Write) -> io::Result<()> {
        let mut done = [0; 2];
        for chunk in self.capture.chunks() {
            let chunk = chunk?;
            let from = &mut done[chunk.stream as usize];
            self.capture.bytes(chunk.stream).copy(*from, *from + chunk.length, out)?;
            *from += chunk.length;
        }
        Ok(())
    }
}

/// Appends a number in decimal. Faster than `write!`, which would show in the time of a large log.
fn write_number(mut number: u64, out: &mut Vec<u8>) {
    let from = out.len();
    loop {
        let [digit, ..] = (number % 10).to_le_bytes();
        out.push(b'0' + digit);
        number /= 10;
        if number == 0 {
            break;
        }
    }
    out[from..].reverse();
}

fn write_text(line: &Line<'_>, out: &mut impl Write) -> io::Result<()> {
    if line.is_utf8()? && !line.starts_with(BASE64_PREFIX.as_bytes())? {
        return line.write_to(out);
    }
    out.write_all(BASE64_PREFIX.as_bytes())?;
    line.write_base64(out)
}

/// Returns a line as the ledger has it: the text, or [`BASE64_PREFIX`] and the bytes in base64.
pub(crate) fn ledger_text(line: &[u8]) -> String {
    match str::from_utf8(line) {
        Ok(text) if !text.starts_with(BASE64_PREFIX) => text.to_owned(),
        _ => format!("{BASE64_PREFIX}{}", STANDARD.encode(line)),
    }
}

/// Words with a special meaning in the position of the command name.
const RESERVED: [&str; 16] = [
    "case", "do", "done", "elif", "else", "esac", "fi", "for", "function", "if", "in", "select", "then", "time",
    "until", "while",
];

pub(crate) fn quote(command: &[OsString]) -> String {
    quote_bytes(command.iter().map(|word| word.as_encoded_bytes()))
}

pub(crate) fn quote_bytes<'a>(words: impl Iterator<Item = &'a [u8]>) -> String {
    let words = words.enumerate().map(|(index, word)| if index == 0 { quote_name(word) } else { quote_word(word) });
    let line = words.collect::<Vec<_>>().join(&b' ');
    match String::from_utf8(line) {
        Ok(line) if !line.chars().any(char::is_control) => line,
        Ok(line) => eval_of_printf(line.as_bytes()),
        Err(error) => eval_of_printf(error.as_bytes()),
    }
}

fn quote_name(word: &[u8]) -> Vec<u8> {
    // In the position of the name, `A=b` would be an assignment and `if` a keyword.
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
