//! `counterproof session prune`: deletes old sessions.

use counterproof_artifact::Exit;
use jiff::{SignedDuration, Timestamp};
use serde_json::json;

use super::opened::open;
use crate::command_error::CommandError;
use crate::commands::ledger::{Place, Since, age, failed};
use crate::commands::workflow::home;
use crate::streams::{Streams, to_json};

/// Delete sessions whose last record is older than a duration, with the texts that only they use, their workspaces and snapshots.
///
/// Sessions that run stay. So do forks: they have snapshots of their own. The calls that the guard recorded for a session stay in the
/// ledger; see `ledger prune`.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Age of the last record, such as 30d; a day has 24 hours
    #[arg(long, value_name = "DURATION", value_parser = age)]
    older_than: SignedDuration,

    /// Also return the space to the system, which rewrites the ledger and packs the snapshots again
    #[arg(long)]
    vacuum: bool,

    /// Only list the sessions
    #[arg(long)]
    dry_run: bool,
}

pub(super) fn run(args: &Args, place: &Place, streams: &mut Streams) -> Result<Exit, CommandError> {
    let mut store = open(place, streams)?;
    let before = Since::Ago(args.older_than).sortable(Timestamp::now());
    let sessions = store.prunable(&before).map_err(failed)?;
    if !args.dry_run {
        let home = home(place)?;
        // First, so that an interrupted deletion is continued.
        sessions.iter().try_for_each(|session| home.forget(session)).map_err(CommandError::io)?;
        store.prune(&sessions).map_err(failed)?;
        if args.vacuum {
            store.ledger().compact().map_err(failed)?;
            if store.has_running().map_err(failed)? {
                streams.log("snapshots are not compacted: a session runs");
            } else {
                home.compact().map_err(CommandError::io)?;
            }
        }
    }
    if place.is_json {
        streams.print_document(&to_json(&json!({ "dry_run": args.dry_run, "sessions": sessions })))?;
    } else {
        if args.dry_run {
            for session in &sessions {
                streams.print_line(session)?;
            }
        }
        let done = if args.dry_run { "sessions to delete" } else { "sessions deleted" };
        streams.print_line(format_args!("{done}: {}", sessions.len()))?;
    }
    store.close().map_err(failed)?;
    Ok(Exit::Done)
}
