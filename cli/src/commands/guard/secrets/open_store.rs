//! The file of secrets of a command, and its errors.

use camino::Utf8Path;
use counterproof_guard::identity::process_variable;
use counterproof_guard::secrets::{SecretStore, SecretStoreError};

use crate::command_error::CommandError;

/// Returns the store of an option, or that of the environment.
pub(super) fn open(path: Option<&Utf8Path>) -> Result<SecretStore, CommandError> {
    if let Some(path) = path {
        return Ok(SecretStore::new(path));
    }
    SecretStore::from_environment(process_variable).ok_or_else(|| {
        CommandError::usage("cannot find the file of secrets: the home folder is unknown").hint("pass `--store FILE`")
    })
}

/// Converts an error of the store.
pub(super) fn store_error(error: SecretStoreError) -> CommandError {
    let hint = error.hint();
    let error = if error.is_io() { CommandError::io(error) } else { CommandError::usage(error) };
    hint.into_iter().fold(error, CommandError::hint)
}
