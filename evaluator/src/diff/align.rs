//! Minimum-cost global alignment of two lists of groups.
//!
//! A list is a sequence of groups, most of them of one element; the elements of a group have no order among themselves
//! (tool calls that overlap in time). Leaving out an element costs [`LEFT_OUT`] on either side; the caller defines the cost
//! of a pair. Pairs must not cross: an element strictly before another on one side must not be strictly after it on the
//! other. The cheapest such alignment is found by dynamic programming (Needleman & Wunsch 1970), in which a group of up to
//! [`OPEN_UP_TO`] elements can be partly consumed. A larger group is matched as a whole with a group, or with a run of
//! groups of at most twice its size, by assignment (Kuhn 1955).
//!
//! Equal ends are matched first. The rest is solved exactly within the bound [`WORK`]. Beyond it, the lists are cut at
//! elements that are equal and unique on both sides (patience diff), and stretches that are still too large are paired in
//! order. The bound counts steps and not time, so that the same lists always give the same alignment.

use std::cmp::Ordering;
use std::ops::Range;

use similar::{Algorithm, DiffOp};

use super::assign::{Cost, LEFT_OUT};
use super::lcs;
use super::table::Table;

/// The bound on one alignment, in steps. A pair takes as many steps as its elements have leaves to compare. It allows some
/// hundred elements per side with 20 leaves each, or a thousand with 4.
pub(crate) const WORK: usize = 4_000_000;

/// Groups of up to this many elements can be matched with parts of several groups.
pub(crate) const OPEN_UP_TO: usize = 6;

/// One row of an alignment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Row {
    /// A pair of elements.
    Both {
        /// Index in the baseline's list.
        baseline: usize,
        /// Index in new's list.
        new: usize,
    },
    /// An element that only the baseline has.
    Removed(usize),
    /// An element that only new has.
    Added(usize),
}

impl Row {
    /// Returns the row with the sides swapped.
    #[must_use]
    pub const fn mirrored(self) -> Self {
        match self {
            Row::Both { baseline, new } => Row::Both { baseline: new, new: baseline },
            Row::Removed(index) => Row::Added(index),
            Row::Added(index) => Row::Removed(index),
        }
    }
}

/// The pairs of two aligned lists.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Alignment {
    /// The pairs, in the order of the baseline's list.
    pub pairs: Vec<(usize, usize)>,
    /// The cost of all pairs and of all elements left out.
    pub cost: Cost,
    /// False if the lists were too long for the cheapest alignment.
    pub exact: bool,
}

/// One of the two lists.
#[derive(Debug, Clone, Copy)]
pub(crate) struct List<'a> {
    /// For each element, a hash that is equal for equal elements.
    pub keys: &'a [u64],
    /// For each element, the number of its group, in ascending order.
    pub groups: &'a [usize],
}

/// Two lists to align, and how to compare them.
pub(crate) struct Lists<'a> {
    /// The baseline's list.
    pub baseline: List<'a>,
    /// New's list.
    pub new: List<'a>,
    /// Estimates the steps to compute the cost of one pair.
    pub effort: &'a dyn Fn() -> usize,
    /// Returns the cost of a pair, or `None` if the two cannot be paired. Not called for equal keys, which cost nothing.
    pub pair: &'a dyn Fn(usize, usize) -> Option<Cost>,
    /// Compares the lists by content. Among alignments of equal cost, the one found with the lesser list first is used, so
    /// that the result does not depend on which side is which.
    pub order: &'a dyn Fn() -> Ordering,
}

/// Aligns two lists.
pub(crate) fn align(lists: &Lists<'_>) -> Alignment {
    align_bounded(lists, WORK)
}

