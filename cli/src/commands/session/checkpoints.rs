//! `counterproof session checkpoints`: the checkpoints of a session.

use counterproof_artifact::Exit;
use counterproof_sessions::store::CheckpointSummary;

use super::opened::{find, open};
use crate::command_error::CommandError;
use crate::commands::ledger::{Place, cell, failed, short_time, table};
use crate::streams::{Streams, to_json};

/// List the checkpoints of a session, the oldest first.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Session
    #[arg(value_name = "ID")]
    id: String,

    /// Largest number of checkpoints of a page
    #[arg(long, value_name = "NUMBER", default_value_t = 100, value_parser = clap::value_parser!(u32).range(1..))]
    limit: u32,

    /// Continue after a page: the value of `next`
    #[arg(long, value_name = "CURSOR")]
    cursor: Option<String>,
}

pub(super) fn run(args: &Args, place: &Place, streams: &mut Streams) -> Result<Exit, CommandError> {
    let mut store = open(place, streams)?;
    find(&mut store, &args.id, place)?;
    let page = store.checkpoints(&args.id, args.limit, args.cursor.as_deref()).map_err(failed)?;
    let page = page.map_err(CommandError::usage)?;
    if place.is_json {
        streams.print_document(&to_json(&page))?;
        return Ok(Exit::Done);
    }
    if page.checkpoints.is_empty() {
        streams.log(format_args!("no checkpoints of the session `{}`", args.id));
    } else {
        let names = ["seq", "timestamp", "checkpoint_id", "current_step", "resumable"];
        streams.print_line(table(names, page.checkpoints.iter().map(row)).trim_end())?;
    }
    if let Some(next) = &page.next {
        streams.log(format_args!("more checkpoints: pass `--cursor {next}`"));
    }
    Ok(Exit::Done)
}

fn row(checkpoint: &CheckpointSummary) -> [String; 5] {
    let resumable = match (checkpoint.resumable, &checkpoint.reason) {
        (true, _) => "yes".to_owned(),
        (false, reason) => format!("no: {}", cell(reason.as_ref())),
    };
    [
        checkpoint.seq.to_string(),
        short_time(&checkpoint.timestamp.to_string()),
        checkpoint.checkpoint_id.clone(),
        checkpoint.current_step.clone(),
        resumable,
    ]
}
