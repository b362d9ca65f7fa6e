//! The redactor of everything that leaves the guard: events, errors, previews, logs, cassettes.

use counterproof_redaction::{RedactError, Redactor};

use super::SecretValue;

/// Replacement for a secret, as the event format states it.
pub const MASK: &str = "[REDACTED]";

/// Compiles a redactor for these values, in every form that one or two common encoders give them, and for keys of known formats,
/// short ones included.
pub fn redactor<'a>(values: impl IntoIterator<Item = &'a SecretValue>) -> Result<Redactor, RedactError> {
    Ok(Redactor::broad(values.into_iter().map(SecretValue::expose))?.with_mask(MASK))
}
