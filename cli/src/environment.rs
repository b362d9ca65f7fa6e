//! Environment variables whose values are secrets or headers, and the certificates that a run trusts.

use std::collections::BTreeSet;
use std::env::{self, VarError};

use camino::{Utf8Path, Utf8PathBuf};
use counterproof_redaction::{SHORTEST, is_secret_name};
use counterproof_runner::{Header, HeaderError, Secret, Target, TrustedCertificates};
use counterproof_store::read_file;

use crate::command_error::CommandError;
use crate::config::Secrets;

/// Returns the values of the variables that `--secret` and the configuration name.
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
    for name in &configured.env {
        // A variable that is not set is ignored, unlike for `--secret`: a project shares its configuration between
        // machines.
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
    // A short text also occurs in other words, which the redaction would destroy.
    let message = format!("the secret in `{name}` is shorter than {SHORTEST} bytes and cannot be redacted reliably");
    Err(CommandError::usage(message).hint(format!("use a secret of at least {SHORTEST} bytes")))
}

/// The file of certificates that replaces the ones of the system on Unix, except macOS.
const REPLACEMENT: &str = "SSL_CERT_FILE";

/// Reads the file of `--ca-file`.
pub(crate) fn trusted(file: Option<&Utf8Path>) -> Result<TrustedCertificates, CommandError> {
    let Some(file) = file else { return Ok(TrustedCertificates::default()) };
    let bytes = read_file::read_argument(file, read_file::MAX_SMALL_BYTES)
        .map_err(|error| CommandError::io(format!("failed to read `{file}`: {error}")))?;
    TrustedCertificates::from_pem(&bytes).map_err(|error| {
        CommandError::usage(format!("`{file}` has no usable certificates: {error}"))
            .hint("`--ca-file` requires the certificate of the authority in PEM format")
    })
}

/// Checks the file that `SSL_CERT_FILE` names, if requests to the agent need it.
pub(crate) fn check_environment(target: &Target) -> Result<(), CommandError> {
    // The TLS library would ignore an unreadable file, and the agent's certificate would then look wrong.
    let needs_certificates = matches!(target, Target::Http(base) if !base.is_plain());
    let is_used = cfg!(all(unix, not(target_vendor = "apple")));
    let Some(path) = env::var_os(REPLACEMENT).filter(|_| needs_certificates && is_used) else { return Ok(()) };
    let file = Utf8PathBuf::from(path.to_string_lossy().into_owned());
    let hint = format!("correct or unset `{REPLACEMENT}`");
    let bytes = read_file::read_argument(&file, read_file::MAX_SMALL_BYTES).map_err(|error| {
        CommandError::io(format!("failed to read `{file}`, which `{REPLACEMENT}` names: {error}")).hint(&hint)
    })?;
    TrustedCertificates::from_pem(&bytes).map(drop).map_err(|error| {
        CommandError::usage(format!("`{file}`, which `{REPLACEMENT}` names, has no usable certificates: {error}"))
            .hint(hint)
    })
}

/// Returns the values of the variables whose names are those of secrets.
pub(crate) fn secrets_of_environment() -> Vec<String> {
    let named =
        std::env::vars_os().filter_map(|(name, value)| Some((name.into_string().ok()?, value.into_string().ok()?)));
    let secrets: BTreeSet<String> =
        named.filter(|(name, value)| is_secret_variable(name, value)).map(|(_, value)| value).collect();
    secrets.into_iter().collect()
}

/// Paths are not secret, such as the working folder in `PWD`, whose name looks like that of a password.
fn is_secret_variable(name: &str, value: &str) -> bool {
    is_secret_name(name) && value.len() >= 8 && !value.starts_with('/')
}
