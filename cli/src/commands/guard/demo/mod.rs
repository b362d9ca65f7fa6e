//! `counterproof guard demo`: two versions of a built-in MCP agent, recorded through the guard, compared and reported.

mod command;
mod recording;
mod server;

pub(super) use command::{Args, run};
pub(super) use server::{ServerArgs, serve};
