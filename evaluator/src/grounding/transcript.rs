//! How much of what an agent received its transcript holds.

use counterproof_artifact::EventBody;

use super::agent_words;
use crate::load::LoadedAnswer;
use crate::load::case_input::CaseInput;

/// How much of what the agent received the transcript of the new side contains.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Transcript {
    /// Everything, as the producer declares. Every value without an origin was made up.
    Complete,
    /// What the user said and what tools returned. Instructions of the agent may be missing, so the comparison with the baseline
    /// is needed as evidence.
    WithUser,
    /// What the user said may be missing. A value without an origin may come from there.
    Partial,
}

impl Transcript {
    /// Determines what the transcript of an answer contains. The user's turns are there if an event is one, or if the runner asked
    /// the agent once, with an input that is known.
    pub(super) fn new(loaded: &LoadedAnswer, asked: &CaseInput<'_>) -> Self {
        let is_turn = |body: &EventBody| match body {
            EventBody::Unknown { kind, fields } => agent_words::is_user_turn(kind, fields),
            _ => false,
        };
        if loaded.case.transcript_is_complete {
            Transcript::Complete
        } else if loaded.answer.events.iter().any(|event| is_turn(&event.body)) || asked.is_all_that_was_asked() {
            Transcript::WithUser
        } else {
            Transcript::Partial
        }
    }
}
