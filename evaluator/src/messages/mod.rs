//! Messages: one short sentence for each difference, failure and measure. All outputs use the same sentences.

mod actions;
mod changes;
mod divergence;
mod failure;
mod measures;
mod output;
pub(crate) mod usage;

pub use actions::action;
pub(crate) use changes::{changes, field_path, moved, reordering};
pub use divergence::first_divergence;
pub(crate) use divergence::step_name;
pub(crate) use failure::{failure, violations};
pub(crate) use measures::{measure, more_runs, probability};
pub use output::output;
