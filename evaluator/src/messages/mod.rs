//! Messages: one short sentence for each difference, failure and measure. All outputs use the same sentences.

mod actions;
mod changes;
mod divergence;
mod failure;
mod measures;
mod output;
pub mod usage;

pub use actions::action;
pub(crate) use changes::{changes, moved};
pub use changes::{field_path, reordering};
pub use divergence::{first_divergence, step_name};
pub use failure::{failure, violations};
pub use measures::{measure, more_runs, probability};
pub use output::output;
