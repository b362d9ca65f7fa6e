//! The outcomes of the calls and actions of an answer, and which of them state high risk.

use std::collections::{HashMap, HashSet};

use counterproof_artifact::evaluation::{Reason, SidePointer};
use counterproof_artifact::{Event, EventBody, ProposedAction, RiskLevel, Sides, ToolCall};

use crate::diff::WithEvidence;
use crate::diff::actions::ActionRow;
use crate::diff::align::Row;
use crate::grounding::{Holder, carried_out};
use crate::load::LoadedAnswer;
use crate::load::call_status::has_failed;
use crate::load::evidence::Resolved;

#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum CallKind {
    /// A high-risk call without an action, which succeeded.
    HighRisk,
    /// A high-risk call without an action, which failed.
    FailedHighRisk,
    /// Counted through its high-risk action.
    Counted,
    Step,
}

/// The outcomes of the calls of an answer.
pub(crate) struct Outcomes<'a> {
    /// By call id: whether the call failed.
    failed: HashMap<&'a str, bool>,
    /// By action: whether all calls that executed it failed.
    actions: HashMap<&'a str, bool>,
    /// By action: the events of those calls' results.
    results: HashMap<&'a str, Vec<usize>>,
    risks: HashMap<&'a str, RiskLevel>,
}

/// How the calls of one action ended.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct CallOutcome {
    /// The number of calls with a result; 0 for an action that was only proposed.
    pub calls: usize,
    /// The number of failed calls.
    pub failed: usize,
}

impl CallOutcome {
    /// Returns whether there were calls and all of them failed.
    pub const fn is_failed(self) -> bool {
        self.calls > 0 && self.calls == self.failed
    }

    /// The number of failed calls as text, if the mark on the cell does not imply it.
    pub fn summary(self) -> Option<String> {
        (self.failed > 0 && self.calls > 1).then(|| format!("{} of {} calls failed", self.failed, self.calls))
    }
}

/// The outcomes of the calls of each proposed action, in the order of the actions.
pub fn call_outcomes(loaded: &LoadedAnswer) -> Vec<CallOutcome> {
    let outcomes = Outcomes::new(loaded);
    let outcome = |action| {
        let results = outcomes.results(action);
        let failed = results.iter().filter(|event| has_failed(loaded, **event)).count();
        CallOutcome { calls: results.len(), failed }
    };
    loaded.answer.proposed_actions.iter().map(outcome).collect()
}

/// True if any tool call failed.
pub fn any_failed(loaded: &LoadedAnswer) -> bool {
    (0..loaded.answer.events.len()).any(|index| has_failed(loaded, index))
}

/// A proposed action that succeeded on baseline and failed on new.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct NewlyFailed {
    /// The index of its row among the aligned actions.
    pub(crate) row: usize,
    /// The event of the baseline's last successful result.
    pub(crate) succeeded: usize,
    /// The events of new's results, all of them errors; never none.
    pub(crate) failed: Vec<usize>,
}

/// Returns the actions whose calls all failed on new but not on baseline, except those that are noise.
pub(crate) fn newly_failed(baseline: &LoadedAnswer, new: &LoadedAnswer, rows: &[ActionRow]) -> Vec<NewlyFailed> {
    // The outcomes are only indexed if a tool failed, which is rare.
    if rows.is_empty() || !any_failed(new) {
        return Vec::new();
    }
    let (before, after) = (Outcomes::new(baseline), Outcomes::new(new));
    let rows = rows.iter().enumerate().filter(|(_, row)| !row.noise);
    let newly = rows.filter_map(|(number, row)| {
        let Row::Both { baseline: old, new: other } = row.row else { return None };
        let (old, other) = (&baseline.answer.proposed_actions[old], &new.answer.proposed_actions[other]);
        // The last success, because a retry replaces what came before it.
        let succeeded = before.results(old).iter().rev().find(|index| !has_failed(baseline, **index))?;
        let failed = after.results(other).to_vec();
        after.failed(other).then_some(NewlyFailed { row: number, succeeded: *succeeded, failed })
    });
    newly.collect()
}

impl<'a> Outcomes<'a> {
    pub(crate) fn new(loaded: &'a LoadedAnswer) -> Self {
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
        let actions = &loaded.answer.proposed_actions;
        // Most producers name the action in each call of its tool, and then no arguments have to be compared.
        let tools: HashSet<&str> = actions.iter().map(|action| action.tool_name.as_str()).collect();
        let is_unnamed = |call: &ToolCall| call.action_id.is_none() && tools.contains(call.tool.as_str());
        let is_compared = events.iter().filter_map(Event::tool_call).any(is_unnamed);
        let carried_out = if is_compared { carried_out(loaded) } else { HashMap::new() };
        let carried_out = |call: usize| carried_out.get(&call).map(|action| actions[*action].action_id.as_str());
        for (index, result) in results {
            let failed = has_failed(loaded, index);
            outcomes.failed.insert(&result.call_id, failed);
            // A result can name the action itself; otherwise its call does, or has the action's tool and arguments.
            let of_call = || {
                let call = loaded.index.call_position(&result.call_id)?;
                let named = events[call].tool_call().and_then(|call| call.action_id.as_deref());
                named.or_else(|| carried_out(call))
            };
            if let Some(action) = result.action_id.as_deref().or_else(of_call) {
                // One successful call is enough: a retry that succeeds executes the action.
                outcomes.actions.entry(action).and_modify(|all| *all &= failed).or_insert(failed);
                outcomes.results.entry(action).or_default().push(index);
            }
        }
        outcomes
    }

