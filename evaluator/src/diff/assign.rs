//! Pairs the elements of two sets: equal elements first, the rest by minimum-cost assignment, where elements of both may be left out
//! (Kuhn 1955, in the form of Jonker and Volgenant 1987, which adds one row at a time). Costs are integers, so that sums do not depend
//! on the order of addition.

use std::cmp::Ordering;
use std::collections::VecDeque;

use crate::values::meaning::HashedMap;

pub(crate) use crate::values::meaning::Cost;

pub(crate) const LEFT_OUT: Cost = 10_000;

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Assignment {
    /// The matched pairs, in the order of the rows.
    pub pairs: Vec<(usize, usize)>,
    /// The cost of all pairs and of all elements left out on both sides.
    pub cost: Cost,
}

pub(crate) const fn effort(rows: usize, columns: usize) -> usize {
    rows.saturating_mul(rows).saturating_mul(columns.saturating_add(rows))
}

/// Returns the cheapest assignment. `pair` returns the cost of a pair, or `None` if the two cannot be paired.
pub(crate) fn assign(rows: usize, columns: usize, pair: impl Fn(usize, usize) -> Option<Cost>) -> Assignment {
    let mut matching = PartialAssignment::new(rows, columns, pair);
    (0..rows).for_each(|row| matching.add(row));
    let cost = matching.cost(rows);
    Assignment { pairs: matching.pairs(), cost }
}

/// Returns the cost of assigning the first row to the columns, then the first two rows, and so on.
pub(crate) fn growing(rows: usize, columns: usize, pair: impl Fn(usize, usize) -> Option<Cost>) -> Vec<Cost> {
    let mut matching = PartialAssignment::new(rows, columns, pair);
    (0..rows)
        .map(|row| {
            matching.add(row);
            matching.cost(row + 1)
        })
        .collect()
}

/// A cost during the computation. It can be negative: a pair can save more than it costs.
type Balance = i64;

/// The cost of an impossible pair. It is more than leaving both elements out, so that it is never chosen.
const NEVER: Balance = 4 * LEFT_OUT.cast_signed();

/// The cheapest matching of the rows added so far. After the columns there is one slot per row for leaving it out.
struct PartialAssignment<F> {
    pair: F,
    columns: usize,
    slots: usize,
    row_potential: Vec<Balance>,
    slot_potential: Vec<Balance>,
    /// The row in each slot. The last slot holds the row that is being added.
    row_at: Vec<Option<usize>>,
}

impl<F: Fn(usize, usize) -> Option<Cost>> PartialAssignment<F> {
    fn new(rows: usize, columns: usize, pair: F) -> Self {
        // With one slot for each row, leaving any number of rows out is always possible.
        let slots = columns + rows;
        Self {
            pair,
            columns,
            slots,
            row_potential: vec![0; rows],
            slot_potential: vec![0; slots + 1],
            row_at: vec![None; slots + 1],
        }
    }

    /// Returns the cost of a row in a slot, minus what it saves: a matched column need not be left out.
    fn balance(&self, row: usize, slot: usize) -> Balance {
        // Leaving the row out saves nothing, since its column-less slot has no element of the other side.
        if slot >= self.columns {
            return LEFT_OUT.cast_signed();
        }
        (self.pair)(row, slot).map_or(NEVER, |cost| cost.cast_signed() - LEFT_OUT.cast_signed())
    }

    /// Adds a row along the cheapest augmenting path, and updates the potentials so that all slacks stay non-negative.
    fn add(&mut self, row: usize) {
        let start = self.slots;
        self.row_at[start] = Some(row);
        let mut least = vec![Balance::MAX; self.slots];
        let mut came_from = vec![start; self.slots];
        let mut seen = vec![false; self.slots + 1];
        let mut slot = start;
        // Dijkstra over the slots: each round fixes the nearest unseen slot, until that slot is free.
        while let Some(row) = self.row_at[slot] {
            seen[slot] = true;
            let (mut step, mut next) = (Balance::MAX, slot);
            for candidate in 0..self.slots {
                if seen[candidate] {
                    continue;
                }
                let slack = self.balance(row, candidate) - self.row_potential[row] - self.slot_potential[candidate];
                if slack < least[candidate] {
                    (least[candidate], came_from[candidate]) = (slack, slot);
                }
                if least[candidate] < step {
                    (step, next) = (least[candidate], candidate);
                }
            }
            // Shifting the potentials along with the search keeps every slack non-negative and makes the next edge tight.
            for (other, seen) in seen.iter().enumerate() {
                if *seen {
                    if let Some(row) = self.row_at[other] {
                        self.row_potential[row] += step;
                    }
                    self.slot_potential[other] -= step;
                } else if other < self.slots {
                    least[other] -= step;
                }
            }
            slot = next;
        }
        // Shift the rows along the path, from its free end back to the new row.
        while slot != start {
            let before = came_from[slot];
            self.row_at[slot] = self.row_at[before];
            slot = before;
        }
        self.row_at[start] = None;
    }

