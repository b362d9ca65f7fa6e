//! Alignment of the events of both sides: equal, changed, moved, added and removed steps.

use std::cell::OnceCell;
use std::cmp::Ordering;

use counterproof_artifact::{EventBody, Side, Sides};

use super::align::{self, List, Lists, Row};
use super::assign::{Cost, LEFT_OUT};
use super::json::JsonChanges;
use super::part::Part;
use super::rows::{self, Operation};
use super::sets::{self, Matching, Sets};
use super::steps::{self, Step};
use crate::load::LoadedAnswer;
use crate::rules::{Notes, Renaming, Rules};
use crate::values::order;

/// A row of the aligned events.
#[derive(Debug, Clone, PartialEq)]
pub struct EventRow {
    /// The events of the row.
    pub row: Row,
    /// The differences within a pair. Pointers point into the artifact of their side.
    pub changes: JsonChanges,
    /// True if the pair moved relative to the other steps.
    pub moved: bool,
    /// True if the event belongs to a call that overlaps another call in time. Overlapping calls have no order.
    pub concurrent: bool,
    /// True if the difference is noise: the baseline differs from itself in the same way.
    pub noise: bool,
}

impl EventRow {
    /// Returns how the event changed.
    pub fn operation(&self) -> Operation {
        match self.row {
            Row::Removed(_) => Operation::Removed,
            Row::Added(_) => Operation::Added,
            Row::Both { .. } if self.moved => Operation::Moved,
            Row::Both { .. } if self.changes.is_empty() => Operation::Same,
            Row::Both { .. } => Operation::Changed,
        }
    }

    /// True for a pair that neither changed nor moved.
    pub fn is_same(&self) -> bool {
        self.operation() == Operation::Same
    }

    /// True for a difference that is not noise.
    pub fn counts(&self) -> bool {
        !self.is_same() && !self.noise
    }
}

/// All events of two answers.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct AlignedEvents {
    /// The rows, in reading order.
    pub rows: Vec<EventRow>,
    /// The cost of the alignment, in ten-thousandths of one step left out. A moved step costs as much as a removed and an
    /// added one, because it was found among these.
    pub cost: Cost,
    /// False if the lists were too long for the cheapest alignment.
    pub exact: bool,
    /// The row from which all steps are equal to the end, if there is a difference before it.
    pub recovery: Option<usize>,
}

/// The events of both sides, prepared for comparison.
pub(crate) struct Events<'a> {
    steps: Sides<Vec<Step<'a>>>,
    /// The number of events.
    lengths: Sides<usize>,
    /// The indexes of the final outputs among the events, in ascending order.
    outputs: Sides<Vec<usize>>,
}

impl<'a> Events<'a> {
    /// Prepares the events, and records which rules apply to each side.
    pub(crate) fn new(sides: Sides<&'a LoadedAnswer>, rules: &'a Rules, notes: &mut Sides<Notes>) -> Self {
        Self {
            lengths: sides.map(|loaded| loaded.answer.events.len()),
            outputs: sides.map(final_outputs),
            steps: sides.zip(notes.as_mut()).map(|(loaded, notes)| steps::prepare(loaded, rules, notes)),
        }
    }

    /// Makes the calls of actions follow the matching of the actions: a call is paired with no call of another action.
    pub(crate) fn follow_actions(&mut self, sides: Sides<&LoadedAnswer>, matching: &Matching) {
        let mut baseline = vec![None; sides.baseline.answer.proposed_actions.len()];
        let mut new = vec![None; sides.new.answer.proposed_actions.len()];
        for (number, (i, j)) in matching.pairs.iter().enumerate() {
            (baseline[*i], new[*j]) = (Some(number), Some(number));
        }
        steps::follow_actions(Side::Baseline, &mut self.steps.baseline, sides.baseline, &baseline);
        steps::follow_actions(Side::New, &mut self.steps.new, sides.new, &new);
    }

