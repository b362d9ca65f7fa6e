//! Matching of the proposed actions of both sides. They are a set: their order does not matter.

use std::cmp::Ordering;

use counterproof_artifact::{ProposedAction, Side, Sides};

use super::align::Row;
use super::assign::{self, Matching, Sets};
use super::item::{CostRange, PreparedItem, action_value};
use super::json::JsonChanges;
use super::rows::{self, Operation};
use super::wording;
use crate::load::evidence::{self, FollowedRef};
use crate::rules::{Notes, Renaming, Rules, Subject};
use crate::values::meaning;

/// A row of the aligned actions.
#[derive(Debug, Clone, PartialEq)]
pub struct ActionRow {
    /// The actions of the row.
    pub row: Row,
    /// The differences within a pair. Pointers point into the artifact of their side.
    pub changes: JsonChanges,
    /// How the evidence of the pair changed.
    pub evidence: EvidenceChange,
    /// True if the difference is noise: the baseline differs from itself in the same way.
    pub noise: bool,
}

/// How the evidence for an action changed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EvidenceChange {
    /// It has the same targets, or there is no pair to compare.
    Same,
    /// It has other targets.
    Changed,
    /// No ref resolves and some did before; or a ref does not resolve that did before, or if all did before.
    Lost,
}

impl ActionRow {
    /// Returns how the action changed.
    pub fn operation(&self) -> Operation {
        let unchanged = self.changes.is_empty() && self.evidence == EvidenceChange::Same;
        match self.row {
            Row::Removed(_) => Operation::Removed,
            Row::Added(_) => Operation::Added,
            Row::Both { .. } if unchanged => Operation::Same,
            Row::Both { .. } => Operation::Changed,
        }
    }

    /// True for a pair without differences.
    pub fn is_same(&self) -> bool {
        self.operation() == Operation::Same
    }

    /// True for a pair that differs in its evidence, and in its fields not or only in the way in which they say the same.
    pub(crate) fn has_only_other_evidence(&self) -> bool {
        let is_same = self.changes.is_empty() || self.changes.are_only_reworded();
        matches!(self.row, Row::Both { .. }) && is_same && self.evidence != EvidenceChange::Same
    }

    /// True for a pair with the same evidence whose fields say the same in another way.
    pub(crate) fn is_only_reworded(&self) -> bool {
        self.changes.are_only_reworded() && self.evidence == EvidenceChange::Same
    }

    /// True for a difference that is not noise.
    pub fn counts(&self) -> bool {
        !self.is_same() && !self.noise
    }
}

#[derive(Clone, Copy)]
pub(crate) struct Actions<'a> {
    pub actions: &'a [ProposedAction],
    pub evidence: &'a [Vec<FollowedRef>],
}

/// The cost to pair two actions of one tool.
const COST: CostRange = CostRange { least: 1_000, most: 15_000 };

pub(crate) struct PreparedActions<'a> {
    actions: Sides<Actions<'a>>,
    parts: Sides<Vec<PreparedItem<'a>>>,
}

impl<'a> PreparedActions<'a> {
    /// Prepares the actions, and records which rules apply to each side.
    pub(crate) fn new(actions: Sides<Actions<'a>>, rules: &'a Rules, notes: &mut Sides<Notes>) -> Self {
        let parts = |(side, notes): (Actions<'a>, &mut Notes)| {
            let part = |action: &'a ProposedAction| {
                let subject = Subject { event: None, tool: Some(&action.tool_name) };
                PreparedItem::new(action_value(action), rules.scope(subject), notes)
            };
            side.actions.iter().map(part).collect::<Vec<_>>()
        };
        Self { actions, parts: actions.zip(notes.as_mut()).map(parts) }
    }

    pub(crate) fn pair_off(&self) -> Matching {
        let Sides { baseline, new: other } = self.actions;
        let Sides { baseline: old, new } = &self.parts;
        let keys = |parts: &[PreparedItem<'_>]| parts.iter().map(|part| part.key).collect::<Vec<_>>();
        let order = || meaning::compare_lists(old, new, PreparedItem::order);
        // Pairing two actions of one tool always costs less than a removal plus an addition. Different tools are never paired.
        let pair = |i: usize, j: usize| {
            let same_tool = baseline.actions[i].tool_name == other.actions[j].tool_name;
            same_tool.then(|| old[i].cost(&new[j], COST))
        };
        assign::pair_off(&Sets { baseline_keys: &keys(old), new_keys: &keys(new), pair: &pair, order: &order })
    }

    /// Compares the matched actions. `meaning` returns the target of a ref of new as a hash that is comparable with the
    /// baseline's.
    pub(crate) fn diff(
        &self,
        found: &Matching,
        meaning: impl Fn(&FollowedRef) -> u64,
        renaming: &mut Renaming,
    ) -> Vec<ActionRow> {
        let Sides { baseline, new: other } = self.actions;
        let Sides { baseline: old, new } = &self.parts;
        let order = || meaning::compare_lists(old, new, PreparedItem::order);
        let preferred = if order() == Ordering::Greater { Side::New } else { Side::Baseline };
        let read = rows::in_reading_order(Sides::new(old.len(), new.len()), &found.pairs, |_| false, preferred);
        let compare = |row: Row| match row {
            Row::Both { baseline: i, new: j } => {
                let mut changes = old[i]
                    .changes(&new[j], renaming)
                    .below(&format!("/proposed_actions/{i}"), &format!("/proposed_actions/{j}"));
                wording::mark(&mut changes, Some(&other.actions[j].tool_name));
                ActionRow {
                    row,
                    changes,
                    evidence: compare_evidence(&baseline.evidence[i], &other.evidence[j], &meaning),
                    noise: false,
                }
            }
            row => ActionRow { row, changes: JsonChanges::default(), evidence: EvidenceChange::Same, noise: false },
        };
        read.into_iter().map(compare).collect()
    }
}

fn compare_evidence(
    baseline: &[FollowedRef],
    new: &[FollowedRef],
    meaning: &dyn Fn(&FollowedRef) -> u64,
) -> EvidenceChange {
    let meanings = |refs: &[FollowedRef], meaning: &dyn Fn(&FollowedRef) -> u64| {
        let mut meanings: Vec<_> = refs.iter().map(meaning).collect();
        meanings.sort_unstable();
        // Two refs to one call prove no more than one.
        meanings.dedup();
        meanings
    };
    let (held, holds) = (evidence::resolved_count(baseline), evidence::resolved_count(new));
    let all_held = held > 0 && held == baseline.len();
    let held_there = |astray: &FollowedRef| {
        baseline.iter().any(|before| before.resolved.is_some() && before.target == astray.target)
    };
    let dropped = new.iter().any(|followed| followed.resolved.is_none() && held_there(followed));
    if (held > 0 && holds == 0) || (all_held && holds < new.len()) || dropped {
        EvidenceChange::Lost
    } else if meanings(baseline, &|followed| followed.meaning) == meanings(new, meaning) {
        EvidenceChange::Same
    } else {
        EvidenceChange::Changed
    }
}
