//! The dynamic-programming table of an exact alignment. A cell has the cost of the rest from one position in each list.
//!
//! There is one position between two elements. A group of `k` elements has a position for each subset of its elements that
//! may already be consumed: `2^k − 1`, without the complete group. A group that is too large for this has one position
//! before it, and is consumed as a whole.

use std::ops::Range;

use super::align::{Alignment, Lists, OPEN_UP_TO};
use super::assign::{self, Cost, LEFT_OUT};

/// The cost of an impossible pair.
const NEVER: u32 = u32::MAX;

/// A large group is matched with runs of at most this many times its elements.
const RUN_UP_TO: usize = 2;

/// One of the two lists.
struct Axis {
    groups: Vec<Range<usize>>,
    /// All positions; the last one is after the last group.
    positions: Vec<Position>,
    /// The first position of each group, and the position after the last group.
    starts: Vec<usize>,
}

/// A position in a list.
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
        let elements = open.enumerate().filter(move |(bit, _)| taken & (1 << bit) == 0);
        elements.map(move |(bit, element)| (element, position + (1 << bit)))
    }

    /// Counts the elements that can be consumed one at a time, summed over all positions.
    fn openings(&self) -> usize {
        self.groups.iter().filter(|group| group.len() <= OPEN_UP_TO).map(|group| group.len() << (group.len() - 1)).sum()
    }

    /// Returns the runs that start with a group and have at most `most` elements. The first run is the group alone, however
    /// large it is.
    fn runs(&self, first: usize, most: usize) -> Vec<Run> {
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

/// Consecutive groups of a list.
#[derive(Clone, Copy)]
struct Run {
    /// The position after the last group.
    after: usize,
    /// The number of elements of all groups.
    count: usize,
}

/// A position of one of the two lists.
#[derive(Clone, Copy)]
struct At<'a> {
    axis: &'a Axis,
    position: usize,
}

/// A large group matched with a run of the other list.
struct RunMatch {
    cost: Cost,
    /// The position after the run.
    after: usize,
    /// The elements of the run.
    elements: Range<usize>,
}

/// A step from one position of the table to a later one.
#[derive(Clone)]
struct Step {
    to: (usize, usize),
    taken: Taken,
}

/// The elements that a step consumes.
#[derive(Clone)]
enum Taken {
    /// Elements of one side, left out.
    LeftOut,
    /// A pair of elements.
    Pair(usize, usize),
    /// A large group and a run, matched by assignment.
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

    /// Returns the cheapest next step and the cost of the rest with it. `None` at the end. Among steps of equal cost, one
    /// with a pair comes first.
    fn cheapest(&self, i: usize, j: usize, rest: &[Cost]) -> Option<(Cost, Step)> {
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
