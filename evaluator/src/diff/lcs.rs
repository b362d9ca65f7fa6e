//! Common subsequences of two lists in bounded time: the longest one for short lists (Myers 1986), otherwise the elements
//! that are unique on both sides and keep their order (patience diff), and the equal elements around them.
//!
//! The steps of Myers' algorithm grow with the list length times the differences, so two reordered lists of 100,000 elements
//! would take hours. The bound counts elements and not time, so that the same lists always give the same operations.

use std::collections::HashMap;
use std::ops::Range;

use counterproof_artifact::{Side, Sides};
use similar::{Algorithm, DiffOp, capture_diff_slices};

/// The product of both list lengths up to which the longest subsequence is computed.
const WORK: usize = 1_000_000;

/// Returns the operations that turn one list into the other, by equal keys.
pub(super) fn operations(algorithm: Algorithm, old: &[u64], new: &[u64]) -> Vec<DiffOp> {
    bounded(algorithm, old, new, WORK)
}

fn bounded(algorithm: Algorithm, old: &[u64], new: &[u64], mut work: usize) -> Vec<DiffOp> {
    if affordable(old.len(), new.len(), &mut work) {
        return capture_diff_slices(algorithm, old, new);
    }
    // Equal ends first: they need no bound, and usually leave a short middle.
    let mut matches = Matches { old, new, found: Vec::new() };
    let whole = matches.ends(0..old.len(), 0..new.len());
    let anchors = anchors(&old[whole.0.clone()], &new[whole.1.clone()]);
    let (mut i, mut j) = (whole.0.start, whole.1.start);
    let anchors = anchors.into_iter().map(|(a, b)| (whole.0.start + a, whole.1.start + b));
    // The end of both lists is the last anchor, so that the gap after the last match is searched too.
    for (a, b) in anchors.chain([(whole.0.end, whole.1.end)]) {
        let gap = matches.ends(i..a, j..b);
        // A gap that needs more than the remaining work keeps only its equal ends.
        if affordable(gap.0.len(), gap.1.len(), &mut work) {
            for op in capture_diff_slices(algorithm, &old[gap.0.clone()], &new[gap.1.clone()]) {
                if let DiffOp::Equal { old_index, new_index, len } = op {
                    matches.found.extend((0..len).map(|n| (gap.0.start + old_index + n, gap.1.start + new_index + n)));
                }
            }
        }
        if a < whole.0.end {
            matches.found.push((a, b));
        }
        (i, j) = (a + 1, b + 1);
    }
    // `ends` adds the pairs of a suffix from its end, so the pairs are not in order yet.
    matches.found.sort_unstable();
    matches.into_operations()
}

fn affordable(old: usize, new: usize, work: &mut usize) -> bool {
    let needed = old.saturating_mul(new);
    let enough = needed <= *work;
    if enough {
        *work -= needed;
    }
    enough
}

/// Returns the longest series of elements that are unique in both lists and keep their order.
fn anchors(old: &[u64], new: &[u64]) -> Vec<(usize, usize)> {
    let mut positions: HashMap<u64, Sides<Option<usize>>> = HashMap::new();
    let mut several = std::collections::HashSet::new();
    for (side, list) in [(Side::Baseline, old), (Side::New, new)] {
        for (index, key) in list.iter().enumerate() {
            if positions.entry(*key).or_default().get_mut(side).replace(index).is_some() {
                several.insert(*key);
            }
        }
    }
    // An element that occurs twice could be matched in two ways, and a wrong match would cut the lists at the wrong place.
    let single = old.iter().enumerate().filter(|(_, key)| !several.contains(*key));
    longest_increasing(&single.filter_map(|(i, key)| Some((i, positions[key].new?))).collect::<Vec<_>>())
}

