//! How the calls of an answer ended, and with them the actions that they carried out.

use std::collections::HashMap;

use counterproof_artifact::{Event, EventBody, ProposedAction, RiskLevel, ToolCall, ToolStatus};

use crate::load::LoadedAnswer;

/// What kind of call it is.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum CallKind {
    /// Of high risk, without an action that stands for it, and not failed.
    Deed,
    /// It carried out an action of high risk, which is counted; or it was one and failed.
    Counted,
    /// Any other.
    Step,
}

/// How the calls of an answer ended.
pub(crate) struct Outcomes<'a> {
    /// By call: whether it failed.
    failed: HashMap<&'a str, bool>,
    /// By action: whether all calls that carried it out failed.
    actions: HashMap<&'a str, bool>,
    /// By action: the events of those calls' results.
    results: HashMap<&'a str, Vec<usize>>,
    risks: HashMap<&'a str, RiskLevel>,
}

/// True where any tool failed.
pub(crate) fn any_failed(loaded: &LoadedAnswer) -> bool {
    let failed =
        |event: &Event| matches!(&event.body, EventBody::ToolResult(result) if result.status == ToolStatus::Error);
    loaded.answer.events.iter().any(failed)
}

impl<'a> Outcomes<'a> {
    /// How the calls of an answer ended.
    pub(crate) fn of(loaded: &'a LoadedAnswer) -> Self {
        let events = &loaded.answer.events;
        let results = events.iter().enumerate().filter_map(|(index, event)| match &event.body {
            EventBody::ToolResult(result) => Some((index, result)),
            _ => None,
        });
        let mut outcomes = Self {
            failed: HashMap::new(),
            actions: HashMap::new(),
            results: HashMap::new(),
            risks: loaded.answer.proposed_actions.iter().map(|it| (it.action_id.as_str(), it.risk_level)).collect(),
        };
        for (index, result) in results {
            let failed = result.status == ToolStatus::Error;
            outcomes.failed.insert(&result.call_id, failed);
            let call = loaded.index.call(events, &result.call_id).and_then(|call| call.action_id.as_deref());
            if let Some(action) = result.action_id.as_deref().or(call) {
                outcomes.actions.entry(action).and_modify(|all| *all &= failed).or_insert(failed);
                outcomes.results.entry(action).or_default().push(index);
            }
        }
        outcomes
    }

    /// True where a call failed.
    pub(crate) fn call_failed(&self, call: &ToolCall) -> bool {
        self.failed.get(call.call_id.as_str()) == Some(&true)
    }

    /// True where every call that carried an action out failed.
    pub(crate) fn failed(&self, action: &ProposedAction) -> bool {
        self.actions.get(action.action_id.as_str()).copied().unwrap_or(false)
    }

    /// The results of the calls that carried an action out.
    pub(crate) fn results(&self, action: &ProposedAction) -> &[usize] {
        self.results.get(action.action_id.as_str()).map_or(&[], Vec::as_slice)
    }

    /// What kind of call it is.
    pub(crate) fn kind(&self, call: &ToolCall) -> CallKind {
        let of_action = call.action_id.as_deref().and_then(|id| self.risks.get(id)).copied();
        match (of_action, call.risk_level) {
            (Some(RiskLevel::High), _) => CallKind::Counted,
            (None, Some(RiskLevel::High)) if self.call_failed(call) => CallKind::Counted,
            (None, Some(RiskLevel::High)) => CallKind::Deed,
            _ => CallKind::Step,
        }
    }
}
