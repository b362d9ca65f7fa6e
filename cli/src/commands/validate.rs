//! `counterproof validate`.

use counterproof_artifact::Exit;

use crate::command_error::CommandError;
use crate::streams::Streams;

/// Hold files against the contract.
#[derive(Debug, clap::Args)]
pub(super) struct Args {}

/// Runs the command.
pub(super) fn run(_args: &Args, _streams: &mut Streams) -> Result<Exit, CommandError> {
    Err(CommandError::usage("not built yet"))
}
