//! `counterproof session pause`: requests that a workflow stops at its next turn.

use counterproof_artifact::Exit;
use counterproof_sessions::session::Origin;
use serde_json::json;

use super::opened::{find, open, spool};
use crate::command_error::CommandError;
use crate::commands::ledger::Place;
use crate::streams::{Streams, to_json};

/// Pause a workflow that runs on this machine.
///
/// It makes a checkpoint before its next model request, and ends with exit code 4. `session resume ID` goes on with it.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Session
    #[arg(value_name = "ID")]
    id: String,
}

pub(super) fn run(args: &Args, place: &Place, streams: &mut Streams) -> Result<Exit, CommandError> {
    let id = &args.id;
    let session = find(&mut open(place, streams)?, id, place)?;
    if session.origin != Origin::Workflow.word() {
        return Err(CommandError::usage(format!(
            "the session `{id}` cannot be paused: its origin is `{}`, and only a workflow has turns",
            session.origin
        )));
    }
    let spool = spool(place);
    if session.status != "running" || spool.is_running(id) != Some(true) {
        let status = if session.status == "running" { "running on another machine" } else { &session.status };
        return Err(CommandError::usage(format!("the session `{id}` does not run here: its status is `{status}`")));
    }
    spool.request_pause(id).map_err(CommandError::io)?;
    if place.is_json {
        streams.print_document(&to_json(&json!({ "session_id": id, "pause": "requested" })))?;
    } else {
        streams.log(format_args!("pause requested; the session `{id}` stops before its next model request"));
    }
    Ok(Exit::Done)
}
