//! Records a git repository when an execution begins, and resets it to that state.
//!
//! ```text
//! before the work: GitStart::record ─▶ Manifest: what git does not record, as an object of the repository
//! after the work:  Manifest + WorkTree ─▶ Differences ─▶ plan ─▶ saved commit ─▶ reset ─▶ Differences: none, or an error
//! ```
//!
//! The work can change everything that steers git: settings, attributes, filters, ignore rules, replacements, and the flags of
//! the index. So all of that is recorded before the work. Afterwards, the files are compared with the start by their content, and
//! `git` runs in a folder of our own, without filters and hooks, under safe-run. The module refuses a reset that would throw
//! away work of others, and it saves everything that a reset discards as a commit under `refs/counterproof/rollback/`.

mod differences;
mod manifest;
mod private;
mod protected;
mod refusal;
mod repository;
mod reset;
mod start;
mod work_tree;

pub use counterproof_workspace::git::{GitError, GitOptions};
pub use differences::Changes;

pub use protected::Protected;
pub use refusal::Refusal;
pub use reset::{Discarded, Reset, ResetPlan, plan, reset};
pub use start::{GitStart, RepositoryState};
