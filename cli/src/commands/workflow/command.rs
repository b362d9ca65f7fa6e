//! The subcommands of `workflow`.

use counterproof_artifact::Exit;

use super::arguments;
use crate::command_error::CommandError;
use crate::commands::ledger::PlaceArgs;
use crate::streams::Streams;

/// Let an agent fix a failing test or implement a feature, and open a pull request.
///
/// The agent works in a copy of the repository; nothing below the repository is written. The whole session is recorded in the
/// ledger, with a checkpoint after each tool call, from which `session resume` and `session fork` go on.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    #[command(subcommand)]
    command: Command,

    #[command(flatten)]
    place: PlaceArgs,
}

#[derive(Debug, clap::Subcommand)]
enum Command {
    Run(Box<arguments::Args>),
}

pub(crate) fn run(args: &Args, streams: &mut Streams) -> Result<Exit, CommandError> {
    let place = args.place.place()?;
    match &args.command {
        Command::Run(args) => arguments::run(args, &place, streams),
    }
}
