//! Everything in which two answers differ, before anything is said about it.

use crate::diff::actions::{self, ActionRow, Actions};
use crate::diff::assign::Cost;
use crate::diff::events::{self, AlignedEvents, EventRow};
use crate::diff::output::{self, OutputChange};
use crate::evidence::FollowedRef;
use crate::load::LoadedAnswer;

/// Everything in which two answers differ.
#[derive(Debug, Clone, PartialEq)]
pub struct Differences {
    /// The proposed actions, aligned.
    pub actions: Vec<ActionRow>,
    /// The events, aligned.
    pub events: Vec<EventRow>,
    /// The final outputs.
    pub output: OutputChange,
    /// What the alignment of the events costs, in ten-thousandths of one step left out.
    pub cost: Cost,
    /// The row of the events from which on everything is the same to the end, where something differs before it.
    pub recovery: Option<usize>,
    /// False where a list was too long for an alignment that is surely the cheapest.
    pub exact: bool,
}

/// An answer and where its evidence leads.
#[derive(Debug, Clone, Copy)]
pub struct WithEvidence<'a> {
    /// The answer.
    pub loaded: &'a LoadedAnswer,
    /// The refs of each proposed action.
    pub evidence: &'a [Vec<FollowedRef>],
}

impl Differences {
    /// Compares two answers.
    pub fn between(baseline: WithEvidence<'_>, new: WithEvidence<'_>) -> Self {
        let (old, other) = (&baseline.loaded.answer, &new.loaded.answer);
        let (actions, exact_actions) = actions::diff(
            Actions { actions: &old.proposed_actions, evidence: baseline.evidence },
            Actions { actions: &other.proposed_actions, evidence: new.evidence },
        );
        let AlignedEvents { rows, cost, exact, recovery } = events::diff(baseline.loaded, new.loaded);
        let output = output::diff(&old.final_output, &other.final_output);
        Self { actions, events: rows, output, cost, recovery, exact: exact_actions && exact }
    }

    /// True where the answers mean the same.
    pub fn is_empty(&self) -> bool {
        self.actions.iter().all(ActionRow::is_same)
            && self.events.iter().all(EventRow::is_same)
            && self.output == OutputChange::Same
    }
}
