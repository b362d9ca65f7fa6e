//! Records a git repository when an execution begins, and resets it to that state.
//!
//! The module runs the `git` program, without hooks. It refuses a reset that would throw away work of others, and it saves
//! everything that a reset discards as a commit under `refs/counterproof/rollback/`.

mod command;
mod error;
mod protected;
mod refusal;
mod repository;
mod reset;
mod save;
mod start;
mod status;

pub use error::GitError;
pub use protected::Protected;
pub use refusal::Refusal;
pub use reset::{Discarded, Reset, ResetPlan, plan, reset};
pub use start::GitStart;
pub use status::Changes;
