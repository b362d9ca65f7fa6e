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

use counterproof_artifact::{Side, Sides};
use similar::{Algorithm, DiffOp};

use super::assign::{self, Cost, LEFT_OUT};
use super::lcs;

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
    /// The index of the element on each side.
    pub const fn indexes(self) -> Sides<Option<usize>> {
        match self {
            Row::Both { baseline, new } => Sides::new(Some(baseline), Some(new)),
            Row::Removed(index) => Sides::new(Some(index), None),
            Row::Added(index) => Sides::new(None, Some(index)),
        }
    }

    /// Returns the elements of the row, the baseline's first.
    pub(crate) fn elements(self) -> impl Iterator<Item = (Side, usize)> {
        self.indexes().zip(Sides::from(Side::BOTH)).into_array().into_iter().filter_map(|(at, side)| Some((side, at?)))
    }

    /// Returns the element by which messages name the row: new's, or the baseline's if new has none.
    pub(crate) const fn named_by(self) -> (Side, usize) {
        match self {
            Row::Both { new: index, .. } | Row::Added(index) => (Side::New, index),
            Row::Removed(index) => (Side::Baseline, index),
        }
    }

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

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Alignment {
    /// The pairs, in the order of the baseline's list.
    pub pairs: Vec<(usize, usize)>,
    /// The cost of all pairs and of all elements left out.
    pub cost: Cost,
    /// False if the lists were too long for the cheapest alignment.
    pub exact: bool,
}

#[derive(Debug, Clone, Copy)]
pub(crate) struct List<'a> {
    /// For each element, a hash that is equal for equal elements.
    pub keys: &'a [u64],
    /// For each element, the number of its group, in ascending order.
    pub groups: &'a [usize],
}

pub(crate) struct Lists<'a> {
    pub baseline: List<'a>,
    pub new: List<'a>,
    /// Estimates the steps to compute the cost of one pair.
    pub effort: &'a dyn Fn() -> usize,
    /// Returns the cost of a pair, or `None` if the two cannot be paired. Not called for equal keys, which cost nothing.
    pub pair: &'a dyn Fn(usize, usize) -> Option<Cost>,
    /// Compares the lists by content. Among alignments of equal cost, the one found with the lesser list first is used, so
    /// that the result does not depend on which side is which.
    pub order: &'a dyn Fn() -> Ordering,
}

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
        // Alignments of equal cost differ by position, so the lesser list always comes first: swapped sides give the mirrored
        // result.
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
    // The elements of a group have no order, so two groups are equal if their sorted keys are.
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

fn cut(groups: &[Range<usize>], range: &Range<usize>) -> Vec<Range<usize>> {
    // An anchor can lie inside a group, so a stretch may begin or end with a part of one.
    let within = groups.iter().map(|group| group.start.max(range.start)..group.end.min(range.end));
    within.filter(|group| !group.is_empty()).collect()
}

fn in_order(lists: &Lists<'_>, left: Range<usize>, right: Range<usize>, found: &mut Alignment) {
    let all = left.len() + right.len();
    // The last resort, for a stretch without enough work left: linear, and the same for swapped sides.
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
    pub(super) fn cost(&self, i: usize, j: usize) -> Option<Cost> {
        if self.baseline.keys[i] == self.new.keys[j] { Some(0) } else { (self.pair)(i, j) }
    }
}

const NEVER: u32 = u32::MAX;

/// A large group is matched with runs of at most this many times its elements.
const RUN_UP_TO: usize = 2;

struct Axis {
    groups: Vec<Range<usize>>,
    /// All positions; the last one is after the last group.
    positions: Vec<Position>,
    /// The first position of each group, and the position after the last group.
    starts: Vec<usize>,
}

#[derive(Clone, Copy)]
struct Position {
    group: usize,
    /// A bit for each consumed element of the group.
    taken: usize,
}

impl Axis {
    fn new(groups: &[Range<usize>]) -> Self {
        let mut axis = Self { groups: groups.to_vec(), positions: Vec::new(), starts: Vec::new() };
        for (group, elements) in groups.iter().enumerate() {
            axis.starts.push(axis.positions.len());
            // A bit mask of the consumed elements is the position within a group, so that consuming one is an addition.
            axis.positions.extend((0..subsets(elements.len())).map(|taken| Position { group, taken }));
        }
        axis.starts.push(axis.positions.len());
        axis.positions.push(Position { group: groups.len(), taken: 0 });
        axis
    }

    fn group(&self, position: usize) -> Option<&Range<usize>> {
        self.groups.get(self.positions[position].group)
    }

    /// True if the group can only be consumed as a whole.
    fn is_closed(&self, position: usize) -> bool {
        self.group(position).is_some_and(|group| group.len() > OPEN_UP_TO)
    }

