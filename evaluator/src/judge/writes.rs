//! The writes of both sides: which of them have the same effect, and which changed places. A write is a proposed action, or a
//! high-risk call without one.

use std::collections::HashMap;

use counterproof_artifact::{Event, EventBody, RiskLevel, Side, Sides};
use serde_json::{Map, Value};

use super::distance::share_changed;
use super::outcomes::{CallKind, Outcomes};
use crate::diff::Differences;
use crate::diff::align::Row;
use crate::diff::json::JsonChanges;
use crate::load::LoadedAnswer;
use crate::messages::target;
use crate::values::stringified::with_texts_parsed;
use crate::values::{key_of, meaning_hash, same_object};

#[derive(Debug, Clone)]
pub(crate) struct Write<'a> {
    pub(crate) tool: &'a str,
    pub(crate) arguments: &'a Map<String, Value>,
    pub(crate) risk: RiskLevel,
    /// True if every call that carried it out failed.
    pub(crate) failed: bool,
    /// The event of the last call that carried it out, and that of its result, if the transcript has them.
    pub(crate) events: Option<(usize, usize)>,
    pub(crate) row: WriteRow,
    pub(crate) is_noise: bool,
}

/// The row of a write among the aligned actions or events. Changes and noise are marked there.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum WriteRow {
    Action(usize),
    Call(usize),
}

impl WriteRow {
    pub(crate) fn changes(self, differences: &Differences) -> &JsonChanges {
        match self {
            WriteRow::Action(row) => &differences.actions[row].changes,
            WriteRow::Call(row) => &differences.events[row].changes,
        }
    }
}

impl Write<'_> {
    /// True for a write of high risk that took effect.
    pub(crate) fn is_risky(&self) -> bool {
        self.risk == RiskLevel::High && !self.failed
    }

    /// True if both write to the same thing, so that the later one decides what holds in the end.
    pub(crate) fn is_on_same_thing(&self, other: &Write<'_>) -> bool {
        target(self.arguments).is_some_and(|it| target(other.arguments) == Some(it))
    }

    /// True if the write was done before the other one began; `None` if they overlap, or if nothing is known of their calls.
    fn is_before(&self, other: &Write<'_>) -> Option<bool> {
        let ((call, result), (other_call, other_result)) = (self.events?, other.events?);
        if result < other_call {
            return Some(true);
        }
        (other_result < call).then_some(false)
    }
}

/// Lists the writes of a side: its actions, then its high-risk calls without an action.
pub(crate) fn of_side<'a>(
    side: Side,
    loaded: &'a LoadedAnswer,
    outcomes: &Outcomes<'_>,
    differences: &Differences,
) -> Vec<Write<'a>> {
    let index = |row: Row| *row.indexes().get(side);
    let events = &loaded.answer.events;
    let call_of = |result: usize| match &events[result].body {
        EventBody::ToolResult(found) => loaded.index.call_position(&found.call_id).unwrap_or(result),
        _ => result,
    };
    let mut first_results = HashMap::new();
    for (index, event) in events.iter().enumerate() {
        if let EventBody::ToolResult(found) = &event.body
            && let Some(call) = loaded.index.call_position(&found.call_id).filter(|call| *call < index)
        {
            first_results.entry(call).or_insert(index);
        }
    }
    let result_of = |call: usize| first_results.get(&call).copied().unwrap_or(call);
    let actions = differences.actions.iter().enumerate().filter_map(|(row, pair)| {
        let action = &loaded.answer.proposed_actions[index(pair.row)?];
        // Not every producer names the action in the call.
        let same_call = || {
            let is_it = |event: &Event| {
                event.tool_call().is_some_and(|it| it.tool == action.tool_name && same_object(&it.args, &action.params))
            };
            events.iter().rposition(is_it).map(|call| (call, result_of(call)))
        };
        Some(Write {
            tool: &action.tool_name,
            arguments: &action.params,
            risk: action.risk_level,
            failed: outcomes.failed(action),
            events: outcomes.results(action).last().map(|result| (call_of(*result), *result)).or_else(same_call),
            row: WriteRow::Action(row),
            is_noise: pair.noise,
        })
    });
    let calls = differences.events.iter().enumerate().filter_map(|(row, pair)| {
        let position = index(pair.row)?;
        let call = events[position].tool_call()?;
        let failed = match outcomes.kind(call) {
            CallKind::HighRisk => false,
            CallKind::FailedHighRisk => true,
            CallKind::Counted | CallKind::Step => return None,
        };
        Some(Write {
            tool: &call.tool,
            arguments: &call.args,
            risk: RiskLevel::High,
            failed,
            events: Some((position, result_of(position))),
            row: WriteRow::Call(row),
            is_noise: pair.noise,
        })
    });
    actions.chain(calls).collect()
}

/// Pairs writes with the same effect: those of one row without a difference, then those with the same arguments, also in
/// another form, because a side may repeat a write that failed, so that the rows pair the wrong ones.
pub(crate) fn equal_pairs(sides: &Sides<Vec<Write<'_>>>, differences: &Differences) -> Vec<Sides<usize>> {
    let rows: HashMap<_, _> = sides.new.iter().enumerate().map(|(index, write)| (write.row, index)).collect();
    let mut pairs = Vec::new();
    let (mut waiting, mut taken) = (Vec::new(), vec![false; sides.new.len()]);
    for (index, write) in sides.baseline.iter().enumerate() {
        match rows.get(&write.row) {
            Some(&new) if share_changed(write.row.changes(differences), || 1) == 0.0 => {
                taken[new] = true;
                pairs.push(Sides::new(index, new));
            }
            _ => waiting.push(index),
        }
    }
    let effect = |write: &Write<'_>| {
        key_of((write.tool, meaning_hash(&with_texts_parsed(&Value::Object(write.arguments.clone())))))
    };
    let mut free: HashMap<u64, Vec<usize>> = HashMap::new();
    for (index, write) in sides.new.iter().enumerate().rev().filter(|(index, _)| !taken[*index]) {
        free.entry(effect(write)).or_default().push(index);
    }
    for index in waiting {
        if let Some(new) = free.get_mut(&effect(&sides.baseline[index])).and_then(Vec::pop) {
            pairs.push(Sides::new(index, new));
        }
    }
    pairs
}

/// The two writes of a pair of [`equal_pairs`].
pub(crate) fn of_pair<'w, 'a>(sides: &'w Sides<Vec<Write<'a>>>, pair: &Sides<usize>) -> Sides<&'w Write<'a>> {
    Sides::from_fn(|side| &sides.get(side)[*pair.get(side)])
}

/// True if one write comes before the other on one side and after it on the other side.
pub(crate) fn changed_places(first: Sides<&Write<'_>>, second: Sides<&Write<'_>>) -> bool {
    let [baseline, new] = Side::BOTH.map(|side| first.get(side).is_before(second.get(side)));
    baseline.zip(new).is_some_and(|(baseline, new)| baseline != new)
}
