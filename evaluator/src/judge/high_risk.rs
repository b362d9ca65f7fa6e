//! The high-risk actions of an answer, and the high-risk calls that belong to no action.

use counterproof_artifact::evaluation::{Reason, SidePointer};
use counterproof_artifact::{EventBody, RiskLevel, Sides, ToolCall};

use crate::grounding::Holder;
use crate::load::LoadedAnswer;

/// Answers which actions and calls of both sides state high risk.
#[derive(Debug, Clone, Copy)]
pub(crate) struct HighRisk<'a> {
    pub(crate) answers: Sides<&'a LoadedAnswer>,
}

impl HighRisk<'_> {
    /// True where a call or an action of new is, or carries out, a high-risk action.
    pub(crate) fn holds(self, holder: Holder) -> bool {
        match holder {
            Holder::Action(index) => is_high_action(self.answers.new, index),
            Holder::Call(index) => is_high_call(self.answers.new, index),
        }
    }

    /// True where a reason points to a high-risk action or call of either side, or to a result of such an action.
    pub(crate) fn is_of(self, reason: &Reason) -> bool {
        reason.pointers.iter().any(|place| self.is_at(place))
    }

    fn is_at(self, place: &SidePointer) -> bool {
        let loaded = self.answers.get(place.side);
        let mut segments = place.pointer.split('/').skip(1);
        let (list, index) = (segments.next(), segments.next().and_then(|index| index.parse::<usize>().ok()));
        match (list, index) {
            (Some("proposed_actions"), Some(index)) => is_high_action(loaded, index),
            (Some("events"), Some(index)) => is_high_step(loaded, index),
            _ => false,
        }
    }
}

fn is_high_action(loaded: &LoadedAnswer, index: usize) -> bool {
    loaded.answer.proposed_actions.get(index).is_some_and(|action| action.risk_level == RiskLevel::High)
}

/// A call of high risk without an action, since the action represents the others; or the result of a high-risk call.
fn is_high_step(loaded: &LoadedAnswer, index: usize) -> bool {
    match loaded.answer.events.get(index).map(|event| &event.body) {
        Some(EventBody::ToolCall(call)) => is_high_without_action(loaded, call),
        Some(EventBody::ToolResult(result)) => {
            loaded.index.call_position(&result.call_id).is_some_and(|call| is_high_call(loaded, call))
        }
        _ => false,
    }
}

fn is_high_call(loaded: &LoadedAnswer, index: usize) -> bool {
    call_at(loaded, index).is_some_and(|call| call.risk_level == Some(RiskLevel::High) || of_high_action(loaded, call))
}

fn call_at(loaded: &LoadedAnswer, index: usize) -> Option<&ToolCall> {
    match &loaded.answer.events.get(index)?.body {
        EventBody::ToolCall(call) => Some(call),
        _ => None,
    }
}

fn of_high_action(loaded: &LoadedAnswer, call: &ToolCall) -> bool {
    action_risk(loaded, call) == Some(RiskLevel::High)
}

fn is_high_without_action(loaded: &LoadedAnswer, call: &ToolCall) -> bool {
    call.risk_level == Some(RiskLevel::High) && action_risk(loaded, call).is_none()
}

/// The risk of the action that a call carries out.
fn action_risk(loaded: &LoadedAnswer, call: &ToolCall) -> Option<RiskLevel> {
    let id = call.action_id.as_deref()?;
    loaded.answer.proposed_actions.iter().find(|action| action.action_id == id).map(|action| action.risk_level)
}
