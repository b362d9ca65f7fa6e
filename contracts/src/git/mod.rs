//! Records a git repository when an execution begins, and resets it to that state.
//!
//! The module runs the `git` program, without hooks. It refuses a reset that would throw away work of others, and it saves
//! everything that a reset discards as a commit under `refs/counterproof/rollback/`.

mod repository;
mod reset;
mod start;

pub use repository::{Changes, GitError};
pub use reset::{Discarded, Reset, ResetPlan, plan, reset};
pub use start::{GitStart, Protected, Refusal};
