//! What an agent does outside of its model calls: file changes of its working tree, and commands below `safe-run`.

mod git;
mod run_commands;
mod working_tree;

pub use run_commands::{recorded_commands, remove_recorded};
pub use working_tree::{ObserveError, WorkingTree};
