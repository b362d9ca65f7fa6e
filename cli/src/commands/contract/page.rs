//! Errors of pages as failures of a command.

use counterproof_report::contracts::{GraphPageError, PageError};

use super::failure::Failure;
use crate::report_output::WAIT_OR_CHOOSE;

impl From<PageError> for Failure {
    fn from(error: PageError) -> Self {
        match error {
            PageError::Foreign { .. } => Failure::refused("usage", error).hint("choose another folder"),
            PageError::Busy(_) => Failure::refused("locked", error).hint(WAIT_OR_CHOOSE),
            other => Failure::io(other),
        }
    }
}

impl From<GraphPageError> for Failure {
    fn from(error: GraphPageError) -> Self {
        match error {
            GraphPageError::Graph(error) => error.into(),
            GraphPageError::Page(error) => error.into(),
        }
    }
}
