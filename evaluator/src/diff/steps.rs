//! An answer's events as steps to be compared: a call together with its result, or any other event alone.

use std::cmp::Ordering;
use std::collections::{BTreeMap, HashMap, HashSet};

use counterproof_artifact::{EventBody, Side};

use super::assign::Cost;
use super::compared::Compared;
use super::part::{CostRange, Part};
use crate::load::LoadedAnswer;
use crate::rules::{Notes, Rules, Subject};
use crate::values;

/// The cost to pair two calls of one tool.
const CALL: CostRange = CostRange { least: 1_000, most: 12_500 };

/// The cost to pair the results of two such calls. `CALL.most + RESULT.most` is less than a removal plus an addition, so
/// pairing two calls of the same tool always costs less than leaving both out, however different they are.
const RESULT: CostRange = CostRange { least: 500, most: 2_500 };

/// The cost to pair two other events of one type.
const OTHER: CostRange = CostRange { least: 1_000, most: 15_000 };

/// The type of an event, and the tool of a call or a result.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct EventKind<'a> {
    /// The event type.
    pub event: &'a str,
    /// The tool; empty for an event without one.
    pub tool: &'a str,
}

/// How the action of a call is matched.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum ActionLink {
    /// The number of its pair.
    Pair(usize),
    /// Only this side has the action.
    Alone(Side),
}

/// A step, prepared for comparison.
pub(super) struct Step<'a> {
    /// The index of its event, or of its call.
    pub(super) event: usize,
    /// The index of the call's result.
    pub(super) result: Option<usize>,
    /// Steps of one group have no order among themselves.
    pub(super) group: usize,
    /// A hash that is equal for equal steps.
    pub(super) key: u64,
    /// Steps of different kinds are never paired.
    kind: EventKind<'a>,
    /// The action that a call carries out. Calls of different actions are never paired.
    action: Option<ActionLink>,
    /// The compared parts: the event, and the result.
    parts: [Option<Part<'a>>; 2],
}

impl<'a> Step<'a> {
    /// Returns the compared parts: the event, and the result.
    pub(super) const fn parts(&self) -> &[Option<Part<'a>>; 2] {
        &self.parts
    }

    /// Returns the cost of pairing two steps. `None` if they cannot be paired.
    pub(super) fn cost(&self, other: &Step<'_>) -> Option<Cost> {
        let bounds = if self.kind.event == "tool_call" { [CALL, RESULT] } else { [OTHER, RESULT] };
        let parts = self.parts.iter().zip(&other.parts).zip(bounds);
        (self.kind == other.kind && !self.is_of_other_action(other))
            .then(|| parts.map(|((part, other), bounds)| part_cost(part.as_ref(), other.as_ref(), bounds)).sum())
    }

    /// True for two calls of matched actions.
    pub(super) fn is_of_same_action(&self, other: &Step<'_>) -> bool {
        matches!((self.action, other.action), (Some(ActionLink::Pair(a)), Some(ActionLink::Pair(b))) if a == b)
    }

    /// True for two calls of actions that are not matched with each other.
    fn is_of_other_action(&self, other: &Step<'_>) -> bool {
        self.action.is_some() && other.action.is_some() && !self.is_of_same_action(other)
    }

    /// Returns the number of leaves that a comparison reads.
    pub(super) fn size(&self) -> usize {
        self.parts.iter().flatten().map(Part::size).sum()
    }

    /// Compares two steps by content.
    pub(super) fn order(&self, other: &Step<'_>) -> Ordering {
        let views = |part: &Option<Part<'_>>, other: &Option<Part<'_>>| match (part, other) {
            (Some(part), Some(other)) => part.order(other),
            (part, other) => part.is_some().cmp(&other.is_some()),
        };
        self.kind
            .cmp(&other.kind)
            .then(self.group.cmp(&other.group))
            .then_with(|| views(&self.parts[0], &other.parts[0]))
            .then_with(|| views(&self.parts[1], &other.parts[1]))
    }
}

fn part_cost(part: Option<&Part<'_>>, other: Option<&Part<'_>>, range: CostRange) -> Cost {
    match (part, other) {
        (None, None) => 0,
        (Some(part), Some(other)) => part.cost(other, range),
        _ => range.most,
    }
}

/// The start of a step: its event, the result of its call, and the group of unordered steps it belongs to.
struct Start {
    event: usize,
    result: Option<usize>,
    group: usize,
}