    /// Returns the elements that can be consumed one at a time, each with the position after it.
    fn next(&self, position: usize) -> impl Iterator<Item = (usize, usize)> + Clone {
        let taken = self.positions[position].taken;
        let open = self.group(position).filter(|group| group.len() <= OPEN_UP_TO).cloned().unwrap_or_default();
        // A large group has 2^k subsets and is therefore never opened; it is matched as a whole.
        let elements = open.enumerate().filter(move |(bit, _)| taken & (1 << bit) == 0);
        elements.map(move |(bit, element)| (element, position + (1 << bit)))
    }

    /// Counts the elements that can be consumed one at a time, summed over all positions.
    fn openings(&self) -> usize {
        self.groups.iter().filter(|group| group.len() <= OPEN_UP_TO).map(|group| group.len() << (group.len() - 1)).sum()
    }

    /// Returns the runs that start with a group and have at most `most` elements.
    fn runs(&self, first: usize, most: usize) -> Vec<Run> {
        // The first run is the group alone, however large it is.
        let start = self.groups[first].start;
        let groups = self.groups[first..].iter().enumerate();
        let runs =
            groups.map(|(offset, group)| Run { after: self.starts[first + offset + 1], count: group.end - start });
        runs.enumerate().take_while(|(offset, run)| *offset == 0 || run.count <= most).map(|(_, run)| run).collect()
    }
}

const fn subsets(elements: usize) -> usize {
    if elements > OPEN_UP_TO { 1 } else { (1 << elements) - 1 }
}

#[derive(Clone, Copy)]
struct Run {
    /// The position after the last group.
    after: usize,
    count: usize,
}

#[derive(Clone, Copy)]
struct At<'a> {
    axis: &'a Axis,
    position: usize,
}

/// A large group matched with a run of the other list.
struct RunMatch {
    cost: Cost,
    after: usize,
    elements: Range<usize>,
}

/// A step from one position of the table to a later one.
#[derive(Clone)]
struct Step {
    to: (usize, usize),
    taken: Taken,
}

#[derive(Clone)]
enum Taken {
    /// Elements of one side, left out.
    LeftOut,
    Pair(usize, usize),
    Whole(Range<usize>, Range<usize>),
}

/// The table with the costs of all pairs.
pub(super) struct Table {
    left: Axis,
    right: Axis,
    first: (usize, usize),
    columns: usize,
    pairs: Vec<u32>,
}

impl Table {
    /// Prepares the table of two stretches. `None` if it needs more than the remaining work.
    pub(super) fn within(
        lists: &Lists<'_>,
        left: &[Range<usize>],
        right: &[Range<usize>],
        work: &mut usize,
    ) -> Option<Self> {
        let length = |groups: &[Range<usize>]| groups.iter().map(Range::len).sum::<usize>();
        let (rows, columns) = (length(left), length(right));
        let cells = rows.saturating_mul(columns).saturating_mul((lists.effort)().max(1));
        // Checked before the axes are built, because a list has up to 2^k - 1 positions per group.
        if cells > *work || !can_be_listed(left, *work) || !can_be_listed(right, *work) {
            return None;
        }
        let (left, right) = (Axis::new(left), Axis::new(right));
        let steps = left.openings().saturating_mul(right.openings());
        let positions = left.positions.len().saturating_mul(right.positions.len());
        let whole = whole_effort(&left, &right).saturating_add(whole_effort(&right, &left));
        let needed = cells.max(steps).max(positions).saturating_add(whole);
        if needed > *work {
            return None;
        }
        *work -= needed;
        let start = |axis: &Axis| axis.groups.first().map_or(0, |group| group.start);
        let (i, j) = (start(&left), start(&right));
        // Every pair is compared once, here. The cells look up its cost once per subset of its groups.
        let cost = |row, column| lists.cost(i + row, j + column).and_then(|cost| u32::try_from(cost).ok());
        let pairs = (0..rows).flat_map(|row| (0..columns).map(move |column| (row, column)));
        let pairs = pairs.map(|(row, column)| cost(row, column).unwrap_or(NEVER)).collect();
        Some(Self { left, right, first: (i, j), columns, pairs })
    }

    fn pair(&self, i: usize, j: usize) -> Option<Cost> {
        let cost = self.pairs[(i - self.first.0) * self.columns + (j - self.first.1)];
        (cost != NEVER).then_some(Cost::from(cost))
    }

    /// Adds the cheapest alignment of the two stretches to `found`.
    pub(super) fn solve(&self, found: &mut Alignment) {
        let width = self.right.positions.len();
        // From the end, because the cost of a cell depends on the cells of later positions only.
        let mut rest: Vec<Cost> = vec![0; self.left.positions.len() * width];
        for i in (0..self.left.positions.len()).rev() {
            for j in (0..width).rev() {
                if let Some((cost, _)) = self.cheapest(i, j, &rest) {
                    rest[i * width + j] = cost;
                }
            }
        }
        found.cost += rest.first().copied().unwrap_or(0);
        // Computing the steps on the cheapest path a second time takes less memory than storing a step in each cell.
        let mut at = (0, 0);
        while let Some((_, step)) = self.cheapest(at.0, at.1, &rest) {
            match step.taken {
                Taken::LeftOut => {}
                Taken::Pair(i, j) => found.pairs.push((i, j)),
                Taken::Whole(left, right) => found.pairs.extend(self.whole(&left, &right)),
            }
            at = step.to;
        }
    }

