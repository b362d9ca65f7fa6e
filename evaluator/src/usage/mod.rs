//! Time, size and cost: measured for each answer, and compared over all cases by a signed-rank test.

mod measure;
mod ratio;
mod repetition;
mod signed_rank;
mod suite;

pub(crate) use measure::{of_answer, typical};
pub(crate) use repetition::{BaselineRepetition, is_loop, longest};
pub(crate) use suite::{compare_all, growth_p};
