//! Standard output and standard error. Colours are dropped where a stream is not a terminal or `NO_COLOR` is set.

use std::fmt::Display;
use std::io::{self, Write};

/// Standard output could not be written.
#[derive(Debug, thiserror::Error)]
#[error("cannot write to standard output")]
pub(crate) struct OutputError(#[source] io::Error);

impl OutputError {
    /// Wraps an error of standard output. Returns `None` for a broken pipe: a reader that stops early, such as `head`,
    /// does not change how the command ends.
    pub(crate) fn from_io(error: io::Error) -> Option<Self> {
        (error.kind() != io::ErrorKind::BrokenPipe).then_some(Self(error))
    }
}

/// The two output streams of a command.
pub(crate) struct Streams {
    /// Results: what the user asked for.
    pub(crate) out: Box<dyn Write>,
    /// Progress, warnings, hints and errors.
    pub(crate) err: Box<dyn Write>,
}

impl Streams {
    /// Returns the streams of this process.
    pub(crate) fn of_process() -> Self {
        Self { out: Box::new(anstream::stdout()), err: Box::new(anstream::stderr()) }
    }

    /// Prints a line to standard output.
    pub(crate) fn print_line(&mut self, line: impl Display) -> Result<(), OutputError> {
        self.print(&format!("{line}\n"))
    }

    /// Prints text to standard output. Ignores a broken pipe.
    pub(crate) fn print(&mut self, text: &str) -> Result<(), OutputError> {
        self.out.write_all(text.as_bytes()).or_else(|error| OutputError::from_io(error).map_or(Ok(()), Err))
    }

    /// Logs a line to standard error. Ignores all errors: a missing reader must not stop the work.
    pub(crate) fn log(&mut self, line: impl Display) {
        let _ = writeln!(self.err, "{line}");
    }

    /// Logs a warning to standard error.
    pub(crate) fn warn(&mut self, message: impl Display) {
        self.log(format_args!("warning: {message}"));
    }
}
