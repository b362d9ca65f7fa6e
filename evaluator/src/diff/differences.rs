//! All differences of two answers, the first one that is not noise, and the counterpart of each element.

use std::collections::HashMap;

use counterproof_artifact::evaluation::{Alignment, Operations};
use counterproof_artifact::{Event, EventBody, Side, Sides};

use super::actions::{ActionRow, Actions, PreparedActions};
use super::align::Row;
use super::assign::{Cost, LEFT_OUT};
use super::events::{AlignedEvents, EventRow, Events};
use super::output::{self, OutputChange};
use super::parting::PartedStep;
use super::rows::{Operation, row_pointers};
use super::wording;
use crate::load::LoadedAnswer;
use crate::load::case_input::{self, Speaker};
use crate::load::evidence::{self, FollowedRef};
use crate::rules::{Notes, Renaming, Rules};

/// All differences of two answers.
#[derive(Debug, Clone, PartialEq)]
pub struct Differences {
    /// The proposed actions, aligned.
    pub actions: Vec<ActionRow>,
    /// The events, aligned.
    pub events: Vec<EventRow>,
    /// The final outputs.
    pub output: OutputChange,
    /// True if the difference of the outputs is noise: the baseline differs from itself in the same way.
    pub output_is_noise: bool,
    /// The cost of the alignment of the events, in ten-thousandths of one step left out.
    pub cost: Cost,
    /// The row of the events from which all steps are equal to the end, if there is a difference before it.
    pub recovery: Option<usize>,
    /// The first step of each side from which the two sides go separate ways to the end; `None` if they stay or come together.
    pub parting: Option<Sides<Option<PartedStep>>>,
    /// False if a list was too long for the cheapest alignment.
    pub exact: bool,
    /// For each rule of comparison, how often it was applied to both answers. Trailing rules that never applied are omitted.
    pub rules_matched: Vec<u64>,
}

/// An answer and the targets of its evidence.
#[derive(Debug, Clone, Copy)]
pub struct WithEvidence<'a> {
    /// The answer.
    pub loaded: &'a LoadedAnswer,
    /// The resolved refs of each proposed action.
    pub evidence: &'a [Vec<FollowedRef>],
}

impl Differences {
    /// Compares two answers under the rules of comparison.
    pub fn between(baseline: WithEvidence<'_>, new: WithEvidence<'_>, rules: &Rules) -> Self {
        let (old, other) = (&baseline.loaded.answer, &new.loaded.answer);
        let sides = Sides { baseline, new };
        let mut notes = Sides::<Notes>::default();
        let mut events = Events::new(sides.map(|side| side.loaded), rules, &mut notes);
        let actions =
            sides.map(|side| Actions { actions: &side.loaded.answer.proposed_actions, evidence: side.evidence });
        let actions = PreparedActions::new(actions, rules, &mut notes);
        let output_scope = output::scope(rules);
        output::note(&old.final_output, &output_scope, &mut notes.baseline);
        output::note(&other.final_output, &output_scope, &mut notes.new);
        // Ids are renamed in reading order: events, actions, output.
        let mut renaming = Renaming::new(&notes.baseline.ids, &notes.new.ids);
        // The actions are matched first, and their calls follow them: otherwise an action and its call could be paired with
        // different ones, and the reasons would contradict each other.
        let matching = actions.pair_off();
        events.follow_actions(sides.map(|side| side.loaded), &matching);
        let AlignedEvents { mut rows, cost, exact, recovery } = events.align(&mut renaming);
        mark_rewording(&mut rows, &old.events);
        // Equal steps cost nothing and part nowhere, which spares reading their words.
        let parting = if cost > 0 { events.parting(sides.map(|side| side.loaded)) } else { None };
        // A ref of new is compared by the call of the baseline that is equal under the rules or says the same in another way, so
        // that such a difference in the call does not appear as changed evidence.
        let has_others = !rules.is_empty() || rows.iter().any(EventRow::is_only_reworded);
        let paired = if has_others { unchanged_calls(&rows) } else { HashMap::new() };
        let meaning = |followed: &FollowedRef| {
            let counterpart = evidence::call_of(new.loaded, followed).and_then(|call| paired.get(&call));
            counterpart.map_or(followed.meaning, |call| evidence::event_meaning(baseline.loaded, *call))
        };
        let actions = actions.diff(&matching, meaning, &mut renaming);
        let output = output::diff(&old.final_output, &other.final_output, &output_scope, &mut renaming);
        let Sides { baseline: mut all, new: of_new } = notes;
        all.add(&of_new.matched);
        Self {
            actions,
            events: rows,
            output,
            output_is_noise: false,
            cost,
            recovery,
            parting,
            exact: matching.exact && exact,
            rules_matched: all.matched,
        }
    }

