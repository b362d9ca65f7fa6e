//! How far the steps and the actions of two answers are apart, from 0 (equal) to 1 (nothing in common).

use counterproof_artifact::{EventBody, ProposedAction, RiskLevel, Sides};
use serde_json::Value;

use super::outcomes::{CallKind, Outcomes};
use crate::diff::Differences;
use crate::diff::json::{self, JsonChanges, LocatedValue};
use crate::grounding;
use crate::load::LoadedAnswer;
use crate::values::meaning::{leaves_below, leaves_of};

/// The distance between a step and the same step at another position.
const MOVED: f64 = 0.25;

/// The cost of a pair that differs everywhere; an unpaired element costs 1.
const PAIR: f64 = 1.5;

#[derive(Debug, Default, Clone, Copy)]
pub(super) struct Sum {
    cost: f64,
    elements: usize,
}

impl Sum {
    /// The distance, from 0 (equal) to 1 (nothing in common).
    pub(super) fn distance(self) -> f64 {
        if self.elements == 0 { 0.0 } else { (self.cost / self.elements as f64).min(1.0) }
    }

    /// Adds a row. A pair costs by its distance, which is not computed for other rows.
    fn add<T>(&mut self, row: Sides<Option<T>>, distance: impl FnOnce() -> f64) {
        self.elements += usize::from(row.baseline.is_some()) + usize::from(row.new.is_some());
        self.cost += match (row.baseline, row.new) {
            (Some(_), Some(_)) => PAIR * distance(),
            (None, None) => 0.0,
            (Some(_), None) | (None, Some(_)) => 1.0,
        };
    }
}

/// The distances between the steps, and between the actions of lower or unstated risk, of both sides. High-risk actions and
/// calls are counted one by one instead.
#[derive(Debug, Default)]
pub(super) struct Distances {
    pub(super) actions: Sum,
    pub(super) steps: Sum,
}

impl Distances {
    pub(super) fn new(
        answers: Sides<&LoadedAnswer>,
        outcomes: Sides<&Outcomes<'_>>,
        differences: &Differences,
    ) -> Self {
        let mut distances = Self::default();
        distances.add_actions(answers, outcomes, differences);
        distances.add_steps(answers, outcomes, differences);
        distances
    }

    fn add_actions(
        &mut self,
        answers: Sides<&LoadedAnswer>,
        outcomes: Sides<&Outcomes<'_>>,
        differences: &Differences,
    ) {
        let actions = answers.map(|loaded| &loaded.answer.proposed_actions);
        for row in &differences.actions {
            let Sides { baseline: i, new: j } = row.row.indexes();
            let (i, j) = (i.map(|i| &actions.baseline[i]), j.map(|j| &actions.new[j]));
            let is_high = |action: Option<&ProposedAction>| action.is_some_and(|it| it.risk_level == RiskLevel::High);
            if is_high(i) || is_high(j) {
                continue;
            }
            // An action whose calls all failed had no effect.
            let i = i.filter(|action| !outcomes.baseline.failed(action));
            let j = j.filter(|action| !outcomes.new.failed(action));
            self.actions.add(Sides::new(i, j), || {
                let params = |action: Option<&ProposedAction>| action.map_or(0, |action| leaves_below(&action.params));
                share_changed(&row.changes, || params(i) + params(j))
            });
        }
    }

    fn add_steps(&mut self, answers: Sides<&LoadedAnswer>, outcomes: Sides<&Outcomes<'_>>, differences: &Differences) {
        for row in &differences.events {
            let Sides { baseline: i, new: j } = row.row.indexes();
            let i = i.map(|i| &answers.baseline.answer.events[i].body);
            let j = j.map(|j| &answers.new.answer.events[j].body);
            let leaves = step_leaves(i) + step_leaves(j);
            let moved = if row.moved { MOVED } else { 0.0 };
            // Calls that count with the writes drop out of the row. The rest may then be unpaired.
            let row_of_steps = Sides::new(step(i, outcomes.baseline), step(j, outcomes.new));
            self.steps.add(row_of_steps, || share_changed(&row.changes, || leaves).max(moved));
        }
    }
}

/// Returns a retrieval, or a call that does not count with the writes.
fn step<'a>(body: Option<&'a EventBody>, outcomes: &Outcomes<'_>) -> Option<&'a EventBody> {
    body.filter(|body| match body {
        EventBody::ToolCall(call) => outcomes.kind(call) == CallKind::Step,
        EventBody::Retrieval(_) => true,
        _ => false,
    })
}

fn step_leaves(body: Option<&EventBody>) -> usize {
    match body {
        Some(EventBody::ToolCall(call)) => leaves_below(&call.args),
        Some(EventBody::Retrieval(found)) => 1 + found.doc_ids.len(),
        _ => 0,
    }
}

/// Returns the share of all leaves that differ. Prose counts by its numbers, and another form of the same content not
/// at all.
pub(super) fn share_changed(changes: &JsonChanges, leaves: impl FnOnce() -> usize) -> f64 {
    if changes.count() == 0 {
        return 0.0;
    }
    let below = |place: &Option<LocatedValue>| place.as_ref().map_or(0, |place| leaves_of(&place.value)) as f64;
    let listed: f64 = changes
        .iter()
        .filter(|change| !change.is_form_only())
        .map(|change| {
            let differ = match (&change.baseline, &change.new) {
                // In a reordered array, only the elements that moved relative to the others differ.
                (
                    Some(LocatedValue { value: Value::Array(old), .. }),
                    Some(LocatedValue { value: Value::Array(new), .. }),
                ) => {
                    let moved = json::out_of_order(old, new);
                    return moved.baseline.iter().chain(&moved.new).map(|value| leaves_of(value)).sum::<usize>() as f64;
                }
                (Some(old), Some(new)) => grounding::distance_of_values(&old.value, &new.value),
                _ => 1.0,
            };
            differ * (below(&change.baseline) + below(&change.new))
        })
        .sum();
    // The values of changes that are not listed are unknown; each counts as one leaf per side.
    let all = listed + 2.0 * changes.omitted as f64;
    (all / leaves().max(1) as f64).min(1.0)
}