    /// Aligns them.
    pub(crate) fn align(&self, renaming: &mut Renaming) -> AlignedEvents {
        let Sides { baseline: old, new: other } = &self.steps;
        // Both are expensive, and equal lists need neither.
        let (known_order, known_effort) = (OnceCell::new(), OnceCell::new());
        let order = || *known_order.get_or_init(|| order::of_lists(old, other, Step::order));
        let leaves = || old.iter().chain(other).map(Step::size).sum::<usize>();
        let effort = || *known_effort.get_or_init(|| leaves() / (old.len() + other.len()).max(1));
        let keys = |steps: &[Step<'_>]| steps.iter().map(|step| step.key).collect::<Vec<_>>();
        let groups = |steps: &[Step<'_>]| steps.iter().map(|step| step.group).collect::<Vec<_>>();
        let alignment = align::align(&Lists {
            baseline: List { keys: &keys(old), groups: &groups(old) },
            new: List { keys: &keys(other), groups: &groups(other) },
            effort: &effort,
            pair: &|i, j| old[i].cost(&other[j]),
            order: &order,
        });
        let moves = moves(old, other, &alignment.pairs, &order);
        let pairs = PairedEvents::new(self, &alignment.pairs, &moves.pairs);

        // Without a cost all steps are equal, which spares the comparison of their contents.
        let is_greater = alignment.cost > 0 && order() == Ordering::Greater;
        let preferred = if is_greater { Side::New } else { Side::Baseline };
        let read = rows::in_reading_order(self.lengths, &pairs.events, |i| pairs.moved[i], preferred);
        let overlapping = self.steps.as_ref().zip(self.lengths).map(|(steps, events)| overlapping(steps, events));
        let row = |row: Row| {
            let (i, j) = match row {
                Row::Both { baseline, new } => (Some(baseline), Some(new)),
                Row::Removed(index) => (Some(index), None),
                Row::Added(index) => (None, Some(index)),
            };
            EventRow {
                row,
                changes: i.zip(j).map(|(i, j)| pairs.changes(i, j, renaming)).unwrap_or_default(),
                moved: i.is_some_and(|i| pairs.moved[i]),
                concurrent: i.is_some_and(|i| overlapping.baseline[i]) || j.is_some_and(|j| overlapping.new[j]),
                noise: false,
            }
        };
        let rows: Vec<_> = read.into_iter().map(row).collect();
        let recovery = self.recovery(&rows);
        AlignedEvents { cost: alignment.cost, exact: alignment.exact && moves.exact, recovery, rows }
    }
}

impl Events<'_> {
    /// Returns the row from which all steps are equal. The final output does not count: its wording differs between most
    /// runs with the same steps, and it is compared separately.
    fn recovery(&self, rows: &[EventRow]) -> Option<usize> {
        let is_step = |row: &EventRow| match row.row {
            Row::Both { baseline, .. } | Row::Removed(baseline) => {
                self.outputs.baseline.binary_search(&baseline).is_err()
            }
            Row::Added(new) => self.outputs.new.binary_search(&new).is_err(),
        };
        let steps: Vec<_> = rows.iter().enumerate().filter(|(_, row)| is_step(row)).collect();
        let operations: Vec<_> = steps.iter().map(|(_, row)| (row.row, row.operation())).collect();
        rows::recovery(&operations).map(|step| steps[step].0)
    }
}

/// Finds moved steps: steps that the alignment left out on both sides and that are equal or nearly equal.
fn moves(old: &[Step<'_>], new: &[Step<'_>], pairs: &[(usize, usize)], order: &dyn Fn() -> Ordering) -> sets::Matching {
    let (mut paired, mut new_paired) = (vec![false; old.len()], vec![false; new.len()]);
    for (i, j) in pairs {
        (paired[*i], new_paired[*j]) = (true, true);
    }
    let left = |paired: &[bool]| (0..paired.len()).filter(|index| !paired[*index]).collect::<Vec<_>>();
    let (removed, added) = (left(&paired), left(&new_paired));
    // The alignment pairs steps up to twice this cost. Moves need a stricter bound, because no order supports the pair.
    // The calls of matched actions need none: the actions support the pair.
    let near = |i: usize, j: usize| {
        let (step, other) = (&old[removed[i]], &new[added[j]]);
        step.cost(other).filter(|cost| *cost < LEFT_OUT || step.is_of_same_action(other))
    };
    let found = sets::pair_off(&Sets {
        baseline_keys: &removed.iter().map(|i| old[*i].key).collect::<Vec<_>>(),
        new_keys: &added.iter().map(|j| new[*j].key).collect::<Vec<_>>(),
        pair: &near,
        order,
    });
    sets::Matching { pairs: found.pairs.into_iter().map(|(i, j)| (removed[i], added[j])).collect(), ..found }
}

/// The paired steps, event by event.
struct PairedEvents<'a> {
    events: Vec<(usize, usize)>,
    /// By the index of the baseline's event, the parts to compare.
    parts: Vec<Option<(&'a Part<'a>, &'a Part<'a>)>>,
    /// By the index of the baseline's event, whether its pair moved.
    moved: Vec<bool>,
}

impl<'a> PairedEvents<'a> {
    fn new(events: &'a Events<'a>, pairs: &[(usize, usize)], moves: &[(usize, usize)]) -> Self {
        let length = events.lengths.baseline;
        let mut all = Self { events: Vec::new(), parts: vec![None; length], moved: vec![false; length] };
        let pairs = pairs.iter().map(|pair| (false, pair));
        for (moved, (i, j)) in pairs.chain(moves.iter().map(|pair| (true, pair))) {
            let (step, other) = (&events.steps.baseline[*i], &events.steps.new[*j]);
            let indexes = [(Some(step.event), Some(other.event)), (step.result, other.result)];
            for ((i, j), parts) in indexes.into_iter().zip(step.parts().iter().zip(other.parts())) {
                if let (Some(i), Some(j), (Some(part), Some(other))) = (i, j, parts) {
                    all.events.push((i, j));
                    all.parts[i] = Some((part, other));
                    all.moved[i] = moved;
                }
            }
        }
        all
    }

    fn changes(&self, i: usize, j: usize, renaming: &mut Renaming) -> JsonChanges {
        let Some((old, new)) = self.parts[i] else { return JsonChanges::default() };
        let changes = old.changes(new, renaming);
        if changes.is_empty() {
            return changes;
        }
        changes.below(&format!("/events/{i}"), &format!("/events/{j}"))
    }
}

fn final_outputs(loaded: &LoadedAnswer) -> Vec<usize> {
    let events = loaded.answer.events.iter().enumerate();
    let outputs = events.filter(|(_, event)| matches!(event.body, EventBody::FinalOutput(_)));
    outputs.map(|(index, _)| index).collect()
}

/// Marks the events of calls that overlap other calls.
fn overlapping(steps: &[Step<'_>], events: usize) -> Vec<bool> {
    let mut overlapping = vec![false; events];
    for group in steps.chunk_by(|a, b| a.group == b.group).filter(|group| group.len() > 1) {
        for index in group.iter().flat_map(|step| [Some(step.event), step.result]).flatten() {
            overlapping[index] = true;
        }
    }
    overlapping
}
