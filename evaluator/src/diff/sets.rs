//! Pairs the elements of two sets: equal elements first, the rest by assignment.

use std::cmp::Ordering;
use std::collections::VecDeque;

use super::assign::{self, Cost};
use crate::values::hashed::HashedMap;

/// The bound on one assignment, in steps. It allows about 300 unequal elements per side.
pub(crate) const WORK: usize = 64_000_000;

/// Two sets to match. Indexes count within each set.
pub(crate) struct Sets<'a> {
    /// For each element of the baseline's set, a hash that is equal for equal elements.
    pub baseline_keys: &'a [u64],
    /// The same for new's set.
    pub new_keys: &'a [u64],
    /// The cost of an unequal pair; `None` if the two cannot be paired.
    pub pair: &'a dyn Fn(usize, usize) -> Option<Cost>,
    /// The order of the two sets by content: see [`super::align::Lists::order`].
    pub order: &'a dyn Fn() -> Ordering,
}

/// The pairs of two sets.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Matching {
    /// The pairs, in the order of the baseline's set.
    pub pairs: Vec<(usize, usize)>,
    /// False if the sets were too large for the cheapest matching.
    pub exact: bool,
}

/// Matches two sets.
pub(crate) fn pair_off(sets: &Sets<'_>) -> Matching {
    pair_off_bounded(sets, WORK)
}

fn pair_off_bounded(sets: &Sets<'_>, work: usize) -> Matching {
    let mut waiting: HashedMap<VecDeque<usize>> = HashedMap::default();
    for (j, key) in sets.new_keys.iter().enumerate() {
        waiting.entry(*key).or_default().push_back(j);
    }
    let (mut pairs, mut left) = (Vec::new(), Vec::new());
    for (i, key) in sets.baseline_keys.iter().enumerate() {
        match waiting.get_mut(key).and_then(VecDeque::pop_front) {
            Some(j) => pairs.push((i, j)),
            None => left.push(i),
        }
    }
    let mut right: Vec<_> = waiting.into_values().flatten().collect();
    right.sort_unstable();

    let (fewer, more) = (left.len().min(right.len()), left.len().max(right.len()));
    let exact = assign::effort(fewer, more) <= work;
    if !exact {
        let in_order = left.into_iter().zip(right);
        pairs.extend(in_order.filter(|(i, j)| (sets.pair)(*i, *j).is_some()));
    } else if !left.is_empty() && !right.is_empty() {
        pairs.extend(assigned(sets, &left, &right));
    }
    pairs.sort_unstable();
    Matching { pairs, exact }
}

fn assigned(sets: &Sets<'_>, left: &[usize], right: &[usize]) -> Vec<(usize, usize)> {
    let pairs = left.iter().flat_map(|i| right.iter().map(|j| (sets.pair)(*i, *j))).collect::<Vec<_>>();
    let cost = |row: usize, column: usize| pairs[row * right.len() + column];
    // The cost grows with the square of the number of rows, so the smaller set is the rows.
    let turned = left.len().cmp(&right.len()).then_with(|| (sets.order)()) == Ordering::Greater;
    let found = if turned {
        let turned = assign::assign(right.len(), left.len(), |row, column| cost(column, row)).pairs;
        turned.into_iter().map(|(row, column)| (column, row)).collect()
    } else {
        assign::assign(left.len(), right.len(), cost).pairs
    };
    found.into_iter().map(|(row, column)| (left[row], right[column])).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pairs(a: &[u64], b: &[u64], work: usize) -> Matching {
        let pair = |i: usize, j: usize| (a[i] / 10 == b[j] / 10).then(|| 1_000 + a[i].abs_diff(b[j]) * 1_000);
        let order = || a.cmp(b);
        pair_off_bounded(&Sets { baseline_keys: a, new_keys: b, pair: &pair, order: &order }, work)
    }

    #[test]
    fn equal_elements_are_paired_first_and_then_the_nearest() {
        assert_eq!(pairs(&[1, 5, 30], &[6, 30, 5], WORK).pairs, [(0, 0), (1, 2), (2, 1)]);
        assert_eq!(pairs(&[11, 15], &[16, 12, 90], WORK).pairs, [(0, 1), (1, 0)]);
    }

    #[test]
    fn swapped_sets_give_the_same_pairs() {
        let (a, b) = ([1, 3], [2, 4]);
        let there = pairs(&a, &b, WORK).pairs;
        let mut back: Vec<_> = pairs(&b, &a, WORK).pairs.into_iter().map(|(i, j)| (j, i)).collect();
        back.sort_unstable();
        assert_eq!(there, back);
    }

    #[test]
    fn too_large_sets_are_paired_in_order_and_reported_as_inexact() {
        let found = pairs(&[11, 15], &[16, 12], 1);
        assert_eq!((found.pairs, found.exact), (vec![(0, 0), (1, 1)], false));
    }
}
