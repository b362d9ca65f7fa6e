//! The arguments that all subcommands share, and the dispatch.

use camino::Utf8PathBuf;
use counterproof_artifact::Exit;

use super::project::{DEFAULT_STORE, Project};
use super::run_reporter::Failure;
use super::{add, compact, decide, diff, graph, list, new, run, show, transition};
use crate::command_error::CommandError;
use crate::streams::Streams;

/// Store, run and inspect executable contracts.
///
/// A contract is a JSON document: what an agent receives, what it must produce, the command that verifies it, and how to undo it.
/// The store is a JSON Lines file to which lines are only added: each version of a contract and each transition is a line.
///
/// Exit code 0: done, and all contracts that were run are met. 1: a contract is not met, or a file has findings. 2: invalid arguments,
/// or a refused request. 3: a file could not be read or written. 4: interrupted.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    #[command(subcommand)]
    command: Command,

    /// File of the store
    #[arg(long, global = true, value_name = "FILE", default_value = DEFAULT_STORE)]
    store: Utf8PathBuf,

    /// Print the result, or the error, as one JSON document
    #[arg(long, global = true)]
    json: bool,
}

#[derive(Debug, clap::Subcommand)]
enum Command {
    New(Box<new::Args>),
    Add(add::Args),
    List(list::Args),
    Show(show::Args),
    History(show::HistoryArgs),
    Diff(diff::Args),
    Transition(transition::Args),
    Claim(transition::ClaimArgs),
    /// Approve a contract whose check passed, or another attempt of a failed contract
    Approve(decide::Args),
    /// Reject a contract: fail its check, or cancel it
    Reject(decide::Args),
    Run(Box<run::Args>),
    Graph(graph::Args),
    Status(list::StatusArgs),
    Compact(compact::Args),
    Validate(add::ValidateArgs),
}

/// Runs the command.
pub(crate) fn run_contract(args: &Args, streams: &mut Streams) -> Result<Exit, CommandError> {
    let project = Project { store: args.store.clone(), is_json: args.json };
    dispatch(&args.command, &project, streams)
        // With `--json`, an error is a document as well: a program that calls this one reads a single stream.
        .or_else(|failure| if project.is_json { failure.print(streams) } else { Err(failure.into_error()) })
}

fn dispatch(command: &Command, project: &Project, streams: &mut Streams) -> Result<Exit, Failure> {
    match command {
        Command::New(args) => new::run(args, project, streams),
        Command::Add(args) => add::run(args, project, streams),
        Command::List(args) => list::run(args, project, streams),
        Command::Show(args) => show::run(args, project, streams),
        Command::History(args) => show::run_history(args, project, streams),
        Command::Diff(args) => diff::run(args, project, streams),
        Command::Transition(args) => transition::run(args, project, streams),
        Command::Claim(args) => transition::run_claim(args, project, streams),
        Command::Approve(args) => decide::run(args, decide::Decision::Approve, project, streams),
        Command::Reject(args) => decide::run(args, decide::Decision::Reject, project, streams),
        Command::Run(args) => run::run(args, project, streams),
        Command::Graph(args) => graph::run(args, project, streams),
        Command::Status(args) => list::run_status(args, project, streams),
        Command::Compact(args) => compact::run(args, project, streams),
        Command::Validate(args) => add::run_validate(args, project, streams),
    }
}
