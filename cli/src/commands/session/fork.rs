//! `counterproof session fork`: a session of its own that goes on from a checkpoint.

use counterproof_artifact::Exit;
use counterproof_workflow::run::fork;
use serde_json::json;

use super::opened::open;
use crate::command_error::CommandError;
use crate::commands::ledger::Place;
use crate::commands::workflow::{failed, home};
use crate::streams::{Streams, to_json};

/// Fork a session at a checkpoint.
///
/// The fork is a session of its own, which `session resume` runs: with its own workspace, branch and pull request. The session that
/// it was forked from is not changed, and may run meanwhile.
///
/// Exit code 2: the checkpoint is unknown, or cannot be resumed.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Checkpoint, or a session for its newest one
    #[arg(value_name = "CHECKPOINT")]
    id: String,
}

pub(super) fn run(args: &Args, place: &Place, streams: &mut Streams) -> Result<Exit, CommandError> {
    let mut store = open(place, streams)?;
    let (session_id, parent) = fork(&home(place)?, &mut store, &args.id).map_err(|error| failed(error, place))?;
    if place.is_json {
        streams.print_document(&to_json(&json!({ "session_id": session_id, "parent": parent })))?;
    } else {
        streams.print_line(&session_id)?;
        streams.log(format_args!("run it with `counterproof session resume {session_id}{}`", place.option()));
    }
    Ok(Exit::Done)
}