    /// Returns the cost of the first `rows` rows and all columns.
    fn cost(&self, rows: usize) -> Cost {
        let pairs = self.matched();
        let (count, sum) = pairs.fold((0, 0), |(count, sum), (row, column)| {
            (count + 1, sum + (self.pair)(row, column).unwrap_or(2 * LEFT_OUT))
        });
        sum + (rows + self.columns - 2 * count) as Cost * LEFT_OUT
    }

    fn matched(&self) -> impl Iterator<Item = (usize, usize)> {
        let taken = self.row_at.iter().take(self.columns).enumerate();
        taken.filter_map(|(column, row)| row.map(|row| (row, column)))
    }

    fn pairs(&self) -> Vec<(usize, usize)> {
        let mut pairs: Vec<_> = self.matched().filter(|(row, column)| (self.pair)(*row, *column).is_some()).collect();
        pairs.sort_unstable();
        pairs
    }
}

/// The bound on one assignment, in steps. It allows about 300 unequal elements per side.
pub(crate) const WORK: usize = 64_000_000;

/// Two sets to match. Indexes count within each set.
pub(crate) struct Sets<'a> {
    /// For each element of the baseline's set, a hash that is equal for equal elements.
    pub baseline_keys: &'a [u64],
    pub new_keys: &'a [u64],
    /// The cost of an unequal pair; `None` if the two cannot be paired.
    pub pair: &'a dyn Fn(usize, usize) -> Option<Cost>,
    /// The order of the two sets by content: see [`super::align::Lists::order`].
    pub order: &'a dyn Fn() -> Ordering,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Matching {
    /// The pairs, in the order of the baseline's set.
    pub pairs: Vec<(usize, usize)>,
    /// False if the sets were too large for the cheapest matching.
    pub exact: bool,
}

pub(crate) fn pair_off(sets: &Sets<'_>) -> Matching {
    pair_off_bounded(sets, WORK)
}

fn pair_off_bounded(sets: &Sets<'_>, work: usize) -> Matching {
    // Equal elements first, in linear time. The distance is a metric, so pairing them never costs more than leaving them apart,
    // and the assignment, whose work is cubic, gets only the rest.
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
    // The map has no order, and the result must not depend on one.
    right.sort_unstable();

    let (fewer, more) = (left.len().min(right.len()), left.len().max(right.len()));
    let exact = effort(fewer, more) <= work;
    if !exact {
        // The bound counts steps and not time, so that the same sets always give the same pairs.
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
        let turned = assign(right.len(), left.len(), |row, column| cost(column, row)).pairs;
        turned.into_iter().map(|(row, column)| (column, row)).collect()
    } else {
        assign(left.len(), right.len(), cost).pairs
    };
    found.into_iter().map(|(row, column)| (left[row], right[column])).collect()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn brute_force(rows: usize, free: &mut Vec<bool>, table: &[Vec<Option<Cost>>]) -> Cost {
        let Some(row) = rows.checked_sub(1) else {
            return free.iter().filter(|free| **free).count() as Cost * LEFT_OUT;
        };
        let mut best = LEFT_OUT + brute_force(row, free, table);
        for column in 0..free.len() {
            if let (true, Some(cost)) = (free[column], table[row][column]) {
                free[column] = false;
                best = best.min(cost + brute_force(row, free, table));
                free[column] = true;
            }
        }
        best
    }

    proptest! {
        #[test]
        fn no_other_assignment_is_cheaper(
            table in prop::collection::vec(prop::collection::vec(prop::option::of(0..2 * LEFT_OUT), 5), 0..6), columns in 0..6_usize,
        ) {
            let columns = columns.min(5);
            let pair = |row: usize, column: usize| table[row][column];
            let found = assign(table.len(), columns, pair);
            prop_assert_eq!(found.cost, brute_force(table.len(), &mut vec![true; columns], &table));
            let sum: Cost = found.pairs.iter().map(|(row, column)| table[*row][*column].unwrap()).sum();
            let left_out = table.len() + columns - 2 * found.pairs.len();
            prop_assert_eq!(found.cost, sum + left_out as Cost * LEFT_OUT);
            let grown = growing(table.len(), columns, pair);
            for (rows, cost) in grown.into_iter().enumerate() {
                prop_assert_eq!(cost, assign(rows + 1, columns, pair).cost);
            }
        }
    }

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
