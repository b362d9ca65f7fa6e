//! The subcommands, and the options that they share.

use camino::Utf8PathBuf;
use counterproof_artifact::Exit;

use super::open_store::open;
use super::{add, list, remove};
use crate::command_error::CommandError;
use crate::streams::Streams;

/// Manage the file of secrets for servers.
///
/// Only its owner can read the file. No command prints a value. Bindings with `"source": "file"` refer to its secrets by name.
///
/// Exit code 0: done. 2: invalid arguments or values, or a file that other users can access. 3: the file could not be read or written.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    #[command(subcommand)]
    command: Command,

    /// File of secrets [default: `SUB_SECRETS_PATH`, or counterproof/secrets.json in the folder of configurations]
    #[arg(long, global = true, value_name = "FILE")]
    store: Option<Utf8PathBuf>,

    /// Print the result as one JSON document
    #[arg(long, global = true)]
    json: bool,
}

#[derive(Debug, clap::Subcommand)]
enum Command {
    Add(add::Args),
    List(list::Args),
    Remove(remove::Args),
}

/// Runs the command.
pub(crate) fn run_secrets(args: &Args, streams: &mut Streams) -> Result<Exit, CommandError> {
    let store = open(args.store.as_deref())?;
    match &args.command {
        Command::Add(command) => add::run(command, &store, args.json, streams),
        Command::List(command) => list::run(command, &store, args.json, streams),
        Command::Remove(command) => remove::run(command, &store, args.json, streams),
    }
}
