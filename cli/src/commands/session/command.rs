//! The arguments that all subcommands share, and the dispatch.

use counterproof_artifact::Exit;

use super::{
    bundle, checkpoint, checkpoints, export, fork, import, list, overview, pause, prune, record, replay, resume, show,
    timeline,
};
use crate::command_error::CommandError;
use crate::commands::ledger::PlaceArgs;
use crate::streams::Streams;

/// Record, import, query and export the whole run of a coding agent.
///
/// A session has the model calls, tool calls, commands and file changes of one run of an agent. It is stored in the ledger, under
/// the id of the run.
///
/// Exit code 0: done. 1: an import mapped less than `--min-coverage`. 2: invalid arguments, or an unknown session, type, number,
/// time or cursor. 3: the ledger or a file could not be read or written. 4: interrupted. `record` has the exit code of the agent.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    #[command(subcommand)]
    command: Command,

    #[command(flatten)]
    place: PlaceArgs,
}

#[derive(Debug, clap::Subcommand)]
enum Command {
    Record(record::Args),
    Import(import::Args),
    List(list::Args),
    Overview(overview::Args),
    Timeline(timeline::Args),
    Show(show::Args),
    Checkpoints(checkpoints::Args),
    Checkpoint(checkpoint::Args),
    Pause(pause::Args),
    Resume(Box<resume::Args>),
    Fork(fork::Args),
    Replay(Box<replay::Args>),
    Bundle(bundle::Args),
    Export(export::Args),
    Prune(prune::Args),
}

pub(crate) fn run(args: &Args, streams: &mut Streams) -> Result<Exit, CommandError> {
    let place = args.place.place()?;
    match &args.command {
        Command::Record(args) => record::run(args, &place, streams),
        Command::Import(args) => import::run(args, &place, streams),
        Command::List(args) => list::run(args, &place, streams),
        Command::Overview(args) => overview::run(args, &place, streams),
        Command::Timeline(args) => timeline::run(args, &place, streams),
        Command::Show(args) => show::run(args, &place, streams),
        Command::Checkpoints(args) => checkpoints::run(args, &place, streams),
        Command::Checkpoint(args) => checkpoint::run(args, &place, streams),
        Command::Pause(args) => pause::run(args, &place, streams),
        Command::Resume(args) => resume::run(args, &place, streams),
        Command::Fork(args) => fork::run(args, &place, streams),
        Command::Replay(args) => replay::run(args, &place, streams),
        Command::Bundle(args) => bundle::run(args, &place, streams),
        Command::Export(args) => export::run(args, &place, streams),
        Command::Prune(args) => prune::run(args, &place, streams),
    }
}
