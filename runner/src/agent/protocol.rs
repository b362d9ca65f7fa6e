//! The protocols by name. Each is implemented in a file of its own.

use std::fmt;
use std::str::FromStr;

use super::ProtocolAdapter;
use super::native::Native;
use super::openai_chat::OpenaiChat;
use super::openai_responses::OpenaiResponses;
use super::options::AgentOptions;

/// The protocol of an agent.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Protocol {
    /// The project's own protocol: the answer has the fields of the artifact.
    #[default]
    Native,
    /// OpenAI Chat Completions.
    OpenaiChat,
    /// OpenAI Responses.
    OpenaiResponses,
}

/// An unknown protocol name.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("unknown protocol `{0}`: use native, openai-chat or openai-responses")]
pub struct ProtocolError(String);

impl Protocol {
    /// All protocols, in the order of the documentation.
    pub const ALL: [Protocol; 3] = [Protocol::Native, Protocol::OpenaiChat, Protocol::OpenaiResponses];

    /// Returns the name, as on the command line and in `run.json`.
    pub const fn as_str(self) -> &'static str {
        match self {
            Protocol::Native => "native",
            Protocol::OpenaiChat => "openai-chat",
            Protocol::OpenaiResponses => "openai-responses",
        }
    }

    /// Returns the implementation of the protocol.
    pub(crate) fn adapter(self, options: &AgentOptions) -> Box<dyn ProtocolAdapter> {
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
