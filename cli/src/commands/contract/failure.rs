//! A failed subcommand: an error with a stable code.

use std::error::Error;

use counterproof_artifact::Exit;
use counterproof_contracts::StoreError;
use counterproof_contracts::execution::ExecutionError;
use serde_json::json;

use crate::command_error::CommandError;
use crate::streams::{OutputError, Streams};

/// A failed subcommand.
#[derive(Debug)]
pub(super) struct Failure {
    code: &'static str,
    error: CommandError,
}

impl Failure {
    /// Creates a failure with exit code 2 and this code.
    pub(super) fn refused(code: &'static str, error: impl Into<Box<dyn Error + Send + Sync>>) -> Self {
        Self { code, error: CommandError::usage(error) }
    }

    /// Creates a failure with exit code 3.
    pub(super) fn io(error: impl Into<Box<dyn Error + Send + Sync>>) -> Self {
        Self { code: "storage_error", error: CommandError::io(error) }
    }

    /// Adds a remedy.
    pub(super) fn hint(self, hint: impl std::fmt::Display) -> Self {
        Self { code: self.code, error: self.error.hint(hint) }
    }

    /// Returns the error without its code.
    pub(super) fn into_error(self) -> CommandError {
        self.error
    }

    /// Prints the failure as JSON.
    pub(super) fn print(self, streams: &mut Streams) -> Result<Exit, CommandError> {
        let mut document = json!({ "error": { "code": self.code, "message": self.error.message() } });
        if !self.error.hints().is_empty() {
            document["error"]["hints"] = json!(self.error.hints());
        }
        streams.print_document(&crate::json_text::to_json(&document))?;
        Ok(self.error.exit())
    }
}

impl From<StoreError> for Failure {
    fn from(error: StoreError) -> Self {
        let (code, hint) = (error.code(), error.hint());
        let error = if error.is_io() { CommandError::io(error) } else { CommandError::usage(error) };
        Self { code, error: hint.into_iter().fold(error, CommandError::hint) }
    }
}

impl From<ExecutionError> for Failure {
    fn from(error: ExecutionError) -> Self {
        let code = error.code();
        Self { code, error: if error.is_io() { CommandError::io(error) } else { CommandError::usage(error) } }
    }
}

impl From<OutputError> for Failure {
    fn from(error: OutputError) -> Self {
        Self::io(error)
    }
}