fn align_bounded(lists: &Lists<'_>, work: usize) -> Alignment {
    // Equal ends are free, so matching them first never makes an alignment more expensive.
    let (left, right) = (groups(lists.baseline.groups), groups(lists.new.groups));
    let mut found = Alignment { pairs: Vec::new(), cost: 0, exact: true };
    let equal = |a: &Range<usize>, b: &Range<usize>| equal_groups(lists, a, b);
    let head = left.iter().zip(&right).map_while(|(a, b)| equal(a, b)).collect::<Vec<_>>();
    let (left, right) = (&left[head.len()..], &right[head.len()..]);
    let tail = left.iter().rev().zip(right.iter().rev()).map_while(|(a, b)| equal(a, b)).collect::<Vec<_>>();
    let (left, right) = (&left[..left.len() - tail.len()], &right[..right.len() - tail.len()]);
    found.pairs.extend(head.into_iter().chain(tail).flatten());

    if left.is_empty() || right.is_empty() {
        found.cost += left.iter().chain(right).map(|group| group.len() as Cost * LEFT_OUT).sum::<Cost>();
    } else if (lists.order)() == Ordering::Greater {
        let turned = |i, j| (lists.pair)(j, i);
        let mirrored = Lists { baseline: lists.new, new: lists.baseline, pair: &turned, ..*lists };
        let first = found.pairs.len();
        middle(&mirrored, right, left, work, &mut found);
        found.pairs[first..].iter_mut().for_each(|(i, j)| (*i, *j) = (*j, *i));
    } else {
        middle(lists, left, right, work, &mut found);
    }
    found.pairs.sort_unstable();
    found
}

/// Returns the element range of each group.
fn groups(numbers: &[usize]) -> Vec<Range<usize>> {
    let mut start = 0;
    let chunks = numbers.chunk_by(|a, b| a == b);
    chunks
        .map(|chunk| {
            start += chunk.len();
            start - chunk.len()..start
        })
        .collect()
}

/// Pairs two groups with the same elements. `None` if their elements differ.
fn equal_groups(lists: &Lists<'_>, left: &Range<usize>, right: &Range<usize>) -> Option<Vec<(usize, usize)>> {
    let sorted = |list: List<'_>, group: &Range<usize>| {
        let mut elements: Vec<_> = group.clone().map(|index| (list.keys[index], index)).collect();
        elements.sort_unstable();
        elements
    };
    if left.len() != right.len() {
        return None;
    }
    let (left, right) = (sorted(lists.baseline, left), sorted(lists.new, right));
    let pairs = left.into_iter().zip(right);
    pairs.map(|((key, i), (other, j))| (key == other).then_some((i, j))).collect()
}

/// Aligns the lists between their equal ends.
fn middle(lists: &Lists<'_>, left: &[Range<usize>], right: &[Range<usize>], mut work: usize, found: &mut Alignment) {
    if let Some(table) = Table::within(lists, left, right, &mut work) {
        table.solve(found);
        return;
    }
    // Too large for one table. The matches of equal elements divide the lists into stretches, which share the work in
    // reading order.
    found.exact = false;
    let (all_left, all_right) = (span(left), span(right));
    let keys = |list: List<'_>, span: &Range<usize>| list.keys[span.clone()].to_vec();
    let (old, new) = (keys(lists.baseline, &all_left), keys(lists.new, &all_right));
    for op in lcs::operations(Algorithm::Patience, &old, &new) {
        let shift = |range: Range<usize>, by: usize| range.start + by..range.end + by;
        let (old, new) = (shift(op.old_range(), all_left.start), shift(op.new_range(), all_right.start));
        if matches!(op, DiffOp::Equal { .. }) {
            found.pairs.extend(old.zip(new));
            continue;
        }
        match Table::within(lists, &cut(left, &old), &cut(right, &new), &mut work) {
            Some(table) => table.solve(found),
            None => in_order(lists, old, new, found),
        }
    }
}

fn span(groups: &[Range<usize>]) -> Range<usize> {
    groups.first().map_or(0, |first| first.start)..groups.last().map_or(0, |last| last.end)
}

/// Returns the parts of groups within a range.
fn cut(groups: &[Range<usize>], range: &Range<usize>) -> Vec<Range<usize>> {
    let within = groups.iter().map(|group| group.start.max(range.start)..group.end.min(range.end));
    within.filter(|group| !group.is_empty()).collect()
}

