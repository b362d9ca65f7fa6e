//! Messages: one short sentence for each difference, failure and measure. All outputs use the same sentences.

mod differences;
mod effects;
pub mod usage;

pub use differences::action;
pub(crate) use differences::lasting_divergence;
pub use differences::output;
pub(crate) use differences::{changes, moved, target};
pub use differences::{counts, measure, more_runs, probability};
pub use differences::{failure, violations};
pub use differences::{field_path, reordering};
pub use differences::{first_divergence, step_name};
pub use effects::{effect, effects};
