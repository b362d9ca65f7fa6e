//! Standard output and standard error: the one place for messages to people. Colours are dropped if a stream is not a terminal or
//! `NO_COLOR` is set.

use std::fmt::{Display, Write as _};
use std::io::{self, Write};

use counterproof_artifact::harmless;
use serde::Serialize;

use crate::working_copies::WorkingCopies;

/// Standard output could not be written.
#[derive(Debug, thiserror::Error)]
#[error("cannot write to standard output")]
pub(crate) struct OutputError(#[source] io::Error);

impl OutputError {
    /// Wraps an error of standard output. Returns `None` for a broken pipe.
    pub(crate) fn from_io(error: io::Error) -> Option<Self> {
        // A reader that stops early, such as `head`, does not change how the command ends.
        (error.kind() != io::ErrorKind::BrokenPipe).then_some(Self(error))
    }
}

/// The two output streams of a command, and the working copies whose paths they do not show.
pub(crate) struct Streams {
    /// Results: what the user asked for.
    pub(crate) out: Box<dyn Write>,
    /// Progress, warnings, hints and errors.
    pub(crate) err: Box<dyn Write>,
    /// The working copies of runs in buckets. Both streams name what they are copies of.
    pub(crate) copies: WorkingCopies,
}

impl Streams {
    pub(crate) fn of_process() -> Self {
        Self { out: Box::new(anstream::stdout()), err: Box::new(anstream::stderr()), copies: WorkingCopies::default() }
    }

    pub(crate) fn print_line(&mut self, message: impl Display) -> Result<(), OutputError> {
        self.print_document(&harmless(&format!("{message}\n")))
    }

    /// Prints the summary of a comparison, with its verdict and its violated rules in colour on a terminal.
    pub(crate) fn print_summary(&mut self, summary: &str) -> Result<(), OutputError> {
        let mut text = String::new();
        for line in harmless(&format!("{summary}\n")).split_inclusive('\n') {
            match colour_of(line) {
                // Added after the line is made harmless. The stream drops the colour if it is not a terminal.
                Some(colour) => {
                    let _ = writeln!(text, "\u{1b}[{colour}m{}\u{1b}[0m", line.trim_end_matches('\n'));
                }
                None => text.push_str(line),
            }
        }
        self.print_document(&text)
    }

    /// Prints a document to standard output as it is: a machine reads it, or its renderer escapes the text of others.
    pub(crate) fn print_document(&mut self, text: &str) -> Result<(), OutputError> {
        self.print_to_reader(text).map(|_| ())
    }

    /// Prints a document as it is. Returns false if its reader has closed the pipe, which ends a command that prints forever.
    pub(crate) fn print_to_reader(&mut self, text: &str) -> Result<bool, OutputError> {
        let text = self.copies.original(text.to_owned());
        // Flushed, so that no error stays in a buffer.
        match self.out.write_all(text.as_bytes()).and_then(|()| self.out.flush()) {
            Ok(()) => Ok(true),
            Err(error) => OutputError::from_io(error).map_or(Ok(false), Err),
        }
    }

    /// Logs a message to standard error.
    pub(crate) fn log(&mut self, message: impl Display) {
        // Errors are ignored, because a missing reader must not stop the work.
        let _ = self.err.write_all(harmless(&self.copies.original(format!("{message}\n"))).as_bytes());
    }

    /// Logs a warning to standard error, in red on a terminal.
    pub(crate) fn warn_in_red(&mut self, message: impl Display) {
        let line = harmless(&format!("warning: {message}"));
        // Added after the message is made harmless. The stream drops the colour if it is not a terminal.
        let _ = writeln!(self.err, "\u{1b}[31m{line}\u{1b}[0m");
    }

    /// Logs a warning to standard error.
    pub(crate) fn warn(&mut self, message: impl Display) {
        self.log(format_args!("warning: {message}"));
    }
}

/// Returns the code of the colour of a line of a summary.
fn colour_of(line: &str) -> Option<&'static str> {
    const COLOURS: [(&str, &str); 6] = [
        ("Gate passed", "1;32"),
        ("Gate failed", "1;31"),
        ("Gate undecided", "1;33"),
        ("Not judged", "1;33"),
        ("Not confirmed: ", "1;33"),
        ("  \u{2717} ", "31"),
    ];
    COLOURS.iter().find(|(start, _)| line.starts_with(start)).map(|(_, colour)| *colour)
}

/// A writer of messages that makes each line [`harmless`].
#[derive(Debug)]
pub(crate) struct HarmlessLines<W> {
    out: W,
    /// The bytes of the last line, which is not complete.
    line: Vec<u8>,
}

impl<W: Write> HarmlessLines<W> {
    pub(crate) const fn new(out: W) -> Self {
        Self { out, line: Vec::new() }
    }
}

impl<W: Write> Write for HarmlessLines<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.line.extend_from_slice(bytes);
        if let Some(end) = self.line.iter().rposition(|byte| *byte == b'\n') {
            let lines: Vec<u8> = self.line.drain(..=end).collect();
            self.out.write_all(harmless(&String::from_utf8_lossy(&lines)).as_bytes())?;
        }
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.out.flush()
    }
}

/// Serialises a document as indented JSON without characters that steer a terminal.
pub(crate) fn to_json(document: &impl Serialize) -> String {
    let json = serde_json::to_string_pretty(document).unwrap_or_default();
    safe_json(&json) + "\n"
}

/// Serialises a document as one line of JSON without control characters, and without a newline.
pub(crate) fn to_json_line(document: &impl Serialize) -> String {
    safe_json(&serde_json::to_string(document).unwrap_or_default())
}

/// Returns JSON with the same meaning and without characters that steer a terminal.
pub(crate) fn safe_json(json: &str) -> String {
    let mut safe = String::with_capacity(json.len() + 1);
    for c in json.chars() {
        // Such characters occur only in strings, where their escapes mean the same.
        if c != '\n' && counterproof_artifact::is_invisible(c) {
            for unit in c.encode_utf16(&mut [0; 2]) {
                let _ = write!(safe, "\\u{unit:04x}");
            }
        } else {
            safe.push(c);
        }
    }
    // The older syntax of workflow commands works anywhere in a line. Only a string can have this text.
    safe.replace("##[", "#\\u0023[")
}

pub(crate) const WRITER: &str = concat!("counterproof ", env!("CARGO_PKG_VERSION"));

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_harmless_however_they_are_written() {
        let mut bytes = Vec::new();
        let mut lines = HarmlessLines::new(&mut bytes);
        for part in ["one\n:", ":error", "::\u{1b}two\nthree"] {
            lines.write_all(part.as_bytes()).unwrap();
        }
        assert_eq!(String::from_utf8(bytes).unwrap(), "one\n\\u{3a}:error::\\u{1b}two\n");
    }
}
