//! Evidence from failed calls: a ref to the result of a call that failed proves nothing.

use counterproof_artifact::EventBody;
use counterproof_artifact::evaluation::Reason;

use super::ReasonCode;
use super::outcomes::{self, Outcomes};
use super::verdict::Compared;
use crate::diff::WithEvidence;
use crate::diff::align::Row;
use crate::diff::pointers::row_pointers;
use crate::load::evidence::{FollowedRef, Resolved};
use crate::load::failed_result::has_failed;
use crate::messages::step_name;
use crate::values::text;

/// Reasons for actions of new whose evidence is a failed result, where the baseline's action has no such evidence.
pub(super) fn reasons(compared: Compared<'_>) -> Vec<Reason> {
    if !outcomes::any_failed(compared.new.loaded) {
        return Vec::new();
    }
    let (before, after) = (Failures::new(compared.baseline), Failures::new(compared.new));
    let actions = &compared.new.loaded.answer.proposed_actions;
    let found = compared.differences.actions.iter().filter_map(|row| {
        let (new, is_new) = match row.row {
            Row::Both { baseline, new } => (new, before.of_action(baseline).is_none()),
            // An added action has no counterpart that shows what it rested on, so it needs other evidence only if all failed.
            // Any action of the baseline with such evidence excuses it.
            Row::Added(new) => (new, after.all_failed(new) && !before.any()),
            Row::Removed(_) => return None,
        };
        let event = after.of_action(new).filter(|_| is_new)?;
        let loaded = compared.new.loaded;
        let message = format!(
            "{}: its evidence is the {}, which failed",
            text::one_line(&actions[new].tool_name, 60),
            step_name(&loaded.answer.events[event], loaded)
        );
        let pointers = row_pointers("/proposed_actions", row.row).into_iter().map(|mut place| {
            place.pointer.push_str("/evidence_refs");
            place
        });
        Some(ReasonCode::EvidenceFailed.reason(message, pointers.collect()))
    });
    found.collect()
}

/// The failed calls of an answer, and the evidence of its actions.
struct Failures<'a> {
    answer: WithEvidence<'a>,
    outcomes: Outcomes<'a>,
}

impl<'a> Failures<'a> {
    fn new(answer: WithEvidence<'a>) -> Self {
        Self { answer, outcomes: Outcomes::new(answer.loaded) }
    }

    /// The event of the first failed result among the evidence of an action.
    fn of_action(&self, action: usize) -> Option<usize> {
        self.answer.evidence.get(action)?.iter().find_map(|followed| self.failed_event(followed))
    }

    fn all_failed(&self, action: usize) -> bool {
        let refs = self.answer.evidence.get(action).map(Vec::as_slice).unwrap_or_default();
        refs.iter().all(|followed| followed.resolved.is_none() || self.failed_event(followed).is_some())
    }

    fn any(&self) -> bool {
        (0..self.answer.evidence.len()).any(|action| self.of_action(action).is_some())
    }

    fn failed_event(&self, followed: &FollowedRef) -> Option<usize> {
        let Some(Resolved::Event(index)) = followed.resolved else { return None };
        let event = &self.answer.loaded.answer.events[index];
        let failed = match &event.body {
            EventBody::ToolCall(call) => self.outcomes.call_failed(call),
            _ => has_failed(self.answer.loaded, index),
        };
        failed.then_some(index)
    }
}