    /// True if a call failed; false without a result.
    pub(crate) fn call_failed(&self, call: &ToolCall) -> bool {
        self.failed.get(call.call_id.as_str()) == Some(&true)
    }

    /// True if every call that executed an action failed; false without calls.
    pub(crate) fn failed(&self, action: &ProposedAction) -> bool {
        self.actions.get(action.action_id.as_str()).copied().unwrap_or(false)
    }

    /// The events of the results of the calls that executed an action.
    pub(crate) fn results(&self, action: &ProposedAction) -> &[usize] {
        self.results.get(action.action_id.as_str()).map_or(&[], Vec::as_slice)
    }

    pub(crate) fn kind(&self, call: &ToolCall) -> CallKind {
        // For a call that executes an action, the risk of the action decides: the severity counts the action.
        let of_action = call.action_id.as_deref().and_then(|id| self.risks.get(id)).copied();
        match (of_action, call.risk_level) {
            // The action already counts, so counting the call as well would count it twice.
            (Some(RiskLevel::High), _) => CallKind::Counted,
            (None, Some(RiskLevel::High)) if self.call_failed(call) => CallKind::FailedHighRisk,
            (None, Some(RiskLevel::High)) => CallKind::HighRisk,
            _ => CallKind::Step,
        }
    }
}

/// The actions of an answer that rest on the results of failed calls.
pub(crate) struct FailedEvidence<'a> {
    answer: WithEvidence<'a>,
    outcomes: Outcomes<'a>,
}

impl<'a> FailedEvidence<'a> {
    pub(crate) fn new(answer: WithEvidence<'a>) -> Self {
        Self { answer, outcomes: Outcomes::new(answer.loaded) }
    }

    /// The first failed result among the evidence of an action, if the action took effect and has no other evidence.
    pub(crate) fn of_action(&self, index: usize) -> Option<usize> {
        let action = &self.answer.loaded.answer.proposed_actions[index];
        if self.outcomes.failed(action) {
            return None;
        }
        let mut first = None;
        for followed in self.answer.evidence.get(index)? {
            let Some(resolved) = &followed.resolved else { continue };
            let event = self.failed_event(resolved)?;
            // An earlier try of the same action that was refused is not what the agent relied on.
            if self.tool_of(event) != Some(action.tool_name.as_str()) {
                first = first.or(Some(event));
            }
        }
        first
    }

    pub(crate) fn is_empty(&self) -> bool {
        (0..self.answer.loaded.answer.proposed_actions.len()).all(|action| self.of_action(action).is_none())
    }

    fn failed_event(&self, resolved: &Resolved) -> Option<usize> {
        let Resolved::Event(index) = *resolved else { return None };
        let failed = match &self.answer.loaded.answer.events[index].body {
            EventBody::ToolCall(call) => self.outcomes.call_failed(call),
            _ => has_failed(self.answer.loaded, index),
        };
        failed.then_some(index)
    }

    fn tool_of(&self, event: usize) -> Option<&str> {
        let loaded = self.answer.loaded;
        let call = match &loaded.answer.events[event].body {
            EventBody::ToolResult(result) => loaded.index.call(&loaded.answer.events, &result.call_id),
            _ => loaded.answer.events[event].tool_call(),
        };
        call.map(|call| call.tool.as_str())
    }
}

/// Answers which actions and calls of both sides state high risk.
#[derive(Debug, Clone, Copy)]
pub(crate) struct HighRisk<'a> {
    pub(crate) answers: Sides<&'a LoadedAnswer>,
}

impl HighRisk<'_> {
    /// True if a call or an action of new is, or carries out, a high-risk action.
    pub(crate) fn holds(self, holder: Holder) -> bool {
        match holder {
            Holder::Action(index) => is_high_action(self.answers.new, index),
            Holder::Call(index) => is_high_call(self.answers.new, index),
        }
    }

    /// True if a reason points to a high-risk action or call of either side, or to a result of such an action.
    pub(crate) fn is_of(self, reason: &Reason) -> bool {
        reason.pointers.iter().any(|place| self.is_at(place))
    }

    fn is_at(self, place: &SidePointer) -> bool {
        let loaded = self.answers.get(place.side);
        match place.entry() {
            ("proposed_actions", Some(index)) => is_high_action(loaded, index),
            ("events", Some(index)) => is_high_step(loaded, index),
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
        Some(EventBody::ToolCall(call)) => {
            call.risk_level == Some(RiskLevel::High) && action_risk(loaded, call).is_none()
        }
        Some(EventBody::ToolResult(result)) => {
            loaded.index.call_position(&result.call_id).is_some_and(|call| is_high_call(loaded, call))
        }
        _ => false,
    }
}

fn is_high_call(loaded: &LoadedAnswer, index: usize) -> bool {
    let is_high = |call: &ToolCall| [call.risk_level, action_risk(loaded, call)].contains(&Some(RiskLevel::High));
    loaded.answer.events.get(index).and_then(Event::tool_call).is_some_and(is_high)
}

/// The risk of the action that a call carries out.
fn action_risk(loaded: &LoadedAnswer, call: &ToolCall) -> Option<RiskLevel> {
    let id = call.action_id.as_deref()?;
    loaded.answer.proposed_actions.iter().find(|action| action.action_id == id).map(|action| action.risk_level)
}
