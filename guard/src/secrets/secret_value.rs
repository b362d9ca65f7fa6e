//! The value of a secret, which no output shows.

use std::fmt;

use counterproof_redaction::SHORTEST;
use serde::{Serialize, Serializer};

use super::MASK;

/// The value of a secret. `Debug`, `Display` and the serialisation are masked.
#[derive(Clone, PartialEq, Eq)]
pub struct SecretValue(String);

/// A value that cannot be a secret. The message does not contain it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum InvalidSecret {
    #[error("the value is empty")]
    Empty,
    /// The value is not text, so it cannot be found in other text.
    #[error("the value is not valid UTF-8")]
    NotText,
    /// No environment variable can contain the value.
    #[error("the value contains a NUL character, which no environment variable can have")]
    HasNul,
    /// The value is too short to be redacted.
    #[error("the value has {bytes} bytes; a value of fewer than {SHORTEST} bytes cannot be redacted reliably")]
    TooShort {
        /// The length of the value.
        bytes: usize,
    },
}

impl SecretValue {
    /// Checks a value.
    pub fn new(value: String) -> Result<Self, InvalidSecret> {
        if value.is_empty() {
            return Err(InvalidSecret::Empty);
        }
        if value.contains('\0') {
            return Err(InvalidSecret::HasNul);
        }
        Ok(Self(value))
    }

    /// Checks a value that is bytes.
    pub fn from_bytes(bytes: Vec<u8>) -> Result<Self, InvalidSecret> {
        Self::new(String::from_utf8(bytes).map_err(|_| InvalidSecret::NotText)?)
    }

    /// Returns the value itself. Only code that injects, stores or masks it may call this.
    pub fn expose(&self) -> &str {
        &self.0
    }

    /// Fails if the value is too short to be found in other text, without the white space around it.
    pub fn check_redactable(&self) -> Result<(), InvalidSecret> {
        let bytes = self.0.trim().len();
        if bytes < SHORTEST { Err(InvalidSecret::TooShort { bytes }) } else { Ok(()) }
    }
}

impl fmt::Debug for SecretValue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "SecretValue({MASK})")
    }
}

impl fmt::Display for SecretValue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(MASK)
    }
}

impl Serialize for SecretValue {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(MASK)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_output_of_a_value_contains_it() {
        let value = SecretValue::new("hunter2-hunter2".to_owned()).unwrap();
        let outputs = [format!("{value:?}"), format!("{value}"), serde_json::to_string(&value).unwrap()];
        assert_eq!(outputs, ["SecretValue([REDACTED])", "[REDACTED]", "\"[REDACTED]\""]);
    }

    #[test]
    fn values_that_no_variable_can_have_are_refused() {
        assert_eq!(SecretValue::new(String::new()), Err(InvalidSecret::Empty));
        assert_eq!(SecretValue::new("a\0b".to_owned()), Err(InvalidSecret::HasNul));
        assert_eq!(SecretValue::from_bytes(vec![0xff]), Err(InvalidSecret::NotText));
        let short = SecretValue::new("abc".to_owned()).unwrap();
        assert_eq!(short.check_redactable(), Err(InvalidSecret::TooShort { bytes: 3 }));
        let padded = SecretValue::new("  abc\n\n".to_owned()).unwrap();
        assert_eq!(padded.check_redactable(), Err(InvalidSecret::TooShort { bytes: 3 }));
    }
}
