//! What a reader wants to know about a session before its records: sums, milestones and errors.

use std::collections::{BTreeMap, BTreeSet};

use jiff::Timestamp;
use serde::Serialize;

use crate::event::{EventBody, FileChange, SessionEvent, Usage};
use crate::milestone::{Milestone, MilestoneKind, milestones};

/// The sums over the records of a session.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Summary {
    /// Failed calls included.
    pub llm_calls: u64,
    pub tool_calls: u64,
    pub commands: u64,
    pub checkpoints: u64,
    /// The sums of what is known.
    pub tokens: Usage,
    /// The sum of what the source states.
    pub cost: Option<f64>,
    pub tool_calls_by_tool: BTreeMap<String, u64>,
    /// The files that were created, changed, renamed or deleted.
    pub files_changed: BTreeSet<String>,
    pub milestones: Vec<MilestoneRecord>,
    pub errors: Vec<SessionError>,
}

/// A milestone and its record.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct MilestoneRecord {
    pub kind: MilestoneKind,
    pub timestamp: Timestamp,
    pub seq: Option<u64>,
    pub text: String,
    /// Whether it succeeded, if that is known.
    #[serde(skip)]
    pub succeeded: Option<bool>,
    /// It failed, and had to.
    #[serde(skip)]
    pub is_expected: bool,
}

impl MilestoneRecord {
    pub(crate) fn new(milestone: Milestone, timestamp: Timestamp, seq: Option<u64>) -> Self {
        let Milestone { kind, text, succeeded, is_expected } = milestone;
        Self { kind, timestamp, seq, text, succeeded, is_expected }
    }
}

/// A failed record.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct SessionError {
    pub seq: Option<u64>,
    pub timestamp: Timestamp,
    pub message: String,
}

impl Summary {
    pub fn new<'a>(events: impl IntoIterator<Item = &'a SessionEvent>) -> Self {
        let mut summary = Self::default();
        events.into_iter().for_each(|event| summary.add(event));
        summary
    }

    pub fn add(&mut self, event: &SessionEvent) {
        match &event.body {
            EventBody::LlmCall(call) => {
                self.llm_calls += 1;
                if let Some(usage) = call.response.as_ref().and_then(|response| response.usage) {
                    self.tokens = sum(self.tokens, usage);
                }
                self.cost = call.cost.map_or(self.cost, |cost| Some(self.cost.unwrap_or_default() + cost));
            }
            EventBody::ToolCall(call) => {
                self.tool_calls += 1;
                *self.tool_calls_by_tool.entry(call.tool_name.clone()).or_default() += 1;
            }
            EventBody::Command(_) => self.commands += 1,
            EventBody::Checkpoint(_) => self.checkpoints += 1,
            EventBody::FileOperation(file) if file.operation != FileChange::Read => {
                self.files_changed.insert(file.path.clone());
            }
            EventBody::FileOperation(_) | EventBody::StateTransition(_) | EventBody::Opaque(_) => {}
        }
        let of = |milestone| MilestoneRecord::new(milestone, event.timestamp, event.seq);
        self.milestones.extend(milestones(event).into_iter().map(of));
        if let Some(message) = error_message(event) {
            self.errors.push(SessionError { seq: event.seq, timestamp: event.timestamp, message });
        }
    }
}

fn sum(one: Usage, other: Usage) -> Usage {
    let add = |one: Option<u64>, other: Option<u64>| match (one, other) {
        (None, None) => None,
        (one, other) => Some(one.unwrap_or_default().saturating_add(other.unwrap_or_default())),
    };
    Usage {
        prompt_tokens: add(one.prompt_tokens, other.prompt_tokens),
        completion_tokens: add(one.completion_tokens, other.completion_tokens),
        total_tokens: add(one.total_tokens, other.total_tokens),
        cached_tokens: add(one.cached_tokens, other.cached_tokens),
    }
}

/// Returns why a record failed; `None` if it did not, or if nothing states it. A tool that answers with an error is part of
/// a normal session, and not an error of it.
pub fn error_message(event: &SessionEvent) -> Option<String> {
    let error = event.error.as_ref()?;
    Some(match error.status {
        Some(status) => format!("{} {status}: {}", error.kind, error.message),
        None => format!("{}: {}", error.kind, error.message),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::event::{LlmCall, LlmResponse};

    fn event(body: EventBody) -> SessionEvent {
        SessionEvent::reconstructed("k", Timestamp::UNIX_EPOCH, body)
    }

    #[test]
    fn sums_are_of_what_is_known() {
        let call = |usage| {
            let response = Some(LlmResponse { usage, ..LlmResponse::default() });
            event(EventBody::LlmCall(LlmCall { response, ..LlmCall::default() }))
        };
        let summary = Summary::new(&[call(None), call(Some(Usage::new(Some(10), Some(2), None)))]);
        assert_eq!((summary.llm_calls, summary.tokens), (2, Usage::new(Some(10), Some(2), None)));
        assert_eq!(summary.cost, None);
        assert_eq!(Summary::new(&[call(None)]).tokens, Usage::default());
    }
}
