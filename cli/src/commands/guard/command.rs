//! The subcommands, and the dispatch.

use counterproof_artifact::Exit;

use super::{demo, import, policy, proxy, restore, run, secrets, shim};
use crate::command_error::CommandError;
use crate::streams::Streams;

/// Inspect, decide about and record the tool calls of agents.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, clap::Subcommand)]
enum Command {
    // The arguments with many options are boxed, so that the others do not take their size.
    Shim(Box<shim::Args>),
    Proxy(Box<proxy::Args>),
    Policy(policy::Args),
    Run(Box<run::Args>),
    Import(Box<import::Args>),
    Restore(restore::Args),
    Secrets(secrets::Args),
    Demo(demo::Args),
    #[command(hide = true)]
    DemoServer(demo::ServerArgs),
}

pub(crate) fn run_guard(args: &Args, streams: &mut Streams) -> Result<Exit, CommandError> {
    match &args.command {
        Command::Shim(args) => shim::run(args, streams),
        Command::Proxy(args) => proxy::run(args, streams),
        Command::Policy(args) => policy::run(args, streams),
        Command::Run(args) => run::run(args, streams),
        Command::Import(args) => import::run(args, streams),
        Command::Restore(args) => restore::run(args, streams),
        Command::Secrets(args) => secrets::run(args, streams),
        Command::Demo(args) => demo::run(args, streams),
        Command::DemoServer(_) => demo::serve(),
    }
}
