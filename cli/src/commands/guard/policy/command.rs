//! The subcommands, and the dispatch.

use counterproof_artifact::Exit;

use super::{diff, explain, lint, test};
use crate::command_error::CommandError;
use crate::streams::Streams;

/// Check, explain, compare and test policies.
///
/// A policy is a file in JSON or YAML: the rules by which tool calls are allowed, refused and limited. `docs/policy.md` describes it.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    #[command(subcommand)]
    command: Command,

    /// Print the result as one JSON document
    #[arg(long, global = true)]
    json: bool,
}

#[derive(Debug, clap::Subcommand)]
enum Command {
    Lint(lint::Args),
    Explain(Box<explain::Args>),
    Diff(diff::Args),
    Test(test::Args),
}

pub(crate) fn run_policy(args: &Args, streams: &mut Streams) -> Result<Exit, CommandError> {
    match &args.command {
        Command::Lint(command) => lint::run(command, args.json, streams),
        Command::Explain(command) => explain::run(command, args.json, streams),
        Command::Diff(command) => diff::run(command, args.json, streams),
        Command::Test(command) => test::run(command, args.json, streams),
    }
}
