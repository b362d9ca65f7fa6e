//! The name of a secret, the variable that carries it, and its value, which no output shows.

use std::fmt;
use std::str::FromStr;

use counterproof_redaction::SHORTEST;
use serde::{Serialize, Serializer};

const REF_BYTES: usize = 256;

#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum InvalidName {
    #[error(
        "the name of a secret has 1 to {REF_BYTES} bytes, no control characters, no spaces at its ends, and no `-` at its start"
    )]
    Secret,
    #[error("the name of a variable has ASCII letters, digits and `_`, and does not start with a digit")]
    Variable,
}

#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(transparent)]
pub struct SecretRef(String);

impl SecretRef {
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The environment variables that can contain the secret, in the order of their precedence.
    pub(super) fn variables(&self) -> [String; 3] {
        let upper = self.0.chars().map(|c| if c.is_ascii_alphanumeric() { c.to_ascii_uppercase() } else { '_' });
        let upper: String = upper.collect();
        let prefixed = format!("SUB_SECRET_{upper}");
        [self.0.clone(), upper, prefixed]
    }
}

impl FromStr for SecretRef {
    type Err = InvalidName;

    fn from_str(text: &str) -> Result<Self, InvalidName> {
        // A name that starts with `-` would be an option of the programs that read the keychain.
        let is_valid = (1..=REF_BYTES).contains(&text.len())
            && !text.starts_with('-')
            && text.trim() == text
            && !text.chars().any(char::is_control);
        if is_valid { Ok(Self(text.to_owned())) } else { Err(InvalidName::Secret) }
    }
}

impl fmt::Display for SecretRef {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(transparent)]
pub struct VariableName(String);

impl VariableName {
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl FromStr for VariableName {
    type Err = InvalidName;

    fn from_str(text: &str) -> Result<Self, InvalidName> {
        let is_valid = !text.is_empty()
            && !text.starts_with(|c: char| c.is_ascii_digit())
            && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_');
        if is_valid { Ok(Self(text.to_owned())) } else { Err(InvalidName::Variable) }
    }
}

impl fmt::Display for VariableName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// The value of a secret. `Debug`, `Display` and the serialisation are masked.
#[derive(Clone, PartialEq, Eq)]
pub struct SecretValue(String);

/// A value that cannot be a secret. The message does not contain it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum InvalidSecret {
    #[error("the value is empty")]
    Empty,
    #[error("the value is not valid UTF-8")]
    NotText,
    #[error("the value contains a NUL character, which no environment variable can have")]
    HasNul,
    #[error("the value has {bytes} bytes; a value of fewer than {SHORTEST} bytes cannot be redacted reliably")]
    TooShort { bytes: usize },
}

impl SecretValue {
    pub fn new(value: String) -> Result<Self, InvalidSecret> {
        if value.is_empty() {
            return Err(InvalidSecret::Empty);
        }
        // The system ends the value of a variable there, so the server would get another secret.
        if value.contains('\0') {
            return Err(InvalidSecret::HasNul);
        }
        Ok(Self(value))
    }

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

/// Replacement for a secret, as the event format states it.
pub const MASK: &str = "[REDACTED]";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_that_would_be_options_or_no_variables_are_refused() {
        for text in ["", "-w", " a", "a\n", &"a".repeat(257)] {
            assert_eq!(text.parse::<SecretRef>(), Err(InvalidName::Secret), "{text:?}");
        }
        for text in ["", "1A", "A-B", "A=B", "Ä"] {
            assert_eq!(text.parse::<VariableName>(), Err(InvalidName::Variable), "{text:?}");
        }
    }

    #[test]
    fn a_secret_is_looked_up_under_three_variables() {
        let name: SecretRef = "github-token".parse().unwrap();
        assert_eq!(name.variables(), ["github-token", "GITHUB_TOKEN", "SUB_SECRET_GITHUB_TOKEN"]);
    }

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
