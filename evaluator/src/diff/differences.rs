//! All differences of two answers. Later stages judge them.

use std::collections::HashMap;

use counterproof_artifact::Sides;

use super::fast_equal;
use crate::diff::actions::{ActionRow, Actions, PreparedActions};
use crate::diff::align::Row;
use crate::diff::assign::Cost;
use crate::diff::events::{AlignedEvents, EventRow, Events};
use crate::diff::output::{self, OutputChange};
use crate::load::LoadedAnswer;
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
        // With rules the fast path is skipped, because the slow path counts how often each rule applies.
        let equal = if rules.is_empty() { fast_equal::differences(baseline, new) } else { None };
        equal.unwrap_or_else(|| Self::aligned(baseline, new, rules))
    }

    /// Compares two answers without the fast path.
    pub fn aligned(baseline: WithEvidence<'_>, new: WithEvidence<'_>, rules: &Rules) -> Self {
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
        let AlignedEvents { rows, cost, exact, recovery } = events.align(&mut renaming);
        // A ref of new is compared by the call of the baseline that is equal under the rules, so that a difference which the
        // rules ignore in the call does not appear as changed evidence.
        let paired = if rules.is_empty() { HashMap::new() } else { unchanged_calls(&rows) };
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
            exact: matching.exact && exact,
            rules_matched: all.matched,
        }
    }

    /// True if the outputs differ by more than noise.
    pub fn output_counts(&self) -> bool {
        self.output != OutputChange::Same && !self.output_is_noise
    }

    /// True if the answers are equal in meaning.
    pub fn is_empty(&self) -> bool {
        self.actions.iter().all(ActionRow::is_same)
            && self.events.iter().all(EventRow::is_same)
            && self.output == OutputChange::Same
    }
}

/// Maps the index in new of each event that is equal under the rules to the index in the baseline.
fn unchanged_calls(rows: &[EventRow]) -> HashMap<usize, usize> {
    let unchanged = rows.iter().filter(|row| row.changes.is_empty());
    unchanged
        .filter_map(|row| match row.row {
            Row::Both { baseline, new } => Some((new, baseline)),
            Row::Removed(_) | Row::Added(_) => None,
        })
        .collect()
}