fn in_order(lists: &Lists<'_>, left: Range<usize>, right: Range<usize>, found: &mut Alignment) {
    let all = left.len() + right.len();
    let mut paired = 0;
    for (i, j) in left.zip(right) {
        if let Some(cost) = lists.cost(i, j) {
            found.pairs.push((i, j));
            found.cost += cost;
            paired += 1;
        }
    }
    found.cost += (all - 2 * paired) as Cost * LEFT_OUT;
}

impl Lists<'_> {
    /// Returns the cost of a pair.
    pub(super) fn cost(&self, i: usize, j: usize) -> Option<Cost> {
        if self.baseline.keys[i] == self.new.keys[j] { Some(0) } else { (self.pair)(i, j) }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Elements of one decade can stand for each other, at a cost that grows with their distance.
    fn pair_cost(a: u64, b: u64) -> Option<Cost> {
        (a / 10 == b / 10).then(|| if a == b { 0 } else { 1_000 + a.abs_diff(b) * 1_500 })
    }

    /// A list: each element with the number of its group.
    #[derive(Debug, Clone)]
    struct Given {
        keys: Vec<u64>,
        groups: Vec<usize>,
    }

    impl Given {
        fn from_groups(groups: &[Vec<u64>]) -> Self {
            let numbered =
                groups.iter().enumerate().flat_map(|(number, group)| group.iter().map(move |key| (number, *key)));
            let (groups, keys) = numbered.unzip();
            Self { keys, groups }
        }

        fn singles(keys: &[u64]) -> Self {
            Self { keys: keys.to_vec(), groups: (0..keys.len()).collect() }
        }

        fn list(&self) -> List<'_> {
            List { keys: &self.keys, groups: &self.groups }
        }
    }

    fn run(a: &Given, b: &Given, work: usize) -> Alignment {
        let pair = |i: usize, j: usize| pair_cost(a.keys[i], b.keys[j]);
        let order = || (&a.keys, &a.groups).cmp(&(&b.keys, &b.groups));
        let lists = Lists { baseline: a.list(), new: b.list(), effort: &|| 1, pair: &pair, order: &order };
        align_bounded(&lists, work)
    }

    /// The cheapest of all sets of pairs in which no two stand crosswise, by trying every one.
    fn brute_force(a: &Given, b: &Given) -> Cost {
        fn rest(i: usize, a: &Given, b: &Given, pairs: &mut Vec<(usize, usize)>) -> Cost {
            if i == a.keys.len() {
                let matched = pairs.iter().filter_map(|(i, j)| pair_cost(a.keys[*i], b.keys[*j])).sum::<Cost>();
                return matched + (a.keys.len() + b.keys.len() - 2 * pairs.len()) as Cost * LEFT_OUT;
            }
            let mut best = rest(i + 1, a, b, pairs);
            for j in 0..b.keys.len() {
                let free = pairs.iter().all(|(k, l)| {
                    let crosswise = a.groups[*k] < a.groups[i] && b.groups[*l] > b.groups[j];
                    *l != j && !crosswise
                });
                if free && pair_cost(a.keys[i], b.keys[j]).is_some() {
                    pairs.push((i, j));
                    best = best.min(rest(i + 1, a, b, pairs));
                    pairs.pop();
                }
            }
            best
        }
        rest(0, a, b, &mut Vec::new())
    }

    /// True where every element stands in at most one pair, no two pairs stand crosswise, and the cost is theirs.
    fn holds(found: &Alignment, a: &Given, b: &Given) -> bool {
        let crosswise = found.pairs.iter().any(|(i, j)| {
            found
                .pairs
                .iter()
                .any(|(k, l)| (a.groups[*i] < a.groups[*k] && b.groups[*j] > b.groups[*l]) || ((i == k) != (j == l)))
        });
        let matched: Option<Cost> = found.pairs.iter().map(|(i, j)| pair_cost(a.keys[*i], b.keys[*j])).sum();
        let left_out = (a.keys.len() + b.keys.len() - 2 * found.pairs.len()) as Cost * LEFT_OUT;
        !crosswise && matched.is_some_and(|matched| matched + left_out == found.cost)
    }

    fn mirrored(found: &Alignment) -> Vec<(usize, usize)> {
        let mut pairs: Vec<_> = found.pairs.iter().map(|(i, j)| (*j, *i)).collect();
        pairs.sort_unstable();
        pairs
    }

    fn grouped(elements: usize, groups: usize) -> impl Strategy<Value = Given> {
        let group = prop::collection::vec(0_u64..25, 1..4);
        prop::collection::vec(group, 0..groups).prop_map(move |mut groups| {
            let mut left = elements;
            for group in &mut groups {
                group.truncate(left);
                left -= group.len();
            }
            groups.retain(|group| !group.is_empty());
            Given::from_groups(&groups)
        })
    }

    #[test]
    fn all_elements_are_left_out_against_an_empty_list() {
        let found = run(&Given::singles(&[]), &Given::singles(&[1, 2]), 100);
        assert_eq!((found.pairs, found.cost, found.exact), (vec![], 2 * LEFT_OUT, true));
    }

    #[test]
    fn impossible_pairs_are_never_matched() {
        assert_eq!(run(&Given::singles(&[1]), &Given::singles(&[11]), 100).pairs, []);
    }

    #[test]
    fn a_group_has_no_order_and_matches_sequential_elements() {
        let (apart, at_once) = (Given::singles(&[1, 11, 21]), Given::from_groups(&[vec![11, 1], vec![21]]));
        assert_eq!(run(&apart, &at_once, WORK).pairs, [(0, 1), (1, 0), (2, 2)]);
        let (a, b) =
            (Given::from_groups(&[vec![1, 11], vec![2, 12]]), Given::from_groups(&[vec![1], vec![2, 11], vec![12]]));
        assert_eq!(run(&a, &b, WORK).cost, 0, "parts of several groups");
    }

    #[test]
    fn a_large_group_is_matched_by_assignment_with_a_group_and_with_a_run() {
        let many: Vec<_> = (0..40).map(|n| n * 10).collect();
        let mut turned: Vec<_> = many.iter().rev().map(|key| key + 1).collect();
        let (group, other) = (
            Given::from_groups(&[vec![5], many.clone(), vec![7]]),
            Given::from_groups(&[vec![6], turned.clone(), vec![8]]),
        );
        let found = run(&group, &other, WORK);
        assert_eq!((found.pairs.len(), found.exact), (42, true));
        turned.truncate(20);
        let singles = Given::singles(&turned);
        let found = run(&Given::from_groups(&[many]), &singles, WORK);
        assert_eq!((found.pairs.len(), found.exact), (20, true));
    }

    #[test]
    fn several_hundred_elements_are_aligned_exactly() {
        let a: Vec<u64> = (0..400).map(|n| n * 7 % 250).collect();
        let b: Vec<u64> = (0..400).map(|n| n * 11 % 250).collect();
        assert!(run(&Given::singles(&a), &Given::singles(&b), WORK).exact);
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(512))]

        #[test]
        fn no_other_alignment_is_cheaper(a in grouped(6, 6), b in grouped(6, 6)) {
            let found = run(&a, &b, WORK);
            prop_assert!(holds(&found, &a, &b), "{found:?}");
            prop_assert_eq!(found.cost, brute_force(&a, &b));
            prop_assert!(found.exact);
        }

        #[test]
        fn swapped_lists_give_the_same_pairs(a in grouped(20, 12), b in grouped(20, 12), work in prop_oneof![Just(WORK), 0..200_usize]) {
            let (there, back) = (run(&a, &b, work), run(&b, &a, work));
            prop_assert_eq!(&there.pairs, &mirrored(&back));
            prop_assert_eq!((there.cost, there.exact), (back.cost, back.exact));
            prop_assert!(holds(&there, &a, &b), "{there:?}");
        }

        #[test]
        fn a_bounded_alignment_is_never_cheaper_than_the_exact_one(
            a in prop::collection::vec(0_u64..40, 0..60),
            b in prop::collection::vec(0_u64..40, 0..60),
            work in 0_usize..50,
        ) {
            let (a, b) = (Given::singles(&a), Given::singles(&b));
            let found = run(&a, &b, work);
            prop_assert!(holds(&found, &a, &b));
            prop_assert!(found.cost >= run(&a, &b, WORK).cost);
        }
    }
}
