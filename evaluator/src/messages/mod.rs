//! Messages: one short sentence for each difference, failure and measure. All outputs use the same sentences.

mod differences;
mod divergence;

pub use differences::{action, output};
pub(crate) use differences::{changes, failure, measure, moved, place_name, probability, reordering, violations};
pub use divergence::first_divergence;
pub(crate) use divergence::step_name;
