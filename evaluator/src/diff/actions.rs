//! Proposed actions of the two sides, matched: what was added, removed, and what changed within a pair. They are a set: in
//! which order an agent proposes them does not matter.

use std::cmp::Ordering;

use counterproof_artifact::ProposedAction;
use serde_json::{Value, json};

use super::align::Row;
use super::assign::Cost;
use super::distance::Leaves;
use super::json::{self, JsonChanges};
use super::order;
use super::rows::{self, Operation};
use super::sets::{self, Sets};
use crate::evidence::{self, FollowedRef};

/// A row of the aligned actions.
#[derive(Debug, Clone, PartialEq)]
pub struct ActionRow {
    /// Which actions stand for each other.
    pub row: Row,
    /// What differs within a pair: type, params, risk; pointers lead into the artifact of their side.
    pub changes: JsonChanges,
    /// What became of the pair's evidence.
    pub evidence: EvidenceChange,
}

/// What became of the evidence for an action.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EvidenceChange {
    /// It leads to the same things, or there is no pair to compare.
    Same,
    /// It leads to other things.
    Changed,
    /// There was some, and none of it is left; or a ref leads nowhere that did lead somewhere, or where all of them did.
    Lost,
}

impl ActionRow {
    /// What happened.
    pub fn operation(&self) -> Operation {
        let unchanged = self.changes.is_empty() && self.evidence == EvidenceChange::Same;
        match self.row {
            Row::Removed(_) => Operation::Removed,
            Row::Added(_) => Operation::Added,
            Row::Both { .. } if unchanged => Operation::Same,
            Row::Both { .. } => Operation::Changed,
        }
    }

    /// True where a pair differs in nothing.
    pub fn is_same(&self) -> bool {
        self.operation() == Operation::Same
    }
}

/// The actions of one side and their evidence.
#[derive(Clone, Copy)]
pub struct Actions<'a> {
    /// The actions.
    pub actions: &'a [ProposedAction],
    /// The refs of each.
    pub evidence: &'a [Vec<FollowedRef>],
}

/// What it costs at least and at most when two actions of one tool stand for each other.
const COST: (Cost, Cost) = (1_000, 15_000);

/// Matches the proposed actions of two sides; the flag is false where the lists were too long to be exact.
pub fn diff(baseline: Actions<'_>, new: Actions<'_>) -> (Vec<ActionRow>, bool) {
    let essences = |actions: &[ProposedAction]| actions.iter().map(essence).collect::<Vec<_>>();
    let (old, other) = (essences(baseline.actions), essences(new.actions));
    let leaves = |actions: &[ProposedAction]| actions.iter().map(|a| Leaves::of(&a.params)).collect::<Vec<_>>();
    let (old_leaves, new_leaves) = (leaves(baseline.actions), leaves(new.actions));
    let keys = |essences: &[Value]| essences.iter().map(json::meaning_hash).collect::<Vec<_>>();
    let order = || order::of_lists(&old, &other, order::of_values);
    // A pair that differs everywhere is still cheaper than one removed and one added, if the tool is the same.
    let pair = |i: usize, j: usize| {
        let (least, most) = COST;
        (baseline.actions[i].tool_name == new.actions[j].tool_name)
            .then(|| least + old_leaves[i].cost(&new_leaves[j], most - least))
    };
    let found =
        sets::pair_off(&Sets { baseline_keys: &keys(&old), new_keys: &keys(&other), pair: &pair, order: &order });
    let turned = order() == Ordering::Greater;
    let read = rows::in_reading_order((old.len(), other.len()), &found.pairs, |_| false, turned);
    let compare = |row: Row| match row {
        Row::Both { baseline: i, new: j } => ActionRow {
            row,
            changes: json::diff(&old[i], &other[j])
                .below(&format!("/proposed_actions/{i}"), &format!("/proposed_actions/{j}")),
            evidence: compare_evidence(&baseline.evidence[i], &new.evidence[j]),
        },
        row => ActionRow { row, changes: JsonChanges::default(), evidence: EvidenceChange::Same },
    };
    (read.into_iter().map(compare).collect(), found.exact)
}

/// What an action says, apart from its id and its evidence.
fn essence(action: &ProposedAction) -> Value {
    let mut tags = action.risk_tags.clone();
    tags.sort_unstable();
    let mut essence = json!({
        "action_type": action.action_type,
        "tool_name": action.tool_name,
        "params": action.params,
        "risk_level": action.risk_level,
        "risk_tags": tags,
    });
    // What this version does not know may mean something all the same.
    for (field, value) in &action.extra {
        essence[field] = value.clone();
    }
    essence
}

fn compare_evidence(baseline: &[FollowedRef], new: &[FollowedRef]) -> EvidenceChange {
    let meanings = |refs: &[FollowedRef]| {
        let mut meanings: Vec<_> = refs.iter().map(|followed| followed.meaning).collect();
        meanings.sort_unstable();
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
    } else if meanings(baseline) == meanings(new) {
        EvidenceChange::Same
    } else {
        EvidenceChange::Changed
    }
}
