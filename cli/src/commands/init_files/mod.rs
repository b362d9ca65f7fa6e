//! The files that `init` writes, by kind of agent and CI system.

mod ci;
mod files;

pub(crate) use ci::CiKind;
pub(crate) use files::{AgentKind, IGNORED, all, next_step};
