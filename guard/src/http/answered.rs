//! What a message of the server answers.

use counterproof_ledger::event::CallId;

use super::message_buffer::CollectedMessage;
use crate::mcp::{RequestId, Response, ScannedMessage, end_calls, end_scanned_call, read_responses};
use crate::session::Session;

/// A message as a response, or as several.
pub(super) enum Answered<'a> {
    /// The responses of a message that can be read as a whole.
    Responses(Vec<Response<'a>>),
    /// What was found in any other message.
    Scanned {
        /// The fields that decide.
        found: Box<ScannedMessage>,
        /// Size in bytes.
        length: u64,
    },
}

impl<'a> Answered<'a> {
    pub(super) fn read(message: &'a CollectedMessage) -> Self {
        match message {
            CollectedMessage::Whole(bytes) => {
                let responses = std::str::from_utf8(bytes).map_or_else(|_| Vec::new(), read_responses);
                if responses.is_empty() {
                    let found = Box::new(ScannedMessage::read(bytes));
                    return Self::Scanned { found, length: bytes.len() as u64 };
                }
                Self::Responses(responses)
            }
            CollectedMessage::Scanned { found, length } => Self::Scanned { found: found.clone(), length: *length },
        }
    }

    /// Records the ends of the calls that the message answers. `take` removes and returns the call of a request.
    pub(super) fn end_calls(&self, session: &Session, take: impl Fn(&RequestId) -> Option<CallId>) {
        match self {
            Self::Responses(responses) => end_calls(session, responses, take),
            Self::Scanned { found, length } => end_scanned_call(session, found, *length, take),
        }
    }
}
