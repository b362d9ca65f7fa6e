//! The first difference of two answers that is not noise. Its message is built in the `messages` stage.

use super::actions::ActionRow;
use super::differences::Differences;
use super::events::EventRow;
use super::output::OutputChange;

/// The first difference of two answers, in the order in which a reader meets them: events, actions, output.
#[derive(Debug, Clone, Copy)]
pub(crate) enum FirstDifference<'d> {
    /// An event.
    Event(&'d EventRow),
    /// A proposed action; all events are equal.
    Action(&'d ActionRow),
    /// The final output; all events and actions are equal.
    Output(&'d OutputChange),
}

impl Differences {
    /// Returns the first difference that is not noise.
    pub(crate) fn first(&self) -> Option<FirstDifference<'_>> {
        let event = self.events.iter().find(|row| row.counts()).map(FirstDifference::Event);
        event
            .or_else(|| self.actions.iter().find(|row| row.counts()).map(FirstDifference::Action))
            .or_else(|| self.output_counts().then_some(FirstDifference::Output(&self.output)))
    }
}
