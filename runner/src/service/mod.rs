//! The agent's own process: a server that is started before a run and stopped after it, the preparation of its folder, and a
//! temporary checkout of another commit.

mod output;
mod readiness;
mod running_agent;
mod setup;
mod start_spec;
mod worktree;

pub use running_agent::{AgentDied, AgentStartError, RunningAgent, StartContext};
pub use setup::{SetupError, run_setup};
pub use start_spec::{Ready, ReadyError, StartSpec, UrlTemplate};
pub use worktree::{TemporaryWorktree, WorktreeError, commit_of};
