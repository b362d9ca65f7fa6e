//! The files that `init` writes, by kind of agent and CI system.

mod files;

pub(crate) use files::{AgentKind, CiKind, IGNORED, all, next_step};
