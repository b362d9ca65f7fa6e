//! Environment variables whose values are secrets or headers.

use std::env::{self, VarError};

use counterproof_redaction::SHORTEST;
use counterproof_runner::{Header, HeaderError, Secret};

use crate::command_error::CommandError;
use crate::config::Secrets;

/// Returns the values of the variables that `--secret` and the configuration name. Unset variables are an error for `--secret`
/// and are ignored in the configuration, which one project shares between machines.
pub(crate) fn secrets(named: &[Secret], configured: &Secrets) -> Result<Vec<Secret>, CommandError> {
    let mut secrets = Vec::new();
    for text in named {
        // The message does not quote the value, which may be the secret itself.
        let name = text.expose().strip_prefix("env:").ok_or_else(|| {
            CommandError::usage("`--secret` requires the name of an environment variable")
                .hint("example: `--secret env:AGENT_TOKEN`. Other users can see values on the command line")
        })?;
        let value = variable(name)?.ok_or_else(|| {
            CommandError::usage(format!("environment variable `{name}` is not set"))
                .hint(format!("set `{name}` or remove `--secret env:{name}`"))
        })?;
        secrets.push(long_enough(name, value)?);
    }
    for name in configured.variables() {
        if let Some(value) = variable(name)? {
            secrets.push(long_enough(name, value)?);
        }
    }
    Ok(secrets)
}

/// Parses the headers of requests. The value of a header may name an environment variable.
pub(crate) fn headers(texts: &[Secret]) -> Result<Vec<Header>, HeaderError> {
    texts.iter().map(|text| Header::parse(text, |name| env::var(name))).collect()
}

/// Returns the value of a variable; `None` if it is not set.
fn variable(name: &str) -> Result<Option<String>, CommandError> {
    match env::var(name) {
        Ok(value) => Ok(Some(value)),
        Err(VarError::NotPresent) => Ok(None),
        Err(VarError::NotUnicode(_)) => {
            Err(CommandError::usage(format!("the value of the environment variable `{name}` is not valid UTF-8"))
                .hint("a secret must be text to be found in other text"))
        }
    }
}

fn long_enough(name: &str, value: String) -> Result<Secret, CommandError> {
    if value.len() >= SHORTEST {
        return Ok(Secret::from(value));
    }
    let message = format!("the secret in `{name}` is shorter than {SHORTEST} bytes and cannot be redacted reliably");
    Err(CommandError::usage(message).hint(format!("use a secret of at least {SHORTEST} bytes")))
}
