//! Who acts: the run, the agent and its environment, from the variables `SUB_*`, and this process as a source of events.
//!
//! The variables are set by `guard run`, or by any other program. Values that cannot be used are warnings: a wrong label must not
//! stop the tool calls of an agent.

mod event_source;
mod run_identity;
mod variables;
mod warning;
mod workload;

pub use event_source::event_source;
pub use run_identity::{CLIENTS, RunIdentity, WORKING_ENVIRONMENTS};
pub use variables::{RUN_ID, VARIABLES, WORKLOAD, process_variable};
pub use warning::IdentityWarning;
pub use workload::{InvalidWorkload, workload_with_label};