/// Returns the longest subsequence with increasing second parts, of pairs sorted by their first part (Schensted 1961).
fn longest_increasing(pairs: &[(usize, usize)]) -> Vec<(usize, usize)> {
    // `ends` has, for each length, the end of the subsequence that ends lowest; `before` links each pair to its predecessor.
    let mut ends: Vec<usize> = Vec::new();
    let mut before = vec![None; pairs.len()];
    for (index, (_, second)) in pairs.iter().enumerate() {
        let length = ends.partition_point(|end| pairs[*end].1 < *second);
        before[index] = length.checked_sub(1).map(|shorter| ends[shorter]);
        if length == ends.len() {
            ends.push(index);
        } else {
            ends[length] = index;
        }
    }
    let mut found: Vec<_> =
        std::iter::successors(ends.last().copied(), |index| before[*index]).map(|index| pairs[index]).collect();
    found.reverse();
    found
}

struct Matches<'a> {
    old: &'a [u64],
    new: &'a [u64],
    found: Vec<(usize, usize)>,
}

impl Matches<'_> {
    /// Matches the equal elements at both ends of a stretch, and returns the rest.
    fn ends(&mut self, mut old: Range<usize>, mut new: Range<usize>) -> (Range<usize>, Range<usize>) {
        while !old.is_empty() && !new.is_empty() && self.old[old.start] == self.new[new.start] {
            self.found.push((old.start, new.start));
            (old.start, new.start) = (old.start + 1, new.start + 1);
        }
        while !old.is_empty() && !new.is_empty() && self.old[old.end - 1] == self.new[new.end - 1] {
            (old.end, new.end) = (old.end - 1, new.end - 1);
            self.found.push((old.end, new.end));
        }
        (old, new)
    }

    /// Converts the sorted pairs, and the gaps between them, to operations.
    fn into_operations(self) -> Vec<DiffOp> {
        let mut operations = Vec::new();
        let (mut i, mut j) = (0, 0);
        for (a, b) in self.found.iter().copied().chain([(self.old.len(), self.new.len())]) {
            match (a - i, b - j) {
                (0, 0) => {}
                (old_len, 0) => operations.push(DiffOp::Delete { old_index: i, old_len, new_index: j }),
                (0, new_len) => operations.push(DiffOp::Insert { old_index: i, new_index: j, new_len }),
                (old_len, new_len) => {
                    operations.push(DiffOp::Replace { old_index: i, old_len, new_index: j, new_len });
                }
            }
            if a < self.old.len() {
                match operations.last_mut() {
                    Some(DiffOp::Equal { len, .. }) => *len += 1,
                    _ => operations.push(DiffOp::Equal { old_index: a, new_index: b, len: 1 }),
                }
            }
            (i, j) = (a + 1, b + 1);
        }
        operations
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn equal(operations: &[DiffOp]) -> usize {
        operations.iter().filter(|op| op.tag() == similar::DiffTag::Equal).map(|op| op.old_range().len()).sum()
    }

    #[test]
    fn long_reordered_lists_finish_and_keep_their_equal_ends() {
        let old: Vec<u64> = (0..200_000).collect();
        let mut new = old.clone();
        new[10..199_990].reverse();
        let operations = operations(Algorithm::Myers, &old, &new);
        assert_eq!(equal(&operations), 21, "both ends, and one element of the turned middle");
    }

    #[test]
    fn an_insertion_into_a_long_list_is_one_operation() {
        let old: Vec<u64> = (0..100_000).collect();
        let mut new = old.clone();
        new.insert(50_000, 7_777_777);
        assert_eq!(equal(&operations(Algorithm::Myers, &old, &new)), 100_000);
    }

    proptest! {
        #[test]
        fn any_bound_gives_complete_operations_in_order(
            old in prop::collection::vec(0u64..12, 0..40), new in prop::collection::vec(0u64..12, 0..40), work in 0usize..400,
        ) {
            let found = bounded(Algorithm::Myers, &old, &new, work);
            let (mut i, mut j) = (0, 0);
            for op in &found {
                prop_assert_eq!((op.old_range().start, op.new_range().start), (i, j));
                if op.tag() == similar::DiffTag::Equal {
                    prop_assert_eq!(&old[op.old_range()], &new[op.new_range()]);
                }
                (i, j) = (op.old_range().end, op.new_range().end);
            }
            prop_assert_eq!((i, j), (old.len(), new.len()));
            prop_assert!(equal(&found) <= equal(&capture_diff_slices(Algorithm::Myers, &old, &new)));
        }
    }
}
