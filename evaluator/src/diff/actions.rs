//! Proposed actions of the two sides, aligned: what was added, removed, and what changed within a pair.

use counterproof_artifact::ProposedAction;
use serde_json::{Value, json};

use super::align::{self, Costs, Row};
use super::distance::Leaves;
use super::json::{self, JsonChanges};
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
    /// True where a pair differs in nothing.
    pub fn is_same(&self) -> bool {
        matches!(self.row, Row::Both { .. }) && self.changes.is_empty() && self.evidence == EvidenceChange::Same
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

/// Aligns the proposed actions of two sides; the flag is false where the lists were too long to be exact.
pub fn diff(baseline: Actions<'_>, new: Actions<'_>) -> (Vec<ActionRow>, bool) {
    let leaves = |actions: &[ProposedAction]| actions.iter().map(|a| Leaves::of(&a.params)).collect::<Vec<_>>();
    let keys = |actions: &[ProposedAction]| actions.iter().map(|a| json::meaning_hash(&essence(a))).collect::<Vec<_>>();
    let (old_leaves, new_leaves) = (leaves(baseline.actions), leaves(new.actions));
    // A pair that differs everywhere is still cheaper than one removed and one added, if the tool is the same.
    let pair = |i: usize, j: usize| {
        (baseline.actions[i].tool_name == new.actions[j].tool_name)
            .then(|| 0.1 + 1.4 * old_leaves[i].distance(&new_leaves[j]))
    };
    let alignment = align::align(&Costs {
        baseline_keys: &keys(baseline.actions),
        new_keys: &keys(new.actions),
        effort: mean(&old_leaves, &new_leaves),
        pair: &pair,
    });
    let rows = alignment.rows.iter().map(|row| compare_row(*row, baseline, new)).collect();
    (rows, alignment.exact)
}

/// How many leaves an element has, on average.
fn mean(baseline: &[Leaves], new: &[Leaves]) -> usize {
    let leaves: usize = baseline.iter().chain(new).map(Leaves::count).sum();
    leaves / (baseline.len() + new.len()).max(1)
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

fn compare_row(row: Row, baseline: Actions<'_>, new: Actions<'_>) -> ActionRow {
    let Row::Both { baseline: i, new: j } = row else {
        return ActionRow { row, changes: JsonChanges::default(), evidence: EvidenceChange::Same };
    };
    let changes = json::diff(&essence(&baseline.actions[i]), &essence(&new.actions[j]))
        .below(&format!("/proposed_actions/{i}"), &format!("/proposed_actions/{j}"));
    ActionRow { row, changes, evidence: compare_evidence(&baseline.evidence[i], &new.evidence[j]) }
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
