//! The effect that the root cause explains: the change of a case that weighs most.

use std::collections::HashSet;

use counterproof_artifact::evaluation::SidePointer;
use counterproof_artifact::{RiskLevel, Side};

use super::inquiry::Inquiry;
use crate::diff::EventRole;
use crate::diff::align::Row;
use crate::diff::events::EventRow;
use crate::grounding::Holder;
use crate::judge::ReasonCode;
use crate::judge::findings::Found;
use crate::judge::outcomes::{self, Outcomes};

/// The change whose cause is searched.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Effect {
    /// This row of the aligned actions.
    Action(usize),
    /// A call on new with an ungrounded argument.
    UngroundedCall(usize),
    /// The final output.
    Output,
    /// This row of the aligned events.
    Event(usize),
}

/// Chooses the change that weighs most, in this order: an action that differs or that failed on one side only, by risk, and
/// first one that had an effect; an ungrounded value; an action with other evidence; an action in another form, if no step
/// differs in more; the output; the first step that differs.
pub(super) fn choose(inquiry: &Inquiry<'_>) -> Option<Effect> {
    let differences = inquiry.differences;
    let failed_on_one_side = failed_on_one_side(inquiry);
    let actions = differences.actions.iter().enumerate();
    let actions = actions.filter(|(number, row)| row.counts() || failed_on_one_side.contains(number));
    let (formal, actions): (Vec<_>, Vec<_>) =
        actions.partition(|(number, row)| row.changes.are_form_only() && !failed_on_one_side.contains(number));
    let (changed, resting): (Vec<_>, Vec<_>) = actions.into_iter().partition(|(number, row)| {
        !matches!(row.row, Row::Both { .. }) || !row.changes.is_empty() || failed_on_one_side.contains(number)
    });
    // `max_by_key` returns the last maximum; reversed, that is the first of the actions with the highest risk.
    let riskiest =
        changed.into_iter().rev().max_by_key(|(_, row)| (risk(inquiry, row.row), had_effect(inquiry, row.row)));
    let invented = || {
        let is_value = |found: &&Found| found.code != ReasonCode::RepeatedCall && !found.baseline_has_value;
        let found = inquiry.findings.fresh().find(is_value)?;
        Some(match found.holder {
            Holder::Call(index) => Effect::UngroundedCall(index),
            Holder::Action(index) => Effect::Action(inquiry.provenance.counterparts.action(Side::New, index).row),
        })
    };
    let formal = || formal.first().filter(|_| first_step(inquiry).is_none()).map(|(row, _)| Effect::Action(*row));
    let output = || differences.output_counts().then_some(Effect::Output);
    riskiest
        .map(|(row, _)| Effect::Action(row))
        .or_else(invented)
        .or_else(|| resting.first().map(|(row, _)| Effect::Action(*row)))
        .or_else(formal)
        .or_else(output)
        .or_else(|| first_event(inquiry).map(Effect::Event))
}

/// False if all calls of the action failed, on each side that has it.
fn had_effect(inquiry: &Inquiry<'_>, row: Row) -> bool {
    let failed = |side: Side, index: usize| {
        let loaded = inquiry.side(side).loaded;
        outcomes::any_failed(loaded) && Outcomes::new(loaded).failed(&loaded.answer.proposed_actions[index])
    };
    match row {
        Row::Both { baseline, new } => !failed(Side::Baseline, baseline) || !failed(Side::New, new),
        Row::Removed(index) => !failed(Side::Baseline, index),
        Row::Added(index) => !failed(Side::New, index),
    }
}

/// The rows of actions that failed on exactly one side: there, every call that executed them failed.
pub(super) fn failed_on_one_side(inquiry: &Inquiry<'_>) -> HashSet<usize> {
    let (old, new) = (inquiry.baseline.loaded, inquiry.new.loaded);
    if !outcomes::any_failed(old) && !outcomes::any_failed(new) {
        return HashSet::new();
    }
    let (before, after) = (Outcomes::new(old), Outcomes::new(new));
    let (old, new) = (&old.answer.proposed_actions, &new.answer.proposed_actions);
    let rows = inquiry.differences.actions.iter().enumerate();
    let failed_on_one_side = rows.filter(|(_, row)| match row.row {
        Row::Both { baseline, new: index } => !row.noise && before.failed(&old[baseline]) != after.failed(&new[index]),
        Row::Removed(_) | Row::Added(_) => false,
    });
    failed_on_one_side.map(|(number, _)| number).collect()
}

