//! Values of the new side without an origin, compared with the same arguments of the baseline.

use std::collections::{HashMap, HashSet};

use counterproof_artifact::Side;

use super::{Holder, Leaf, Origin, Origins};
use crate::diff::counterparts::Counterparts;
use crate::values::meaning_hash;

/// A value of the new side without an origin.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Suspect<'a> {
    /// The value.
    pub leaf: Leaf<'a>,
    /// The baseline's value for the same argument, from the paired call or action if that has the argument.
    pub baseline: Option<Leaf<'a>>,
    /// True if a value of the baseline for the same argument has no origin either.
    pub in_baseline: bool,
    /// True if the baseline has the same value: it was not made up, but its origin is gone.
    pub baseline_has_value: bool,
}

/// Whether the transcript of the new side contains everything that its agent received.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Transcript {
    /// It is declared complete, so a value without an origin was made up.
    Complete,
    /// Events may be missing, so only the comparison with the baseline is evidence.
    Partial,
}

/// The baseline's values for one argument, combined.
#[derive(Debug, Clone, Copy)]
struct ArgumentSummary<'a> {
    first: Leaf<'a>,
    all_grounded: bool,
    any_from_nowhere: bool,
}

/// Finds suspects: values of new without an origin whose counterparts in the baseline are all grounded. If new's transcript
/// is declared complete, all values without an origin are suspects. A value that a call shares with its action is reported
/// only for the action.
pub(crate) fn suspects<'a>(
    baseline: &Origins<'a>,
    new: &Origins<'a>,
    counterparts: &Counterparts,
    transcript: Transcript,
) -> Vec<Suspect<'a>> {
    let nowhere: Vec<_> = new.leaves.iter().filter(|leaf| leaf.origin == Origin::Nowhere).collect();
    if nowhere.is_empty() {
        return Vec::new();
    }
    let (mut by_argument, mut by_holder, mut kept) = (HashMap::new(), HashMap::new(), HashSet::new());
    for leaf in baseline.leaves.iter().filter(|leaf| leaf.origin != Origin::Exempt) {
        note(by_argument.entry(leaf.argument), leaf);
        note(by_holder.entry((leaf.holder, leaf.argument)), leaf);
        kept.insert((leaf.argument, meaning_hash(leaf.value)));
    }
    let of_actions: HashSet<_> = nowhere
        .iter()
        .filter(|leaf| matches!(leaf.holder, Holder::Action(_)))
        .map(|leaf| (leaf.holder, leaf.argument, meaning_hash(leaf.value)))
        .collect();
    // A call and the action that it executes have the same values. The action is what a person approves, so it is reported.
    let mut found = Vec::new();
    for leaf in nowhere {
        if let Some(action) = new.action_of(leaf.holder)
            && of_actions.contains(&(action, leaf.argument, meaning_hash(leaf.value)))
        {
            continue;
        }
        let paired =
            counterparts.other(Side::New, leaf.holder).and_then(|holder| by_holder.get(&(holder, leaf.argument)));
        // The paired call or action is the closest comparison; without it, all values of the same argument are.
        let argument: Option<&ArgumentSummary<'a>> = paired.or_else(|| by_argument.get(&leaf.argument));
        if argument.is_some_and(|argument| argument.all_grounded)
            || (transcript == Transcript::Complete && new.input_is_known)
        {
            let in_baseline = argument.is_some_and(|argument| argument.any_from_nowhere);
            let baseline = argument.map(|argument| argument.first);
            let baseline_has_value = kept.contains(&(leaf.argument, meaning_hash(leaf.value)));
            found.push(Suspect { leaf: *leaf, baseline, in_baseline, baseline_has_value });
        }
    }
    found
}

fn note<'a, K>(entry: std::collections::hash_map::Entry<'_, K, ArgumentSummary<'a>>, leaf: &Leaf<'a>) {
    let argument = entry.or_insert(ArgumentSummary { first: *leaf, all_grounded: true, any_from_nowhere: false });
    // A grounded sum does not imply that another sum is grounded: it may need a rate that no transcript contains.
    argument.all_grounded &= leaf.origin.is_grounded() && !leaf.is_sum;
    argument.any_from_nowhere |= leaf.origin == Origin::Nowhere;
}
