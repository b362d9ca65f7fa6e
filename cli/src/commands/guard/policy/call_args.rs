//! The arguments of a call on the command line: JSON, or a file with JSON.

use std::str::FromStr;

use camino::{Utf8Path, Utf8PathBuf};
use counterproof_store::read_file;
use serde_json::Value;

use crate::command_error::CommandError;

/// The arguments of a call: `{…}`, or `@FILE`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum CallArgs {
    /// JSON.
    Text(String),
    /// A file with JSON.
    File(Utf8PathBuf),
}

impl FromStr for CallArgs {
    type Err = std::convert::Infallible;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        Ok(match text.strip_prefix('@') {
            Some(path) => Self::File(path.into()),
            None => Self::Text(text.to_owned()),
        })
    }
}

impl CallArgs {
    /// Reads the JSON text of the arguments, which must be an object.
    pub(super) fn read(&self) -> Result<String, CommandError> {
        let text = match self {
            Self::Text(text) => text.clone(),
            Self::File(path) => read(path)?,
        };
        let origin = self.origin();
        match serde_json::from_str::<Value>(&text) {
            Ok(value) if value.is_object() => Ok(text),
            Ok(_) => Err(CommandError::usage(format!("{origin} is not a JSON object"))
                .hint("the arguments of a tool are an object, such as {\"path\": \"a\"}")),
            Err(error) => Err(CommandError::usage(format!("{origin} is not JSON: {error}"))
                .hint("put the JSON in single quotes, or pass `--args @FILE`")),
        }
    }

    /// Where the arguments come from, for messages.
    pub(super) fn origin(&self) -> String {
        match self {
            Self::Text(_) => "`--args`".to_owned(),
            Self::File(path) => format!("`{path}`"),
        }
    }
}

fn read(path: &Utf8Path) -> Result<String, CommandError> {
    read_file::read_text_argument(path, read_file::MAX_LARGE_BYTES)
        .map_err(|error| CommandError::io(format!("cannot read `{path}`: {error}")))
}
