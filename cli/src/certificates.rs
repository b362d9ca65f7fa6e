//! The certificates that are trusted in addition to those of the system, and the variable that replaces those.

use std::env;

use camino::{Utf8Path, Utf8PathBuf};
use counterproof_runner::{Target, TrustedCertificates};
use counterproof_store::read_file;

use crate::command_error::CommandError;

/// The file of certificates that replaces those of the system on Unix, except macOS.
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

/// Checks the file that `SSL_CERT_FILE` names, if requests to the agent need it. The TLS library would ignore an unreadable file,
/// and the agent's certificate would then look wrong.
pub(crate) fn check_environment(target: &Target) -> Result<(), CommandError> {
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
