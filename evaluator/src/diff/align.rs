//! Minimum-cost global alignment of two lists (Needleman & Wunsch 1970): which element stands for which.
//!
//! Leaving an element out costs 1 on either side; what a pair costs is the caller's to say. Equal ends are matched
//! first. What remains is solved exactly as far as [`WORK`] goes; beyond that it is cut at elements that are equal and
//! unique on both sides (patience diff), and a stretch that is still too large is paired in order. The bound counts steps
//! and not time, so that the same lists always give the same alignment.

use similar::{Algorithm, DiffOp, capture_diff_slices};

/// How much one alignment may cost, in cells of its table times what a cell costs: some hundred elements a side with
/// twenty leaves each, or a thousand with four.
pub const WORK: usize = 4_000_000;

/// One row of an alignment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Row {
    /// Two elements that stand for each other.
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

/// An alignment: every element of both lists stands in exactly one row, in the order of its list.
#[derive(Debug, Clone, PartialEq)]
pub struct Alignment {
    /// The rows.
    pub rows: Vec<Row>,
    /// What they cost together.
    pub cost: f64,
    /// False where the lists were too long to be sure that nothing is cheaper.
    pub exact: bool,
}

/// How two lists are compared.
pub struct Costs<'a> {
    /// Equal for elements that mean the same.
    pub baseline_keys: &'a [u64],
    /// The same for new's list.
    pub new_keys: &'a [u64],
    /// About how many steps it takes to tell what a pair costs, at least 1.
    pub effort: usize,
    /// What a pair costs, `None` where the two cannot stand for each other. Elements with equal keys cost nothing.
    pub pair: &'a dyn Fn(usize, usize) -> Option<f64>,
}

impl Costs<'_> {
    fn of(&self, i: usize, j: usize) -> Option<f64> {
        if self.baseline_keys[i] == self.new_keys[j] { Some(0.0) } else { (self.pair)(i, j) }
    }
}

/// Aligns two lists.
pub fn align(costs: &Costs<'_>) -> Alignment {
    align_bounded(costs, WORK)
}

fn align_bounded(costs: &Costs<'_>, mut work: usize) -> Alignment {
    let (a, b) = (costs.baseline_keys, costs.new_keys);
    let head = a.iter().zip(b).take_while(|(a, b)| a == b).count();
    let tail = a[head..].iter().rev().zip(b[head..].iter().rev()).take_while(|(a, b)| a == b).count();
    let (left, right) = (head..a.len() - tail, head..b.len() - tail);

    let mut alignment = Alignment { rows: Vec::with_capacity(a.len().max(b.len())), cost: 0.0, exact: true };
    alignment.rows.extend((0..head).map(|i| Row::Both { baseline: i, new: i }));
    if affordable(costs, &left, &right, &mut work) {
        exact(costs, left.clone(), right.clone(), &mut alignment);
    } else {
        anchored(costs, left.clone(), right.clone(), work, &mut alignment);
    }
    let both = |offset: usize| Row::Both { baseline: left.end + offset, new: right.end + offset };
    alignment.rows.extend((0..tail).map(both));
    alignment
}

type Range = std::ops::Range<usize>;

/// Takes what a table costs from the work that is left, if there is enough.
fn affordable(costs: &Costs<'_>, left: &Range, right: &Range, work: &mut usize) -> bool {
    let needed = left.len().saturating_mul(right.len()).saturating_mul(costs.effort.max(1));
    let enough = needed <= *work;
    if enough {
        *work -= needed;
    }
    enough
}

/// The step by which a table cell was reached.
#[derive(Clone, Copy)]
enum Step {
    Both,
    Removed,
    Added,
}

fn exact(costs: &Costs<'_>, left: Range, right: Range, alignment: &mut Alignment) {
    let (n, m) = (left.len(), right.len());
    let mut steps = vec![Step::Added; (n + 1) * (m + 1)];
    // One row of the table is enough for the costs; the steps remember the way.
    let mut row: Vec<f64> = (0..=m).map(|j| j as f64).collect();
    for i in 1..=n {
        let mut diagonal = row[0];
        row[0] = i as f64;
        steps[i * (m + 1)] = Step::Removed;
        for j in 1..=m {
            let above = row[j];
            // Read from the end, so that what was removed stands before what was added.
            let mut best = (row[j - 1] + 1.0, Step::Added);
            if above + 1.0 < best.0 {
                best = (above + 1.0, Step::Removed);
            }
            // Of two ways that cost the same, the one that keeps a pair together reads better.
            if let Some(pair) = costs.of(left.start + i - 1, right.start + j - 1)
                && diagonal + pair <= best.0
            {
                best = (diagonal + pair, Step::Both);
            }
            diagonal = above;
            row[j] = best.0;
            steps[i * (m + 1) + j] = best.1;
        }
    }
    alignment.cost += row[m];

    let start = alignment.rows.len();
    let (mut i, mut j) = (n, m);
    while i > 0 || j > 0 {
        match steps[i * (m + 1) + j] {
            Step::Both => {
                (i, j) = (i - 1, j - 1);
                alignment.rows.push(Row::Both { baseline: left.start + i, new: right.start + j });
            }
            Step::Removed => {
                i -= 1;
                alignment.rows.push(Row::Removed(left.start + i));
            }
            Step::Added => {
                j -= 1;
                alignment.rows.push(Row::Added(right.start + j));
            }
        }
    }
    alignment.rows[start..].reverse();
}

