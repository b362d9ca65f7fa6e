//! Where the program prints to. Colours are dropped where the stream is no terminal, or where `NO_COLOR` is set.

use std::io::{self, Write};

use crate::command_error::CommandError;

/// Standard output and standard error.
pub(crate) struct Streams {
    /// For what was asked for.
    pub(crate) out: Box<dyn Write>,
    /// For everything about it: progress, hints, errors.
    pub(crate) err: Box<dyn Write>,
}

impl Streams {
    /// The streams of the process.
    pub(crate) fn of_process() -> Self {
        Self { out: Box::new(anstream::stdout()), err: Box::new(anstream::stderr()) }
    }

    /// Prints a line that was asked for.
    pub(crate) fn say(&mut self, line: impl std::fmt::Display) -> Result<(), CommandError> {
        self.print(&format!("{line}\n"))
    }

    /// Prints a text that was asked for. Whoever stops reading it changes nothing about how the command ends.
    pub(crate) fn print(&mut self, text: &str) -> Result<(), CommandError> {
        match self.out.write_all(text.as_bytes()) {
            Err(error) if error.kind() != io::ErrorKind::BrokenPipe => Err(CommandError::io(error)),
            _ => Ok(()),
        }
    }

    /// Prints a line about the work; whoever does not listen does not stop it.
    pub(crate) fn note(&mut self, line: impl std::fmt::Display) {
        let _ = writeln!(self.err, "{line}");
    }
}
