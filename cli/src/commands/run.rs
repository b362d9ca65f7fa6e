//! `counterproof run`.

use counterproof_artifact::Exit;

use crate::command_error::CommandError;
use crate::streams::Streams;

/// Ask every case of an agent and keep what came back.
#[derive(Debug, clap::Args)]
pub(super) struct Args {}

/// Runs the command.
pub(super) fn run(_args: &Args, _streams: &mut Streams) -> Result<Exit, CommandError> {
    Err(CommandError::usage("not built yet"))
}
