//! Time, size and cost of one answer, and the limits that an expectation sets to them.

pub(crate) mod limits;
mod measure;
mod repetition;

pub(crate) use measure::{of_answer, typical};
pub(crate) use repetition::{BaselineRepetition, is_loop, longest};