    /// True if the outputs differ by more than noise.
    pub fn output_counts(&self) -> bool {
        self.output != OutputChange::Same && !self.output_is_noise
    }

    /// True if a step that both sides took brought other results, or the user said something else.
    pub(crate) fn has_other_results(&self, answers: Sides<&LoadedAnswer>) -> bool {
        let is_received = |row: &EventRow| match (row.row, row.role(answers)) {
            (Row::Both { new, .. }, EventRole::Step) => {
                answers.new.answer.events[new].tool_call().is_none() && !row.changes.is_empty()
            }
            (_, EventRole::Input) => !row.is_same(),
            _ => false,
        };
        self.events.iter().any(is_received)
    }

    /// True if the answers are equal in meaning.
    pub fn is_empty(&self) -> bool {
        self.actions.iter().all(ActionRow::is_same)
            && self.events.iter().all(EventRow::is_same)
            && self.output == OutputChange::Same
    }
}

/// Marks the pairs of events that say the same in another way.
fn mark_rewording(rows: &mut [EventRow], baseline: &[Event]) {
    for row in rows {
        if let Row::Both { baseline: index, .. } = row.row {
            let tool = baseline[index].tool_call().map(|call| call.tool.as_str());
            wording::mark(&mut row.changes, tool);
        }
    }
}

/// Maps the index in new of each event that is equal under the rules, or says the same in another way, to the index in the
/// baseline.
fn unchanged_calls(rows: &[EventRow]) -> HashMap<usize, usize> {
    let unchanged = rows.iter().filter(|row| row.changes.is_empty() || row.changes.are_only_reworded());
    unchanged
        .filter_map(|row| match row.row {
            Row::Both { baseline, new } => Some((new, baseline)),
            Row::Removed(_) | Row::Added(_) => None,
        })
        .collect()
}

