//! Two sets whose elements have no order: which element stands for which. Equal ones first, the rest by assignment.

use std::cmp::Ordering;
use std::collections::VecDeque;

use super::assign::{self, Cost};
use crate::values::hashed::HashedMap;

/// How much one assignment may cost, in steps: some three hundred elements a side that are not equal.
pub(crate) const WORK: usize = 64_000_000;

/// How two sets are compared. Indexes count within the sets' own slices.
pub(crate) struct Sets<'a> {
    /// For each element of the baseline's set a number that is equal for elements that mean the same.
    pub baseline_keys: &'a [u64],
    /// The same for new's set.
    pub new_keys: &'a [u64],
    /// What a pair that is not equal costs, `None` where the two cannot stand for each other.
    pub pair: &'a dyn Fn(usize, usize) -> Option<Cost>,
    /// Which set comes first by its content: see [`super::align::Lists::order`].
    pub order: &'a dyn Fn() -> Ordering,
}

/// Which elements of two sets stand for each other.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Matching {
    /// The pairs, in the order of the baseline's set.
    pub pairs: Vec<(usize, usize)>,
    /// False where the sets were too large to be sure that nothing is cheaper.
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
    // Each element of the one set looks through all of the other, so the smaller one goes first.
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
    fn equal_elements_come_first_wherever_they_stand_and_then_the_nearest() {
        assert_eq!(pairs(&[1, 5, 30], &[6, 30, 5], WORK).pairs, [(0, 0), (1, 2), (2, 1)]);
        assert_eq!(pairs(&[11, 15], &[16, 12, 90], WORK).pairs, [(0, 1), (1, 0)]);
    }

    #[test]
    fn of_pairs_that_cost_the_same_the_same_ones_are_taken_the_other_way_round() {
        let (a, b) = ([1, 3], [2, 4]);
        let there = pairs(&a, &b, WORK).pairs;
        let mut back: Vec<_> = pairs(&b, &a, WORK).pairs.into_iter().map(|(i, j)| (j, i)).collect();
        back.sort_unstable();
        assert_eq!(there, back);
    }

    #[test]
    fn sets_that_are_too_large_are_paired_in_order_and_say_so() {
        let found = pairs(&[11, 15], &[16, 12], 1);
        assert_eq!((found.pairs, found.exact), (vec![(0, 0), (1, 1)], false));
    }
}
