//! The summary of an alignment of events, as the evaluation stores it.

use counterproof_artifact::evaluation::{Alignment, Operations};

use crate::diff::Differences;
use crate::diff::assign::{Cost, LEFT_OUT};
use crate::diff::pointers::row_pointers;
use crate::diff::rows::Operation;

/// Summarises the aligned events.
pub(crate) fn summary(differences: &Differences) -> Alignment {
    let mut operations = Operations::default();
    for row in &differences.events {
        let count = match row.operation() {
            Operation::Same => &mut operations.same,
            Operation::Changed => &mut operations.changed,
            Operation::Moved => &mut operations.moved,
            Operation::Added => &mut operations.added,
            Operation::Removed => &mut operations.removed,
        };
        *count += 1;
    }
    let recovery = differences.recovery.and_then(|row| differences.events.get(row));
    Alignment {
        cost: in_elements(differences.cost),
        bounded: !differences.exact,
        operations,
        recovery: recovery.map(|row| row_pointers("/events", row.row)).unwrap_or_default(),
    }
}

fn in_elements(cost: Cost) -> f64 {
    cost as f64 / LEFT_OUT as f64
}
