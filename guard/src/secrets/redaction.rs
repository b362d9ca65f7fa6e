//! The redactors of the output of the guard.

use counterproof_redaction::{RedactError, Redactor};

use super::SecretValue;

/// Replacement for a secret, as the event format states it.
pub const MASK: &str = "[REDACTED]";

/// Compiles the redactor of what the guard records: events, errors, previews, logs, cassettes. It masks the values, in every form
/// that one or two common encoders give them, and keys of known formats, short ones included.
pub fn redactor<'a>(values: impl IntoIterator<Item = &'a SecretValue>) -> Result<Redactor, RedactError> {
    Ok(Redactor::broad(values.into_iter().map(SecretValue::expose))?.with_mask(MASK))
}

/// Compiles the redactor of what a server sends to its client. It masks only the values: all other bytes must arrive unchanged.
pub fn value_redactor<'a>(values: impl IntoIterator<Item = &'a SecretValue>) -> Result<Redactor, RedactError> {
    Ok(Redactor::of_values(values.into_iter().map(SecretValue::expose))?.with_mask(MASK))
}
