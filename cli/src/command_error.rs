//! The error type of the program: a kind that decides the exit code, an error with its causes, and hints.

use std::error::Error;
use std::fmt::{Display, Write as _};

use counterproof_artifact::{Exit, with_causes};

use crate::streams::{OutputError, Streams};

/// The class of an error; it decides the exit code.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    /// The arguments, the configuration or the named files are wrong: exit code 2.
    Usage,
    /// Input or output could not be read or written: exit code 3.
    Io,
    /// The command did its work and rejects what it found: exit code 1.
    Findings,
}

impl Kind {
    const fn exit(self) -> Exit {
        match self {
            Self::Usage => Exit::Usage,
            Self::Io => Exit::Io,
            Self::Findings => Exit::Findings,
        }
    }
}

/// A failed command.
#[derive(Debug)]
pub(crate) struct CommandError {
    kind: Kind,
    error: Box<dyn Error + Send + Sync>,
    hints: Vec<String>,
}

impl CommandError {
    /// Creates an error with exit code 2: wrong arguments, configuration or input documents.
    pub(crate) fn usage(error: impl Into<Box<dyn Error + Send + Sync>>) -> Self {
        Self { kind: Kind::Usage, error: error.into(), hints: Vec::new() }
    }

    /// Creates an error with exit code 3: failed input or output.
    pub(crate) fn io(error: impl Into<Box<dyn Error + Send + Sync>>) -> Self {
        Self { kind: Kind::Io, error: error.into(), hints: Vec::new() }
    }

    /// Creates an error with exit code 1: the input was read and does not meet the requirements.
    pub(crate) fn findings(error: impl Into<Box<dyn Error + Send + Sync>>) -> Self {
        Self { kind: Kind::Findings, error: error.into(), hints: Vec::new() }
    }

    /// Adds a remedy.
    #[must_use]
    pub(crate) fn hint(mut self, hint: impl Display) -> Self {
        self.hints.push(hint.to_string());
        self
    }

    /// Returns the error with its causes in one line.
    pub(crate) fn message(&self) -> String {
        with_causes(&*self.error)
    }

    /// Returns the remedies.
    pub(crate) fn hints(&self) -> &[String] {
        &self.hints
    }

    /// Returns the exit code.
    pub(crate) fn exit(&self) -> Exit {
        self.kind.exit()
    }

    /// Logs the error with its causes and hints. Returns the exit code.
    pub(crate) fn report(&self, streams: &mut Streams) -> Exit {
        let mut text = format!("error: {}", self.error);
        let mut cause = self.error.source();
        while let Some(error) = cause {
            let _ = write!(text, "\n  caused by: {error}");
            cause = error.source();
        }
        for hint in &self.hints {
            let _ = write!(text, "\nhint: {hint}");
        }
        streams.log(text);
        self.kind.exit()
    }
}

impl From<OutputError> for CommandError {
    fn from(error: OutputError) -> Self {
        Self::io(error)
    }
}
