//! `counterproof session checkpoint`: one checkpoint of any session.

use counterproof_artifact::{Exit, one_line};
use counterproof_sessions::event::EventBody;
use serde_json::{Value, json};

use super::opened::open;
use crate::command_error::CommandError;
use crate::commands::ledger::{Place, cell, failed, short_time};
use crate::streams::{Streams, to_json};

/// Print a checkpoint. With `--json`, the whole record: the messages of the next request, the workspace, and the state of the
/// workflow.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Checkpoint
    #[arg(value_name = "CHECKPOINT")]
    id: String,
}

const LONGEST: usize = 160;

pub(super) fn run(args: &Args, place: &Place, streams: &mut Streams) -> Result<Exit, CommandError> {
    let mut store = open(place, streams)?;
    let found = store.checkpoint(&args.id).map_err(failed)?;
    let (session_id, event) = found.ok_or_else(|| unknown(&args.id, place))?;
    if place.is_json {
        let mut document = serde_json::to_value(&event).unwrap_or_default();
        if let Value::Object(fields) = &mut document {
            fields.insert("session_id".to_owned(), json!(session_id));
        }
        streams.print_document(&to_json(&document))?;
        return Ok(Exit::Done);
    }
    let EventBody::Checkpoint(checkpoint) = &event.body else { return Err(unknown(&args.id, place)) };
    let state = &checkpoint.state;
    let resumable = match (checkpoint.resumable, &checkpoint.reason) {
        (true, _) => "yes".to_owned(),
        (false, reason) => format!("no: {}", cell(reason.as_ref())),
    };
    let facts = [
        ("checkpoint", checkpoint.checkpoint_id.clone()),
        ("session", session_id),
        ("record", cell(event.seq)),
        ("timestamp", short_time(&event.timestamp.to_string())),
        ("step", state.current_step.clone()),
        ("messages", state.message_history.len().to_string()),
        ("resumable", resumable),
    ];
    for (name, value) in facts {
        streams.print_line(format_args!("{name:10}  {}", one_line(&value, LONGEST)))?;
    }
    Ok(Exit::Done)
}

pub(super) fn unknown(id: &str, place: &Place) -> CommandError {
    CommandError::usage(format!("the ledger `{}` has no checkpoint `{id}`", place.location))
        .hint(format!("list the checkpoints of a session with `counterproof session checkpoints ID{}`", place.option()))
}
