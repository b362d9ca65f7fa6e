//! The program's one error: a kind that decides the exit code, the error with its causes, and hints what to do.

use std::error::Error;
use std::fmt::{self, Write as _};

use counterproof_artifact::Exit;

use crate::streams::Streams;

/// What went wrong, by whose turn it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    /// The command line or the configuration is wrong.
    Usage,
    /// Input or output could not be read or written.
    Io,
}

/// Why a command could not do its work.
#[derive(Debug)]
pub(crate) struct CommandError {
    kind: Kind,
    error: Box<dyn Error + Send + Sync>,
    hints: Vec<String>,
}

impl CommandError {
    /// The command line or the configuration is wrong.
    pub(crate) fn usage(error: impl Into<Box<dyn Error + Send + Sync>>) -> Self {
        Self { kind: Kind::Usage, error: error.into(), hints: Vec::new() }
    }

    /// Input or output could not be read or written.
    pub(crate) fn io(error: impl Into<Box<dyn Error + Send + Sync>>) -> Self {
        Self { kind: Kind::Io, error: error.into(), hints: Vec::new() }
    }

    /// Adds what the user can do about it.
    #[must_use]
    pub(crate) fn hint(mut self, hint: impl fmt::Display) -> Self {
        self.hints.push(hint.to_string());
        self
    }

    /// Prints the error with its causes and hints, and gives the exit code.
    pub(crate) fn report(&self, streams: &mut Streams) -> Exit {
        let mut text = format!("error: {}", self.error);
        let mut cause = self.error.source();
        while let Some(error) = cause {
            let _ = write!(text, "\n  caused by: {error}");
            cause = error.source();
        }
        for hint in &self.hints {
            let _ = write!(text, "\n  hint: {hint}");
        }
        streams.note(text);
        match self.kind {
            Kind::Usage => Exit::Usage,
            Kind::Io => Exit::Io,
        }
    }
}