#[derive(Debug, Clone, Copy)]
pub(crate) enum FirstDifference<'d> {
    Event(&'d EventRow),
    /// A proposed action; all steps are equal.
    Action(&'d ActionRow),
    /// The final output; all steps and actions are equal.
    Output(&'d OutputChange),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum EventRole {
    /// A call, a result, a retrieval, or another step of the agent.
    Step,
    /// What the agent said: a turn, or the final output. Its wording differs between any two runs.
    Wording,
    Input,
}

impl EventRow {
    /// Returns what the event of this row is to the comparison.
    pub(crate) fn role(&self, answers: Sides<&LoadedAnswer>) -> EventRole {
        let (side, index) = self.row.named_by();
        let event = &answers.get(side).answer.events[index];
        match (&event.body, case_input::speaker(event)) {
            (_, Some(Speaker::User)) => EventRole::Input,
            (_, Some(Speaker::Assistant)) | (EventBody::FinalOutput(_), None) => EventRole::Wording,
            (_, None) => EventRole::Step,
        }
    }
}

impl Differences {
    /// Returns the first difference that is not noise: the first step, else the first action, else what the agent said, else
    /// what the user said.
    pub(crate) fn first(&self, answers: Sides<&LoadedAnswer>) -> Option<FirstDifference<'_>> {
        // A step that says the same in another way comes after all other steps and actions.
        let differing =
            |role: EventRole| self.events.iter().filter(move |row| row.counts() && row.role(answers) == role);
        let step = |reworded: bool| {
            differing(EventRole::Step).find(|row| row.is_only_reworded() == reworded).map(FirstDifference::Event)
        };
        let action = self.actions.iter().find(|row| row.counts() && !row.changes.are_only_reworded());
        let output = || self.output_counts().then_some(FirstDifference::Output(&self.output));
        step(false)
            .or_else(|| action.map(FirstDifference::Action))
            .or_else(|| step(true))
            .or_else(|| self.actions.iter().find(|row| row.counts()).map(FirstDifference::Action))
            .or_else(|| differing(EventRole::Wording).next().map(FirstDifference::Event))
            .or_else(output)
            .or_else(|| differing(EventRole::Input).next().map(FirstDifference::Event))
    }
}

/// A call or a proposed action, which holds the arguments for a tool.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum Holder {
    Call(usize),
    Action(usize),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Counterpart {
    pub(crate) other: Option<usize>,
    /// True if the pair differs by more than noise. An unpaired element differs.
    pub(crate) differs: bool,
    pub(crate) row: usize,
}

/// The counterparts of the events and actions of both sides.
#[derive(Debug, Clone, Default)]
pub(crate) struct Counterparts {
    events: Sides<Vec<Counterpart>>,
    actions: Sides<Vec<Counterpart>>,
}

impl Counterparts {
    pub(crate) fn new(differences: &Differences) -> Self {
        Self {
            events: counterparts(differences.events.iter().map(|row| (row.row, row.counts()))),
            actions: counterparts(differences.actions.iter().map(|row| (row.row, row.counts()))),
        }
    }

    pub(crate) fn event(&self, side: Side, index: usize) -> Counterpart {
        self.events.get(side).get(index).copied().unwrap_or_default()
    }

    pub(crate) fn action(&self, side: Side, index: usize) -> Counterpart {
        self.actions.get(side).get(index).copied().unwrap_or_default()
    }

    /// Returns the paired call or action of the other side.
    pub(crate) fn other(&self, side: Side, holder: Holder) -> Option<Holder> {
        match holder {
            Holder::Call(index) => self.event(side, index).other.map(Holder::Call),
            Holder::Action(index) => self.action(side, index).other.map(Holder::Action),
        }
    }
}

fn counterparts(rows: impl Iterator<Item = (Row, bool)>) -> Sides<Vec<Counterpart>> {
    let mut sides = Sides::new(Vec::new(), Vec::new());
    let mut put = |side: Side, index: usize, counterpart: Counterpart| {
        let list: &mut Vec<Counterpart> = sides.get_mut(side);
        if list.len() <= index {
            list.resize(index + 1, Counterpart::default());
        }
        list[index] = counterpart;
    };
    for (row, (pair, differs)) in rows.enumerate() {
        for (side, index) in pair.elements() {
            put(side, index, Counterpart { other: *pair.indexes().get(side.other()), differs, row });
        }
    }
    sides
}

pub(crate) fn summary(differences: &Differences) -> Alignment {
    let mut operations = Operations::default();
    for row in &differences.events {
        let count = match row.operation() {
            Operation::Same => &mut operations.same,
            Operation::Changed => &mut operations.changed,
            Operation::Moved => &mut operations.moved,
            Operation::Added => &mut operations.added,
            Operation::Removed => &mut operations.removed,
        };
        *count += 1;
    }
    let recovery = differences.recovery.and_then(|row| differences.events.get(row));
    Alignment {
        cost: in_elements(differences.cost),
        bounded: !differences.exact,
        operations,
        recovery: recovery.map(|row| row_pointers("/events", row.row)).unwrap_or_default(),
    }
}

fn in_elements(cost: Cost) -> f64 {
    cost as f64 / LEFT_OUT as f64
}