    /// Returns the cheapest next step and the cost of the rest with it. `None` at the end.
    fn cheapest(&self, i: usize, j: usize, rest: &[Cost]) -> Option<(Cost, Step)> {
        // Among steps of equal cost, one with a pair comes first.
        let width = self.right.positions.len();
        let mut best: Option<(Cost, Step)> = None;
        let mut consider = |cost: Cost, to: (usize, usize), taken: Taken| {
            let cost = cost + rest[to.0 * width + to.1];
            if best.as_ref().is_none_or(|(least, _)| cost < *least) {
                best = Some((cost, Step { to, taken }));
            }
        };
        for (element, after) in self.left.next(i) {
            for (other, right_after) in self.right.next(j) {
                if let Some(cost) = self.pair(element, other) {
                    consider(cost, (after, right_after), Taken::Pair(element, other));
                }
            }
        }
        let (left, right) = (At { axis: &self.left, position: i }, At { axis: &self.right, position: j });
        // A run consists of complete groups, so it cannot start in a group that is partly consumed.
        if self.left.is_closed(i) && self.right.positions[j].taken == 0 {
            for run in run_matches(left, right, |row, column| self.pair(column, row)) {
                let group = self.left.group(i).cloned().unwrap_or_default();
                consider(run.cost, (i + 1, run.after), Taken::Whole(group, run.elements));
            }
        }
        if self.right.is_closed(j) && self.left.positions[i].taken == 0 {
            for run in run_matches(right, left, |row, column| self.pair(row, column)) {
                let group = self.right.group(j).cloned().unwrap_or_default();
                consider(run.cost, (run.after, j + 1), Taken::Whole(run.elements, group));
            }
        }
        // Elements of a group can be left out in any order, so only one order is tried.
        if let Some((count, after)) = left_out(&self.left, i) {
            consider(count * LEFT_OUT, (after, j), Taken::LeftOut);
        }
        if let Some((count, after)) = left_out(&self.right, j) {
            consider(count * LEFT_OUT, (i, after), Taken::LeftOut);
        }
        best
    }

    fn whole(&self, left: &Range<usize>, right: &Range<usize>) -> Vec<(usize, usize)> {
        let pair = |row: usize, column: usize| self.pair(left.start + row, right.start + column);
        let pairs = assign::assign(left.len(), right.len(), pair).pairs;
        pairs.into_iter().map(|(row, column)| (left.start + row, right.start + column)).collect()
    }
}

/// Matches the large group at a position with each run of the other list. The first parameter of `pair` is the element of
/// the run.
fn run_matches(large: At<'_>, other: At<'_>, pair: impl Fn(usize, usize) -> Option<Cost>) -> Vec<RunMatch> {
    let (Some(group), Some(first)) = (large.axis.group(large.position), other.axis.group(other.position)) else {
        return Vec::new();
    };
    let runs = other.axis.runs(other.axis.positions[other.position].group, RUN_UP_TO * group.len());
    // Each run extends the one before, so one assignment that grows row by row gives the costs of all of them.
    let longest = runs.last().map_or(0, |run| run.count);
    let costs = assign::growing(longest, group.len(), |row, column| pair(first.start + row, group.start + column));
    let matched = |run: Run| RunMatch {
        cost: costs[run.count - 1],
        after: run.after,
        elements: first.start..first.start + run.count,
    };
    runs.into_iter().map(matched).collect()
}

/// Returns the number of elements to leave out next, and the position after them.
fn left_out(axis: &Axis, position: usize) -> Option<(Cost, usize)> {
    if axis.is_closed(position) {
        return axis.group(position).map(|group| (group.len() as Cost, position + 1));
    }
    axis.next(position).next().map(|(_, after)| (1, after))
}

/// True if the list has no more positions than the remaining work.
fn can_be_listed(groups: &[Range<usize>], work: usize) -> bool {
    groups.iter().map(|group| subsets(group.len())).sum::<usize>() <= work
}

/// Estimates the steps of matching each large group of one list with every run of the other.
fn whole_effort(axis: &Axis, other: &Axis) -> usize {
    let large = axis.groups.iter().filter(|group| group.len() > OPEN_UP_TO);
    let effort = |group: &Range<usize>| {
        let runs = (0..other.groups.len()).map(|first| {
            let longest = other.runs(first, RUN_UP_TO * group.len()).last().map_or(0, |run| run.count);
            assign::effort(longest, group.len())
        });
        runs.fold(0, usize::saturating_add)
    };
    large.map(effort).fold(0, usize::saturating_add)
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

    /// True if every element is in at most one pair, no two pairs cross, and the cost is the sum of theirs.
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
