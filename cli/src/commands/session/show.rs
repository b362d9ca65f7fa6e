//! `counterproof session show`: one record of a session.

use counterproof_artifact::Exit;

use super::opened::{find, open};
use crate::command_error::CommandError;
use crate::commands::ledger::{Place, failed};
use crate::streams::{Streams, to_json};

/// Print one record of a session with all its texts, as JSON.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Session
    #[arg(value_name = "ID")]
    id: String,

    /// Number of the record
    #[arg(long, value_name = "NUMBER")]
    seq: u64,
}

pub(super) fn run(args: &Args, place: &Place, streams: &mut Streams) -> Result<Exit, CommandError> {
    let mut store = open(place, streams)?;
    find(&mut store, &args.id, place)?;
    let event = store.event(&args.id, args.seq).map_err(failed)?.ok_or_else(|| {
        let id = crate::resume_command::quoted(&args.id);
        CommandError::usage(format!("the session `{}` has no record {}", args.id, args.seq))
            .hint(format!("list its records with `counterproof session timeline {id}{}`", place.option()))
    })?;
    streams.print_document(&to_json(&event))?;
    Ok(Exit::Done)
}