fn risk(inquiry: &Inquiry<'_>, row: Row) -> u8 {
    let of = |side: Side, index: usize| match inquiry.side(side).loaded.answer.proposed_actions[index].risk_level {
        RiskLevel::High => 2,
        // An unstated risk counts as medium, as everywhere.
        RiskLevel::Medium | RiskLevel::Unknown => 1,
        RiskLevel::Low => 0,
    };
    match row {
        Row::Both { baseline, new } => of(Side::Baseline, baseline).max(of(Side::New, new)),
        Row::Removed(index) => of(Side::Baseline, index),
        Row::Added(index) => of(Side::New, index),
    }
}

impl Effect {
    /// The pointer to the effect, on the new side if possible.
    pub(super) fn pointer(self, inquiry: &Inquiry<'_>) -> SidePointer {
        let at = |list: &str, row: Row| match row {
            Row::Both { new: index, .. } | Row::Added(index) => (Side::New, format!("/{list}/{index}")),
            Row::Removed(index) => (Side::Baseline, format!("/{list}/{index}")),
        };
        let (side, pointer) = match self {
            Effect::Action(row) => at("proposed_actions", inquiry.differences.actions[row].row),
            Effect::Event(row) => at("events", inquiry.differences.events[row].row),
            Effect::UngroundedCall(index) => (Side::New, format!("/events/{index}")),
            Effect::Output => (Side::New, "/final_output/content".to_owned()),
        };
        SidePointer { side, pointer }
    }

    /// The calls and actions whose values are traced back, by side.
    pub(super) fn holders(self, inquiry: &Inquiry<'_>) -> Vec<(Side, Holder)> {
        let both = |row: Row, holder: fn(usize) -> Holder| match row {
            Row::Both { baseline, new } => vec![(Side::Baseline, holder(baseline)), (Side::New, holder(new))],
            Row::Removed(index) => vec![(Side::Baseline, holder(index))],
            Row::Added(index) => vec![(Side::New, holder(index))],
        };
        match self {
            Effect::Action(row) => both(inquiry.differences.actions[row].row, Holder::Action),
            Effect::UngroundedCall(index) => {
                let other = inquiry
                    .provenance
                    .counterparts
                    .event(Side::New, index)
                    .other
                    .map(|it| (Side::Baseline, Holder::Call(it)));
                other.into_iter().chain([(Side::New, Holder::Call(index))]).collect()
            }
            Effect::Output | Effect::Event(_) => Vec::new(),
        }
    }

    /// Whether a value of it is ungrounded.
    pub(super) fn is_ungrounded(self, inquiry: &Inquiry<'_>) -> bool {
        self.holders(inquiry).iter().any(|(side, holder)| *side == Side::New && inquiry.findings.is_ungrounded(*holder))
    }
}

/// Whether any step other than the final output differs.
pub(super) fn any_step_differs(inquiry: &Inquiry<'_>) -> bool {
    first_step(inquiry).is_some()
}

/// The first step that differs in more than its position or the form of its values.
pub(super) fn first_step(inquiry: &Inquiry<'_>) -> Option<usize> {
    position(inquiry, |row, role| {
        let is_moved = row.moved && row.changes.is_empty();
        role == EventRole::Step && !is_moved && !row.differs_in_form_only()
    })
}

/// The first row that differs: a step if possible, else what the agent said, else what the user said.
fn first_event(inquiry: &Inquiry<'_>) -> Option<usize> {
    let first = |wanted: EventRole| position(inquiry, |_, role| role == wanted);
    first_step(inquiry)
        .or_else(|| first(EventRole::Step))
        .or_else(|| first(EventRole::Wording))
        .or_else(|| first(EventRole::Input))
}

fn position(inquiry: &Inquiry<'_>, is_wanted: impl Fn(&EventRow, EventRole) -> bool) -> Option<usize> {
    let answers = inquiry.answers();
    inquiry.differences.events.iter().position(|row| row.counts() && is_wanted(row, row.role(answers)))
}
