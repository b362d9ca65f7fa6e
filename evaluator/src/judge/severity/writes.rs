//! Writes that differ. A write is a high-risk action, or a high-risk call without an action, that did not fail.
//!
//! A write counts in full however many others there are: nine equal refunds do not make up for a tenth that went wrong.

use std::collections::HashMap;

use counterproof_artifact::{EventBody, RiskLevel, Side, Sides};
use serde_json::{Map, Value};

use super::distances::{indexes, share_changed};
use crate::diff::Differences;
use crate::diff::align::Row;
use crate::diff::json::JsonChanges;
use crate::judge::outcomes::{CallKind, Outcomes};
use crate::load::LoadedAnswer;
use crate::values::distance::leaves_below;
use crate::values::written::unwritten;
use crate::values::{key_of, meaning_hash};

/// The share of a write that differs in the smallest way. Its effect is another one, however few values differ.
const LEAST: f64 = 0.6;

/// The share of a write that only one side has.
const MOST: f64 = 0.8;

/// A write of one side.
struct Write<'a> {
    tool: &'a str,
    arguments: &'a Map<String, Value>,
    /// The event at which it was carried out, where the transcript has it.
    position: Option<usize>,
    /// The row among the aligned actions or events. Noise is marked there.
    row: usize,
    is_call: bool,
    is_noise: bool,
}

/// Returns the share of each write that differs by more than noise.
pub(super) fn differing_writes(
    answers: Sides<&LoadedAnswer>,
    outcomes: Sides<&Outcomes<'_>>,
    differences: &Differences,
) -> Vec<f64> {
    let sides = Sides::from_fn(|side| writes(side, answers.get(side), outcomes.get(side), differences));
    let pairs = equal_pairs(&sides, differences);
    let mut shares = vec![LEAST; inverted(&sides, &pairs)];
    let is_paired = Sides::from_fn(|side| {
        let mut paired = vec![false; sides.get(side).len()];
        for pair in &pairs {
            paired[*pair.get(side)] = true;
        }
        paired
    });
    let rest = Sides::from_fn(|side| {
        let unpaired = sides.get(side).iter().zip(is_paired.get(side)).filter(|(_, paired)| !**paired);
        unpaired.map(|(write, _)| write).collect::<Vec<_>>()
    });
    let by_row: HashMap<_, _> = rest.new.iter().map(|write| ((write.is_call, write.row), *write)).collect();
    let mut paired_rows = Vec::new();
    for write in &rest.baseline {
        let row = (write.is_call, write.row);
        if let Some(other) = by_row.get(&row) {
            paired_rows.push(row);
            let changes = changes(differences, write);
            let leaves = || leaves_below(write.arguments) + leaves_below(other.arguments);
            let distance = share_changed(changes, leaves);
            if distance > 0.0 && !write.is_noise {
                shares.push(LEAST + (MOST - LEAST) * distance);
            }
        }
    }
    let alone = rest.baseline.iter().chain(&rest.new).filter(|write| !write.is_noise);
    shares.extend(alone.filter(|write| !paired_rows.contains(&(write.is_call, write.row))).map(|_| MOST));
    shares
}

/// Lists the writes of a side that did not fail: high-risk actions, and high-risk calls without one.
fn writes<'a>(
    side: Side,
    loaded: &'a LoadedAnswer,
    outcomes: &Outcomes<'_>,
    differences: &Differences,
) -> Vec<Write<'a>> {
    let index = |row: Row| {
        let (baseline, new) = indexes(row);
        if side == Side::Baseline { baseline } else { new }
    };
    let actions = differences.actions.iter().enumerate().filter_map(|(row, pair)| {
        let action = &loaded.answer.proposed_actions[index(pair.row)?];
        let is_write = action.risk_level == RiskLevel::High && !outcomes.failed(action);
        is_write.then(|| Write {
            tool: &action.tool_name,
            arguments: &action.params,
            position: outcomes.results(action).last().copied(),
            row,
            is_call: false,
            is_noise: pair.noise,
        })
    });
    let calls = differences.events.iter().enumerate().filter_map(|(row, pair)| {
        let position = index(pair.row)?;
        let EventBody::ToolCall(call) = &loaded.answer.events[position].body else { return None };
        (outcomes.kind(call) == CallKind::HighRisk).then(|| Write {
            tool: &call.tool,
            arguments: &call.args,
            position: Some(position),
            row,
            is_call: true,
            is_noise: pair.noise,
        })
    });
    actions.chain(calls).collect()
}

/// Pairs writes with the same effect: those of one row without a difference, then those with the same arguments, also in
/// another form. The second matters where a side repeats a write that failed, so that the rows pair the wrong ones.
fn equal_pairs(sides: &Sides<Vec<Write<'_>>>, differences: &Differences) -> Vec<Sides<usize>> {
    let rows: HashMap<_, _> =
        sides.new.iter().enumerate().map(|(index, write)| ((write.is_call, write.row), index)).collect();
    let mut pairs = Vec::new();
    let (mut waiting, mut taken) = (Vec::new(), vec![false; sides.new.len()]);
    for (index, write) in sides.baseline.iter().enumerate() {
        match rows.get(&(write.is_call, write.row)) {
            Some(&new) if share_changed(changes(differences, write), || 1) == 0.0 => {
                taken[new] = true;
                pairs.push(Sides::new(index, new));
            }
            _ => waiting.push(index),
        }
    }
    let effect =
        |write: &Write<'_>| key_of((write.tool, meaning_hash(&unwritten(&Value::Object(write.arguments.clone())))));
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

/// Counts the writes that come before another one on the same thing on one side and after it on the other. The last of such
/// writes decides what holds in the end.
fn inverted(sides: &Sides<Vec<Write<'_>>>, pairs: &[Sides<usize>]) -> usize {
    let order = |first: &Sides<usize>, second: &Sides<usize>, side: Side| {
        let position = |pair: &Sides<usize>| sides.get(side)[*pair.get(side)].position;
        Some(position(first)?.cmp(&position(second)?))
    };
    let is_inverted = |first: &Sides<usize>, second: &Sides<usize>| {
        let orders = Side::BOTH.map(|side| order(first, second, side));
        orders[0].is_some() && orders[1].is_some() && orders[0] != orders[1]
    };
    let writes_to_same = |first: &Sides<usize>, second: &Sides<usize>| {
        let (first, second) = (&sides.baseline[first.baseline], &sides.baseline[second.baseline]);
        target(first.arguments).is_some_and(|it| target(second.arguments) == Some(it))
    };
    let with_earlier = |(index, pair): (usize, &Sides<usize>)| {
        pairs[..index].iter().any(|earlier| is_inverted(earlier, pair) && writes_to_same(earlier, pair))
    };
    pairs.iter().enumerate().filter(|(index, pair)| with_earlier((*index, pair))).count()
}

/// What a write writes to: its first argument that is an id.
fn target(arguments: &Map<String, Value>) -> Option<&Value> {
    let is_id = |name: &str| name == "id" || name.ends_with("_id") || name.ends_with("Id");
    arguments.iter().find(|(name, value)| is_id(name) && !value.is_null()).map(|(_, value)| value)
}

fn changes<'d>(differences: &'d Differences, write: &Write<'_>) -> &'d JsonChanges {
    if write.is_call { &differences.events[write.row].changes } else { &differences.actions[write.row].changes }
}
