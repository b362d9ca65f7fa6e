//! Names of secrets, and of the environment variables that carry them.

use std::fmt;
use std::str::FromStr;

use serde::Serialize;

/// Longest name of a secret in bytes.
const REF_BYTES: usize = 256;

/// A text that is not a name.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum InvalidName {
    /// It is not the name of a secret.
    #[error(
        "the name of a secret has 1 to {REF_BYTES} bytes, no control characters, no spaces at its ends, and no `-` at its start"
    )]
    Secret,
    /// It is not the name of an environment variable.
    #[error("the name of a variable has ASCII letters, digits and `_`, and does not start with a digit")]
    Variable,
}

/// The name of a secret in its source.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(transparent)]
pub struct SecretRef(String);

impl SecretRef {
    /// The text of the name.
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

/// The name of an environment variable that carries a secret.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(transparent)]
pub struct VariableName(String);

impl VariableName {
    /// The text of the name.
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
}
