//! Where the program prints to. Colours are dropped where the stream is no terminal, or where `NO_COLOR` is set.

use std::io::Write;

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
        writeln!(self.out, "{line}").map_err(CommandError::output)
    }

    /// Prints a line about the work; whoever does not listen does not stop it.
    pub(crate) fn note(&mut self, line: impl std::fmt::Display) {
        let _ = writeln!(self.err, "{line}");
    }
}