/// Lists the starts of an answer's steps in the order of the events.
fn starts(loaded: &LoadedAnswer) -> Vec<Start> {
    let events = &loaded.answer.events;
    let results = results(loaded);
    let taken: HashSet<_> = results.values().copied().collect();
    // A call that starts before the result of an earlier call joins that call's group.
    let (mut group, mut open_until, mut open_group) = (0, 0, 0);
    let mut starts = Vec::with_capacity(events.len());
    for (index, event) in events.iter().enumerate().filter(|(index, _)| !taken.contains(index)) {
        let result = results.get(&index).copied();
        let is_call = matches!(event.body, EventBody::ToolCall(_));
        let overlaps = is_call && index < open_until;
        if !overlaps {
            group += 1;
        }
        if is_call && !overlaps {
            open_group = group;
        }
        if let Some(result) = result {
            open_until = open_until.max(result);
        }
        starts.push(Start { event: index, result, group: if overlaps { open_group } else { group } });
    }
    starts
}

/// Lists the called tools in order. The tools of overlapping calls form one sorted entry.
pub(crate) fn tools_in_order(loaded: &LoadedAnswer) -> Vec<Vec<&str>> {
    let mut groups: BTreeMap<usize, Vec<&str>> = BTreeMap::new();
    for start in starts(loaded) {
        if let EventBody::ToolCall(call) = &loaded.answer.events[start.event].body {
            groups.entry(start.group).or_default().push(&call.tool);
        }
    }
    for tools in groups.values_mut() {
        tools.sort_unstable();
    }
    groups.into_values().collect()
}

/// Prepares the steps of an answer, sorted by group, and records which rules apply.
pub(super) fn prepare<'a>(loaded: &'a LoadedAnswer, rules: &'a Rules, notes: &mut Notes) -> Vec<Step<'a>> {
    let events = &loaded.answer.events;
    let mut steps = Vec::with_capacity(events.len());
    for Start { event: index, result, group } in starts(loaded) {
        let kind = EventKind::new(loaded, index);
        let mut part = |event: usize| {
            // The result has the tool of its call, but an event type of its own.
            let subject = EventKind { event: events[event].kind(), ..kind }.subject();
            Part::new(Compared::Event(loaded, event), rules.scope(subject), notes)
        };
        let parts = [Some(part(index)), result.map(&mut part)];
        let keys = parts.each_ref().map(|part| part.as_ref().map(|part| part.key));
        let key = values::key_of((kind, keys));
        steps.push(Step { event: index, result, group, key, kind, action: None, parts });
    }
    steps.sort_by_key(|step: &Step<'_>| step.group);
    steps
}

/// Links each call to its action, whose pair has the number in `pairs`, and makes equal calls of different actions unequal.
pub(super) fn follow_actions(side: Side, steps: &mut [Step<'_>], loaded: &LoadedAnswer, pairs: &[Option<usize>]) {
    let actions = loaded.answer.proposed_actions.iter().enumerate();
    let by_id: HashMap<&str, usize> = actions.map(|(index, action)| (action.action_id.as_str(), index)).collect();
    for step in steps {
        let EventBody::ToolCall(call) = &loaded.answer.events[step.event].body else { continue };
        let Some(&action) = call.action_id.as_deref().and_then(|id| by_id.get(id)) else { continue };
        let link = pairs[action].map_or(ActionLink::Alone(side), ActionLink::Pair);
        (step.key, step.action) = (values::key_of((step.key, link)), Some(link));
    }
}

/// Maps each call to its first result.
fn results(loaded: &LoadedAnswer) -> HashMap<usize, usize> {
    let mut results = HashMap::new();
    for (index, event) in loaded.answer.events.iter().enumerate() {
        if let EventBody::ToolResult(result) = &event.body
            && let Some(call) = loaded.index.call_position(&result.call_id)
        {
            results.entry(call).or_insert(index);
        }
    }
    results
}

impl<'a> EventKind<'a> {
    /// Returns the kind of the event with this index.
    pub(crate) fn new(loaded: &'a LoadedAnswer, index: usize) -> Self {
        let event = &loaded.answer.events[index];
        let tool = match &event.body {
            EventBody::ToolCall(call) => call.tool.as_str(),
            EventBody::ToolResult(result) => {
                loaded.index.call(&loaded.answer.events, &result.call_id).map_or("", |call| &call.tool)
            }
            _ => "",
        };
        Self { event: event.kind(), tool }
    }

    /// Returns what the rules of comparison select by.
    pub(crate) fn subject(self) -> Subject<'a> {
        Subject { event: Some(self.event), tool: Some(self.tool).filter(|tool| !tool.is_empty()) }
    }
}
