//! The protocols by name. How each of them works is told in a file of its own.

use std::fmt;
use std::str::FromStr;

use super::Dialect;
use super::native::Native;

/// What an agent speaks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Protocol {
    /// The artifact's own fields as the answer.
    #[default]
    Native,
}

/// A text that names no protocol.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is no protocol; there are native")]
pub struct ProtocolError(String);

impl Protocol {
    /// All protocols.
    pub const ALL: [Protocol; 1] = [Protocol::Native];

    /// The name.
    pub const fn as_str(self) -> &'static str {
        match self {
            Protocol::Native => "native",
        }
    }

    pub(crate) fn dialect(self) -> Box<dyn Dialect> {
        match self {
            Protocol::Native => Box::new(Native),
        }
    }
}

impl fmt::Display for Protocol {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl FromStr for Protocol {
    type Err = ProtocolError;

    fn from_str(text: &str) -> Result<Self, ProtocolError> {
        let named = Protocol::ALL.into_iter().find(|protocol| protocol.as_str() == text);
        named.ok_or_else(|| ProtocolError(text.to_owned()))
    }
}
