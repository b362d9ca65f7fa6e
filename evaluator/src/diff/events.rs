//! Aligns the events of both sides as steps: a call together with its result, or any other event alone.

use std::cell::OnceCell;
use std::cmp::Ordering;
use std::collections::{BTreeMap, HashMap, HashSet};

use counterproof_artifact::{EventBody, Side, Sides};

use super::align::{self, List, Lists, Row};
use super::assign::{self, Matching, Sets};
use super::assign::{Cost, LEFT_OUT};
use super::item::{CostRange, PreparedItem, event_value};
use super::json::JsonChanges;
use super::parting::{self, PartedStep};
use super::rows::{self, Operation};
use crate::load::LoadedAnswer;
use crate::rules::{Notes, Renaming, Rules, Subject};
use crate::values::{self, meaning};

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

    /// True for a pair at the same position that says the same in another way: a value in another form, such as a list that is
    /// written as text, or the summary for the person who takes over.
    pub(crate) fn is_only_reworded(&self) -> bool {
        !self.moved && self.changes.are_only_reworded()
    }

    /// True for a difference that is not noise.
    pub fn counts(&self) -> bool {
        !self.is_same() && !self.noise
    }
}

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

pub(crate) struct Events<'a> {
    steps: Sides<Vec<Step<'a>>>,
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
            steps: sides.zip(notes.as_mut()).map(|(loaded, notes)| prepare(loaded, rules, notes)),
        }
    }

    /// Makes the calls of actions follow the matching of the actions: a call is paired with no call of another action.
    pub(crate) fn follow_actions(&mut self, sides: Sides<&LoadedAnswer>, matching: &Matching) {
        let mut baseline = vec![None; sides.baseline.answer.proposed_actions.len()];
        let mut new = vec![None; sides.new.answer.proposed_actions.len()];
        // The number of the pair becomes a part of the key of both calls, so that only calls of one pair can be equal.
        for (number, (i, j)) in matching.pairs.iter().enumerate() {
            (baseline[*i], new[*j]) = (Some(number), Some(number));
        }
        follow_actions(Side::Baseline, &mut self.steps.baseline, sides.baseline, &baseline);
        follow_actions(Side::New, &mut self.steps.new, sides.new, &new);
    }

    pub(crate) fn align(&self, renaming: &mut Renaming) -> AlignedEvents {
        let Sides { baseline: old, new: other } = &self.steps;
        // Both are expensive, and equal lists need neither.
        let (known_order, known_effort) = (OnceCell::new(), OnceCell::new());
        let order = || *known_order.get_or_init(|| meaning::compare_lists(old, other, Step::order));
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
        // A global alignment cannot pair steps that cross, so a step that only moved is left out on both sides first.
        let moves = moves(old, other, &alignment.pairs, &order);
        let pairs = PairedEvents::new(self, &alignment.pairs, &moves.pairs);

        // Without a cost all steps are equal, which spares the comparison of their contents.
        let is_greater = alignment.cost > 0 && order() == Ordering::Greater;
        let preferred = if is_greater { Side::New } else { Side::Baseline };
        let read = rows::in_reading_order(self.lengths, &pairs.events, |i| pairs.moved[i], preferred);
        let overlapping = self.steps.as_ref().zip(self.lengths).map(|(steps, events)| overlapping(steps, events));
        let row = |row: Row| {
            let Sides { baseline: i, new: j } = row.indexes();
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
    /// Finds where the steps of both sides part for good.
    pub(crate) fn parting(&self, answers: Sides<&LoadedAnswer>) -> Option<Sides<Option<PartedStep>>> {
        parting::find(self.steps.as_ref().map(Vec::as_slice), answers)
    }

    /// Returns the row from which all steps are equal.
    fn recovery(&self, rows: &[EventRow]) -> Option<usize> {
        // The final output does not count: its wording differs between most runs with the same steps, and it is compared
        // separately.
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
fn moves(
    old: &[Step<'_>],
    new: &[Step<'_>],
    pairs: &[(usize, usize)],
    order: &dyn Fn() -> Ordering,
) -> assign::Matching {
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
    let found = assign::pair_off(&Sets {
        baseline_keys: &removed.iter().map(|i| old[*i].key).collect::<Vec<_>>(),
        new_keys: &added.iter().map(|j| new[*j].key).collect::<Vec<_>>(),
        pair: &near,
        order,
    });
    assign::Matching { pairs: found.pairs.into_iter().map(|(i, j)| (removed[i], added[j])).collect(), ..found }
}

struct PairedEvents<'a> {
    events: Vec<(usize, usize)>,
    /// By the index of the baseline's event, the parts to compare.
    parts: Vec<Option<(&'a PreparedItem<'a>, &'a PreparedItem<'a>)>>,
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
    pub event: &'a str,
    /// The tool; empty for an event without one.
    pub tool: &'a str,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum ActionLink {
    Pair(usize),
    /// Only this side has the action.
    Alone(Side),
}

pub(super) struct Step<'a> {
    /// The index of its event, or of its call.
    pub(super) event: usize,
    pub(super) result: Option<usize>,
    /// Steps of one group have no order among themselves.
    pub(super) group: usize,
    pub(super) key: u64,
    /// Steps of different kinds are never paired.
    kind: EventKind<'a>,
    /// The action that a call carries out. Calls of different actions are never paired.
    action: Option<ActionLink>,
    /// The compared parts: the event, and the result.
    parts: [Option<PreparedItem<'a>>; 2],
}

impl<'a> Step<'a> {
    pub(super) const fn parts(&self) -> &[Option<PreparedItem<'a>>; 2] {
        &self.parts
    }

    /// Returns the cost of pairing two steps. `None` if they cannot be paired.
    pub(super) fn cost(&self, other: &Step<'_>) -> Option<Cost> {
        let bounds = if self.kind.event == "tool_call" { [CALL, RESULT] } else { [OTHER, RESULT] };
        let parts = self.parts.iter().zip(&other.parts).zip(bounds);
        (self.is_of_kind(other) && !self.is_of_other_action(other))
            .then(|| parts.map(|((part, other), bounds)| part_cost(part.as_ref(), other.as_ref(), bounds)).sum())
    }

    /// True for two events of one type, and two calls of one tool.
    pub(super) fn is_of_kind(&self, other: &Step<'_>) -> bool {
        self.kind == other.kind
    }

    pub(super) fn is_of_same_action(&self, other: &Step<'_>) -> bool {
        matches!((self.action, other.action), (Some(ActionLink::Pair(a)), Some(ActionLink::Pair(b))) if a == b)
    }

    /// True for two calls of actions that are not matched with each other.
    fn is_of_other_action(&self, other: &Step<'_>) -> bool {
        self.action.is_some() && other.action.is_some() && !self.is_of_same_action(other)
    }

    pub(super) fn size(&self) -> usize {
        self.parts.iter().flatten().map(PreparedItem::size).sum()
    }

    pub(super) fn order(&self, other: &Step<'_>) -> Ordering {
        let views = |part: &Option<PreparedItem<'_>>, other: &Option<PreparedItem<'_>>| match (part, other) {
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

fn part_cost(part: Option<&PreparedItem<'_>>, other: Option<&PreparedItem<'_>>, range: CostRange) -> Cost {
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
        // Overlapping calls have no order, so their recorded order must not count as a difference.
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
            // The result has the tool of its call, but a different event type.
            let subject = EventKind { event: events[event].kind(), ..kind }.subject();
            PreparedItem::new(event_value(loaded, event), rules.scope(subject), notes)
        };
        let parts = [Some(part(index)), result.map(&mut part)];
        let keys = parts.each_ref().map(|part| part.as_ref().map(|part| part.key));
        let key = values::key_of((kind, keys));
        steps.push(Step { event: index, result, group, key, kind, action: None, parts });
    }
    // A call that overlaps an earlier one can follow another event. The sort is stable, so events keep their order within a
    // group.
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
        // The side is a part of the link, because an unmatched action must not equal an unmatched one of the other side.
        let link = pairs[action].map_or(ActionLink::Alone(side), ActionLink::Pair);
        (step.key, step.action) = (values::key_of((step.key, link)), Some(link));
    }
}

fn results(loaded: &LoadedAnswer) -> HashMap<usize, usize> {
    let mut results = HashMap::new();
    for (index, event) in loaded.answer.events.iter().enumerate() {
        if let EventBody::ToolResult(result) = &event.body
            && let Some(call) = loaded.index.call_position(&result.call_id)
        {
            // The first result counts, as in the index: a second one with the same id is a separate step.
            results.entry(call).or_insert(index);
        }
    }
    results
}

impl<'a> EventKind<'a> {
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

    pub(crate) fn subject(self) -> Subject<'a> {
        Subject { event: Some(self.event), tool: Some(self.tool).filter(|tool| !tool.is_empty()) }
    }
}
