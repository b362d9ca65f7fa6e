//! Minimum-cost assignment (Kuhn 1955, in the form of Jonker and Volgenant 1987 that adds one row at a time): which
//! element of one set stands for which of another, where either may be left out.
//!
//! Costs are whole numbers, so that no sum depends on the order in which it is made.

pub(crate) use crate::values::distance::Cost;

/// What it costs to leave out one element.
pub(crate) const LEFT_OUT: Cost = 10_000;

/// An assignment of rows to columns.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Assignment {
    /// The matched pairs, in the order of the rows.
    pub pairs: Vec<(usize, usize)>,
    /// What the pairs and all that was left out on either side cost together.
    pub cost: Cost,
}

/// About how many steps it takes to assign so many rows to so many columns.
pub(crate) const fn effort(rows: usize, columns: usize) -> usize {
    rows.saturating_mul(rows).saturating_mul(columns.saturating_add(rows))
}

/// The cheapest assignment. `pair` says what a pair costs, `None` where the two cannot stand for each other.
pub(crate) fn assign(rows: usize, columns: usize, pair: impl Fn(usize, usize) -> Option<Cost>) -> Assignment {
    let mut matching = Matching::new(rows, columns, pair);
    (0..rows).for_each(|row| matching.add(row));
    let cost = matching.cost(rows);
    Assignment { pairs: matching.pairs(), cost }
}

/// What the first row alone costs with all columns, the first two rows, and so on.
pub(crate) fn growing(rows: usize, columns: usize, pair: impl Fn(usize, usize) -> Option<Cost>) -> Vec<Cost> {
    let mut matching = Matching::new(rows, columns, pair);
    (0..rows)
        .map(|row| {
            matching.add(row);
            matching.cost(row + 1)
        })
        .collect()
}

/// A cost in the middle of the computation: a pair can save more than it costs.
type Balance = i64;

/// Stands for a pair that cannot be; more than leaving both out, so that it is never taken.
const NEVER: Balance = 4 * LEFT_OUT.cast_signed();

/// The rows that were added so far, matched as cheaply as possible. Behind the columns stands one place for each row
/// that is left out.
struct Matching<F> {
    pair: F,
    columns: usize,
    places: usize,
    row_potential: Vec<Balance>,
    place_potential: Vec<Balance>,
    /// The row at each place. The last place is where a row stands while it looks for its own.
    row_at: Vec<Option<usize>>,
}

impl<F: Fn(usize, usize) -> Option<Cost>> Matching<F> {
    fn new(rows: usize, columns: usize, pair: F) -> Self {
        let places = columns + rows;
        Self {
            pair,
            columns,
            places,
            row_potential: vec![0; rows],
            place_potential: vec![0; places + 1],
            row_at: vec![None; places + 1],
        }
    }

    /// What a row costs at a place, less what it saves there: a column that is taken is not left out.
    fn balance(&self, row: usize, place: usize) -> Balance {
        if place >= self.columns {
            return LEFT_OUT.cast_signed();
        }
        (self.pair)(row, place).map_or(NEVER, |cost| cost.cast_signed() - LEFT_OUT.cast_signed())
    }

    fn add(&mut self, row: usize) {
        let start = self.places;
        self.row_at[start] = Some(row);
        let mut least = vec![Balance::MAX; self.places];
        let mut came_from = vec![start; self.places];
        let mut seen = vec![false; self.places + 1];
        let mut place = start;
        while let Some(row) = self.row_at[place] {
            seen[place] = true;
            let (mut step, mut next) = (Balance::MAX, place);
            for candidate in 0..self.places {
                if seen[candidate] {
                    continue;
                }
                let slack = self.balance(row, candidate) - self.row_potential[row] - self.place_potential[candidate];
                if slack < least[candidate] {
                    (least[candidate], came_from[candidate]) = (slack, place);
                }
                if least[candidate] < step {
                    (step, next) = (least[candidate], candidate);
                }
            }
            for (other, seen) in seen.iter().enumerate() {
                if *seen {
                    if let Some(row) = self.row_at[other] {
                        self.row_potential[row] += step;
                    }
                    self.place_potential[other] -= step;
                } else if other < self.places {
                    least[other] -= step;
                }
            }
            place = next;
        }
        while place != start {
            let before = came_from[place];
            self.row_at[place] = self.row_at[before];
            place = before;
        }
        self.row_at[start] = None;
    }

    /// What the first `rows` rows cost with all columns.
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
}
