//! The arguments that all subcommands share, and the dispatch.

use counterproof_artifact::Exit;

use super::opened::PlaceArgs;
use super::{doctor, export, ingest, prune, query, runs, tail};
use crate::command_error::CommandError;
use crate::streams::Streams;

/// Query and maintain the ledger of tool calls.
///
/// The guard records each tool call of an agent: its arguments, the decision, its result and its end. The ledger is a SQLite file, or a
/// PostgreSQL database that a team shares. Subcommands that read it first add the events that processes left behind when they were
/// killed.
///
/// Exit code 0: done. 1: `ingest` found invalid lines, or `doctor` found a problem. 2: invalid arguments, or not a ledger. 3: the
/// ledger or a file could not be read or written. 4: interrupted.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    #[command(subcommand)]
    command: Command,

    #[command(flatten)]
    place: PlaceArgs,
}

#[derive(Debug, clap::Subcommand)]
enum Command {
    Query(query::Args),
    Runs(runs::Args),
    Tail(tail::Args),
    Export(export::Args),
    Ingest(ingest::Args),
    Doctor(doctor::Args),
    Prune(prune::Args),
}

pub(crate) fn run(args: &Args, streams: &mut Streams) -> Result<Exit, CommandError> {
    let place = args.place.place()?;
    match &args.command {
        Command::Query(args) => query::run(args, &place, streams),
        Command::Runs(args) => runs::run(args, &place, streams),
        Command::Tail(args) => tail::run(args, &place, streams),
        Command::Export(args) => export::run(args, &place, streams),
        Command::Ingest(args) => ingest::run(args, &place, streams),
        Command::Doctor(args) => doctor::run(args, &place, streams),
        Command::Prune(args) => prune::run(args, &place, streams),
    }
}
