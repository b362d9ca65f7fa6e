//! The protocols by name. How each of them works is told in a file of its own.

use std::fmt;
use std::str::FromStr;

use super::Dialect;
use super::native::Native;
use super::openai_chat::OpenaiChat;
use super::openai_responses::OpenaiResponses;
use super::options::AgentOptions;

/// What an agent speaks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Protocol {
    /// The artifact's own fields as the answer.
    #[default]
    Native,
    /// OpenAI's Chat Completions.
    OpenaiChat,
    /// OpenAI's Responses.
    OpenaiResponses,
}

/// A text that names no protocol.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is no protocol; write native, openai-chat or openai-responses")]
pub struct ProtocolError(String);

impl Protocol {
    /// All protocols.
    pub const ALL: [Protocol; 3] = [Protocol::Native, Protocol::OpenaiChat, Protocol::OpenaiResponses];

    /// The name.
    pub const fn as_str(self) -> &'static str {
        match self {
            Protocol::Native => "native",
            Protocol::OpenaiChat => "openai-chat",
            Protocol::OpenaiResponses => "openai-responses",
        }
    }

    pub(crate) fn dialect(self, options: &AgentOptions) -> Box<dyn Dialect> {
        let options = options.clone();
        match self {
            Protocol::Native => Box::new(Native),
            Protocol::OpenaiChat => Box::new(OpenaiChat { options }),
            Protocol::OpenaiResponses => Box::new(OpenaiResponses { options }),
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
