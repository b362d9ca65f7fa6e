//! The first difference of two answers that is not noise. Its message is built in the `messages` stage.

use counterproof_artifact::{EventBody, Side, Sides};

use super::actions::ActionRow;
use super::align::Row;
use super::differences::Differences;
use super::events::EventRow;
use super::output::OutputChange;
use crate::load::LoadedAnswer;
use crate::load::turn::{self, Speaker};

/// The first difference of two answers.
#[derive(Debug, Clone, Copy)]
pub(crate) enum FirstDifference<'d> {
    /// An event.
    Event(&'d EventRow),
    /// A proposed action; all steps are equal.
    Action(&'d ActionRow),
    /// The final output; all steps and actions are equal.
    Output(&'d OutputChange),
}

/// What an event is to the comparison.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum EventRole {
    /// A call, a result, a retrieval, or another step of the agent.
    Step,
    /// What the agent said: a turn, or the final output. Its wording differs between any two runs.
    Wording,
    /// What the user said.
    Input,
}

impl EventRow {
    /// Returns what the event of this row is to the comparison.
    pub(crate) fn role(&self, answers: Sides<&LoadedAnswer>) -> EventRole {
        let (side, index) = match self.row {
            Row::Both { new: index, .. } | Row::Added(index) => (Side::New, index),
            Row::Removed(index) => (Side::Baseline, index),
        };
        let event = &answers.get(side).answer.events[index];
        match (&event.body, turn::speaker(event)) {
            (_, Some(Speaker::User)) => EventRole::Input,
            (_, Some(Speaker::Assistant)) | (EventBody::FinalOutput(_), None) => EventRole::Wording,
            (_, None) => EventRole::Step,
        }
    }

    /// True for a pair whose values all have the same content in another form, such as a list written as text.
    pub(crate) fn differs_in_form_only(&self) -> bool {
        !self.moved && self.changes.are_form_only()
    }
}

impl Differences {
    /// Returns the first difference that is not noise: the first step, else the first action, else what the agent said, else
    /// what the user said. A step whose values only have another form comes after all other steps and actions.
    pub(crate) fn first(&self, answers: Sides<&LoadedAnswer>) -> Option<FirstDifference<'_>> {
        let differing =
            |role: EventRole| self.events.iter().filter(move |row| row.counts() && row.role(answers) == role);
        let step = |form_only: bool| {
            differing(EventRole::Step).find(|row| row.differs_in_form_only() == form_only).map(FirstDifference::Event)
        };
        let action = self.actions.iter().find(|row| row.counts() && !row.changes.are_form_only());
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
