//! The values of the new side that come from nowhere, held against the same places of the baseline.

use std::collections::{HashMap, HashSet};

use counterproof_artifact::Side;

use super::{Holder, Leaf, Origin, Origins};
use crate::diff::counterparts::Counterparts;
use crate::values::meaning_hash;

/// A value of the new side that comes from nowhere.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Suspect<'a> {
    /// The value.
    pub leaf: Leaf<'a>,
    /// What the baseline has at the same place: that of the paired call or action where it has the place.
    pub baseline: Option<Leaf<'a>>,
    /// True where the baseline has a value there that comes from nowhere, too.
    pub in_baseline: bool,
    /// True where it is the very value that the baseline has there: not made up, but no longer seen to come from anywhere.
    pub is_kept: bool,
}

/// What the baseline has at a place, taken together.
#[derive(Debug, Clone, Copy)]
struct There<'a> {
    first: Leaf<'a>,
    all_grounded: bool,
    any_from_nowhere: bool,
}

/// The suspects among new's values: where the baseline's at the same place are all grounded, or, where new's transcript is
/// declared complete, all that come from nowhere. A value that a call shares with its action is named for the action alone.
pub(crate) fn suspects<'a>(
    baseline: &Origins<'a>,
    new: &Origins<'a>,
    counterparts: &Counterparts,
    new_is_complete: bool,
) -> Vec<Suspect<'a>> {
    let nowhere: Vec<_> = new.leaves.iter().filter(|leaf| leaf.origin == Origin::Nowhere).collect();
    if nowhere.is_empty() {
        return Vec::new();
    }
    let (mut by_place, mut by_holder, mut kept) = (HashMap::new(), HashMap::new(), HashSet::new());
    for leaf in baseline.leaves.iter().filter(|leaf| leaf.origin != Origin::Exempt) {
        note(by_place.entry(leaf.place), leaf);
        note(by_holder.entry((leaf.holder, leaf.place)), leaf);
        kept.insert((leaf.place, meaning_hash(leaf.value)));
    }
    let of_actions: HashSet<_> = nowhere
        .iter()
        .filter(|leaf| matches!(leaf.holder, Holder::Action(_)))
        .map(|leaf| (leaf.holder, leaf.place, meaning_hash(leaf.value)))
        .collect();
    let mut found = Vec::new();
    for leaf in nowhere {
        if let Some(action) = new.action_of(leaf.holder)
            && of_actions.contains(&(action, leaf.place, meaning_hash(leaf.value)))
        {
            continue;
        }
        let paired = counterparts.other(Side::New, leaf.holder).and_then(|holder| by_holder.get(&(holder, leaf.place)));
        let there: Option<&There<'a>> = paired.or_else(|| by_place.get(&leaf.place));
        if there.is_some_and(|there| there.all_grounded) || (new_is_complete && new.input_is_known) {
            let in_baseline = there.is_some_and(|there| there.any_from_nowhere);
            let baseline = there.map(|there| there.first);
            let is_kept = kept.contains(&(leaf.place, meaning_hash(leaf.value)));
            found.push(Suspect { leaf: *leaf, baseline, in_baseline, is_kept });
        }
    }
    found
}

fn note<'a, K>(entry: std::collections::hash_map::Entry<'_, K, There<'a>>, leaf: &Leaf<'a>) {
    let there = entry.or_insert(There { first: *leaf, all_grounded: true, any_from_nowhere: false });
    // That the numbers of one sum are known says nothing of what another one needs: a rate, say, that stands in no transcript.
    there.all_grounded &= leaf.origin.is_grounded() && !leaf.is_sum;
    there.any_from_nowhere |= leaf.origin == Origin::Nowhere;
}