fn anchored(costs: &Costs<'_>, left: Range, right: Range, mut work: usize, alignment: &mut Alignment) {
    alignment.exact = false;
    let ops =
        capture_diff_slices(Algorithm::Patience, &costs.baseline_keys[left.clone()], &costs.new_keys[right.clone()]);
    for op in ops {
        let shift = |range: Range, by: usize| range.start + by..range.end + by;
        let (old, new) = (shift(op.old_range(), left.start), shift(op.new_range(), right.start));
        if matches!(op, DiffOp::Equal { .. }) {
            alignment.rows.extend(old.zip(new).map(|(baseline, new)| Row::Both { baseline, new }));
        } else if affordable(costs, &old, &new, &mut work) {
            exact(costs, old, new, alignment);
        } else {
            in_order(costs, old, new, alignment);
        }
    }
}

fn in_order(costs: &Costs<'_>, left: Range, right: Range, alignment: &mut Alignment) {
    let paired = left.len().min(right.len());
    for (i, j) in left.clone().zip(right.clone()) {
        if let Some(cost) = costs.of(i, j) {
            alignment.rows.push(Row::Both { baseline: i, new: j });
            alignment.cost += cost;
        } else {
            alignment.rows.extend([Row::Removed(i), Row::Added(j)]);
            alignment.cost += 2.0;
        }
    }
    let rest = left.skip(paired).map(Row::Removed).chain(right.skip(paired).map(Row::Added));
    let before = alignment.rows.len();
    alignment.rows.extend(rest);
    alignment.cost += (alignment.rows.len() - before) as f64;
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Elements of one decade can stand for each other, at a cost that grows with their distance.
    fn pair_cost(a: u64, b: u64) -> Option<f64> {
        (a / 10 == b / 10).then(|| a.abs_diff(b) as f64 * 0.15)
    }

    fn run(a: &[u64], b: &[u64], work: usize) -> Alignment {
        let pair = |i: usize, j: usize| pair_cost(a[i], b[j]);
        align_bounded(&Costs { baseline_keys: a, new_keys: b, effort: 1, pair: &pair }, work)
    }

    fn brute_force(a: &[u64], b: &[u64]) -> f64 {
        match (a, b) {
            ([], rest) | (rest, []) => rest.len() as f64,
            ([x, a_rest @ ..], [y, b_rest @ ..]) => {
                let leave = (brute_force(a_rest, b) + 1.0).min(brute_force(a, b_rest) + 1.0);
                pair_cost(*x, *y).map_or(leave, |cost| leave.min(brute_force(a_rest, b_rest) + cost))
            }
        }
    }

    fn is_whole(alignment: &Alignment, a: usize, b: usize) -> bool {
        let old = alignment.rows.iter().filter_map(|row| match row {
            Row::Both { baseline, .. } | Row::Removed(baseline) => Some(*baseline),
            Row::Added(_) => None,
        });
        let new = alignment.rows.iter().filter_map(|row| match row {
            Row::Both { new, .. } | Row::Added(new) => Some(*new),
            Row::Removed(_) => None,
        });
        old.eq(0..a) && new.eq(0..b)
    }

    #[test]
    fn one_list_is_all_added_or_all_removed() {
        assert_eq!(run(&[], &[1, 2], 100).rows, [Row::Added(0), Row::Added(1)]);
        assert_eq!(run(&[1], &[], 100).rows, [Row::Removed(0)]);
    }

    #[test]
    fn a_pair_of_another_decade_is_never_matched() {
        assert_eq!(run(&[1], &[11], 100).rows, [Row::Removed(0), Row::Added(0)]);
    }

    proptest! {
        #[test]
        fn no_other_alignment_is_cheaper(a in prop::collection::vec(0u64..25, 0..7), b in prop::collection::vec(0u64..25, 0..7)) {
            let found = run(&a, &b, WORK);
            prop_assert!((found.cost - brute_force(&a, &b)).abs() < 1e-9, "{found:?}");
            prop_assert!(is_whole(&found, a.len(), b.len()));
        }

        #[test]
        fn a_bounded_alignment_still_holds_every_element_once(
            a in prop::collection::vec(0u64..40, 0..60),
            b in prop::collection::vec(0u64..40, 0..60),
            work in 0usize..50,
        ) {
            let found = run(&a, &b, work);
            prop_assert!(is_whole(&found, a.len(), b.len()));
            prop_assert!(found.cost + 1e-9 >= run(&a, &b, WORK).cost);
        }
    }
}
