//! Matched lists as rows in reading order, the row from which both sides are equal again, and pointers to the elements of a row.

use std::cmp::Ordering;

use counterproof_artifact::evaluation::SidePointer;
use counterproof_artifact::{Side, Sides};

use super::align::Row;
use super::output;

/// How an element changed from the baseline to new.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Operation {
    /// It is unchanged.
    Same,
    /// It changed.
    Changed,
    /// It moved, and may also have changed.
    Moved,
    /// Only new has it.
    Added,
    /// Only the baseline has it.
    Removed,
}

/// Arranges the elements of both lists in rows, so that each list keeps its order as far as the pairs allow.
///
/// At the same position, removed elements come before added ones. A crossing pair comes at its first element. Of two
/// crossing pairs, the one that `moved` comes first, then the one nearer to the top, then
/// the next one in the list of the side `preferred`.
pub(crate) fn in_reading_order(
    lengths: Sides<usize>,
    pairs: &[(usize, usize)],
    moved: impl Fn(usize) -> bool,
    preferred: Side,
) -> Vec<Row> {
    let (mut to_new, mut to_baseline) = (vec![None; lengths.baseline], vec![None; lengths.new]);
    for (i, j) in pairs {
        (to_new[*i], to_baseline[*j]) = (Some(*j), Some(*i));
    }
    let (mut i, mut j) = (0, 0);
    let mut rows = Vec::with_capacity(lengths.baseline.max(lengths.new));
    // A crossing pair is placed at its first element, and skipped when the other list reaches its second.
    let (mut read, mut read_new) = (vec![false; lengths.baseline], vec![false; lengths.new]);
    while i < lengths.baseline || j < lengths.new {
        if read.get(i) == Some(&true) {
            i += 1;
            continue;
        }
        if read_new.get(j) == Some(&true) {
            j += 1;
            continue;
        }
        let (next, next_new) = (to_new.get(i).copied(), to_baseline.get(j).copied());
        let (baseline, new) = match (next, next_new) {
            (Some(None), _) => {
                rows.push(Row::Removed(i));
                i += 1;
                continue;
            }
            (_, Some(None)) => {
                rows.push(Row::Added(j));
                j += 1;
                continue;
            }
            (Some(Some(new)), Some(Some(baseline))) => {
                let (top, other) = ((i, new), (baseline, j));
                // `i + j` and the preference are symmetric, so swapped sides give mirrored rows.
                let rank = |(i, j): (usize, usize)| (!moved(i), i + j);
                match rank(top).cmp(&rank(other)) {
                    Ordering::Less => top,
                    Ordering::Equal if preferred == Side::Baseline => top,
                    Ordering::Equal | Ordering::Greater => other,
                }
            }
            (Some(Some(new)), None) => (i, new),
            (None, Some(Some(baseline))) => (baseline, j),
            (None, None) => break,
        };
        (read[baseline], read_new[new]) = (true, true);
        rows.push(Row::Both { baseline, new });
    }
    rows
}

/// Returns the first row from which both sides are equal to the end. `None` if there is no such row, or no difference.
pub(crate) fn recovery(rows: &[(Row, Operation)]) -> Option<usize> {
    // A moved row differs at both of its positions.
    let (mut baseline_from, mut new_from) = (0, 0);
    let mut differs = false;
    for (row, _) in rows.iter().filter(|(_, operation)| *operation != Operation::Same) {
        differs = true;
        if let Row::Both { baseline: i, .. } | Row::Removed(i) = row {
            baseline_from = baseline_from.max(i + 1);
        }
        if let Row::Both { new: j, .. } | Row::Added(j) = row {
            new_from = new_from.max(j + 1);
        }
    }
    let met = |row: &(Row, Operation)| matches!(row, (Row::Both { baseline, new }, Operation::Same) if *baseline >= baseline_from && *new >= new_from);
    let met_again = rows.iter().rev().take_while(|row| met(row)).count();
    (differs && met_again > 0).then(|| rows.len() - met_again)
}

/// Pointers to the elements of a row of two aligned lists, below the list's pointer.
pub fn row_pointers(list: &str, row: Row) -> Vec<SidePointer> {
    row.elements().map(|(side, index)| SidePointer::new(side, format!("{list}/{index}"))).collect()
}

/// Pointers to the final outputs of both sides.
pub fn output_pointers() -> Vec<SidePointer> {
    Side::BOTH.map(|side| SidePointer::new(side, output::POINTER)).to_vec()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn both(baseline: usize, new: usize) -> Row {
        Row::Both { baseline, new }
    }

    #[test]
    fn each_list_is_read_in_its_own_order() {
        let rows = in_reading_order(Sides::new(3, 3), &[(0, 0), (2, 2)], |_| false, Side::Baseline);
        assert_eq!(rows, [both(0, 0), Row::Removed(1), Row::Added(1), both(2, 2)]);
    }

    #[test]
    fn a_moved_pair_comes_at_its_first_element() {
        let rows = in_reading_order(Sides::new(3, 3), &[(0, 1), (1, 2), (2, 0)], |i| i == 2, Side::Baseline);
        assert_eq!(rows, [both(2, 0), both(0, 1), both(1, 2)]);
        let rows = in_reading_order(Sides::new(3, 3), &[(0, 2), (1, 0), (2, 1)], |i| i == 0, Side::Baseline);
        assert_eq!(rows, [both(0, 2), both(1, 0), both(2, 1)]);
    }

    #[test]
    fn every_crossing_pair_is_one_row() {
        let mut rows = in_reading_order(Sides::new(4, 4), &[(0, 3), (1, 2), (2, 1), (3, 0)], |_| false, Side::Baseline);
        rows.sort_by_key(|row| if let Row::Both { baseline, .. } = row { *baseline } else { usize::MAX });
        assert_eq!(rows, [both(0, 3), both(1, 2), both(2, 1), both(3, 0)]);
    }

    #[test]
    fn recovery_starts_after_the_last_position_of_a_difference() {
        use Operation::{Added, Moved, Same};
        let rows = [(both(0, 0), Same), (Row::Added(1), Added), (both(1, 2), Same), (both(2, 3), Same)];
        assert_eq!(recovery(&rows), Some(2));
        let moved = [(both(2, 0), Moved), (both(0, 1), Same), (both(1, 2), Same), (both(3, 3), Same)];
        assert_eq!(recovery(&moved), Some(3));
        assert_eq!(recovery(&moved[..3]), None);
        assert_eq!(recovery(&rows[2..]), None);
    }
}
