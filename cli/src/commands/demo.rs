//! `counterproof demo`.

use counterproof_artifact::Exit;

use crate::command_error::CommandError;
use crate::streams::Streams;

/// Run the built-in agent in two versions and compare them.
#[derive(Debug, clap::Args)]
pub(super) struct Args {}

/// Runs the command.
pub(super) fn run(_args: &Args, _streams: &mut Streams) -> Result<Exit, CommandError> {
    Err(CommandError::usage("not built yet"))
}
