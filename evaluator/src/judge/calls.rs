//! The calls of one answer for a reader: which of them are writes, which failed, and which a policy refused.

use std::collections::{HashMap, HashSet};

use counterproof_artifact::{Event, EventBody, RiskLevel, Side, Sides, ToolCall};

use super::outcomes::Outcomes;
use crate::grounding::carried_out;
use crate::load::call_status::{has_failed, observed_refusals, refusal};
use crate::load::case_input::{self, Speaker};
use crate::load::{LoadedAnswer, tool_names};

/// A call, or an action that no call carried out.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MadeCall {
    /// The event of the call.
    pub call: Option<usize>,
    /// The event of its result.
    pub result: Option<usize>,
    /// The action that it carried out.
    pub action: Option<usize>,
    /// True if it changes something: its risk is above low, or not stated and its tool is one that writes.
    pub is_write: bool,
    /// True if it failed.
    pub failed: bool,
    /// Who refused it, or would have: `refused by the rule limit (too many)`.
    pub refusal: Option<String>,
}

/// The calls of both answers in their order, then the actions that no call carried out. An action is a write on both sides if it is
/// one on either: one side may state a lower risk for the same tool.
pub fn made_calls(answers: Sides<Option<&LoadedAnswer>>) -> Sides<Vec<MadeCall>> {
    let mut made = answers.map(|loaded| loaded.map(calls_of).unwrap_or_default());
    let tool_of = |side: Side, call: &MadeCall| {
        let actions = &answers.get(side).as_ref()?.answer.proposed_actions;
        call.action.map(|action| actions[action].tool_name.as_str())
    };
    let written =
        |side: Side| made.get(side).iter().filter(|call| call.is_write).filter_map(move |call| tool_of(side, call));
    let tools: HashSet<&str> = Side::BOTH.into_iter().flat_map(written).collect();
    for side in Side::BOTH {
        for call in made.get_mut(side) {
            call.is_write |= tool_of(side, call).is_some_and(|tool| tools.contains(tool));
        }
    }
    made
}

fn calls_of(loaded: &LoadedAnswer) -> Vec<MadeCall> {
    let answer = &loaded.answer;
    let actions = carried_out(loaded);
    let outcomes = Outcomes::new(loaded);
    let observed: HashMap<usize, String> = observed_refusals(loaded).collect();
    let mut results: HashMap<&str, usize> = HashMap::new();
    for (index, event) in answer.events.iter().enumerate() {
        if let EventBody::ToolResult(result) = &event.body {
            results.entry(&result.call_id).or_insert(index);
        }
    }
    let calls = answer.events.iter().enumerate().filter_map(|(index, event)| {
        let call = event.tool_call()?;
        let (result, action) = (results.get(call.call_id.as_str()).copied(), actions.get(&index).copied());
        let refused = || result.and_then(|result| refusal(loaded, result)).or_else(|| refusal(loaded, index));
        Some(MadeCall {
            call: Some(index),
            result,
            action,
            is_write: match action {
                Some(action) => is_write(answer.proposed_actions[action].risk_level, &call.tool),
                None => is_writing_call(call),
            },
            failed: result.is_some_and(|result| has_failed(loaded, result)),
            refusal: refused().or_else(|| observed.get(&index).map(|call| format!("would be refused: {call}"))),
        })
    });
    let called: HashSet<usize> = actions.values().copied().collect();
    let proposed = answer.proposed_actions.iter().enumerate().filter(|(index, _)| !called.contains(index));
    let proposed = proposed.map(|(index, action)| MadeCall {
        call: None,
        result: None,
        action: Some(index),
        is_write: is_write(action.risk_level, &action.tool_name),
        failed: outcomes.failed(action),
        refusal: None,
    });
    calls.chain(proposed).collect()
}

/// Whether an action changes something. Where its risk is not stated, the words of its tool decide.
pub(crate) fn is_write(risk: RiskLevel, tool: &str) -> bool {
    match risk {
        RiskLevel::High | RiskLevel::Medium => true,
        RiskLevel::Low => false,
        RiskLevel::Unknown => !tool_names::is_reading(tool),
    }
}

/// Whether a call without an action changes something. Most producers state no risk of calls, so the verb of the tool decides.
pub(crate) fn is_writing_call(call: &ToolCall) -> bool {
    match call.risk_level {
        Some(RiskLevel::High | RiskLevel::Medium) => true,
        Some(RiskLevel::Low) => false,
        Some(RiskLevel::Unknown) | None => tool_names::is_writing(&call.tool),
    }
}

/// Who speaks in an event of a conversation, and the words; `None` for any other event. The first is true for the user.
pub fn spoken(event: &Event) -> Option<(bool, &str)> {
    let EventBody::Unknown { fields, .. } = &event.body else { return None };
    Some((case_input::speaker(event)? == Speaker::User, case_input::text_of(fields)?))
}
