//! Messages: one short sentence for each difference, failure and measure. All outputs use the same sentences.

mod differences;
pub mod divergence;

pub use differences::{
    action, changes, failure, measure, moved, output, place_name, probability, reordering, violations,
};
pub use divergence::step_name;
