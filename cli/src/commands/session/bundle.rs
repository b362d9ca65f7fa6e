//! `counterproof session bundle`: a session in one file, to go on with on another machine.

use camino::Utf8PathBuf;
use counterproof_artifact::Exit;
use counterproof_sessions::store::ArchiveError;
use counterproof_workflow::run::{BundleError, bundle};
use serde_json::json;

use super::opened::open;
use crate::command_error::CommandError;
use crate::commands::ledger::{Place, failed as ledger_failed};
use crate::commands::workflow::{Outside, control, failed, home};
use crate::streams::{Streams, to_json};

/// Write a session up to a checkpoint into one file.
///
/// The file has the records and all objects of the checkpoints. `session resume --bundle FILE` goes on with it, also on a machine that has
/// neither the repository nor the ledger.
///
/// Exit code 2: the checkpoint is unknown, or the file exists already. 3: the file cannot be written.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Checkpoint, or a session for its newest one
    #[arg(value_name = "CHECKPOINT")]
    id: String,

    /// File to write, which must not exist yet
    #[arg(long, value_name = "FILE")]
    out: Utf8PathBuf,
}

pub(super) fn run(args: &Args, place: &Place, streams: &mut Streams) -> Result<Exit, CommandError> {
    // Before the objects are collected.
    if args.out.exists() {
        return Err(bundle_failed(BundleError::Exists(args.out.clone()), place));
    }
    let outside = Outside::new(place)?;
    let mut store = open(place, streams)?;
    let written = bundle(&home(place)?, &mut store, &args.id, &args.out, &control(&outside));
    let checkpoint_id = written.map_err(|error| bundle_failed(error, place))?;
    if place.is_json {
        streams.print_document(&to_json(&json!({ "checkpoint_id": checkpoint_id, "file": args.out })))?;
    } else {
        streams.log(format_args!("written: {}", args.out));
    }
    Ok(Exit::Done)
}

pub(super) fn bundle_failed(error: BundleError, place: &Place) -> CommandError {
    match error {
        BundleError::Begin(error) => failed(error, place),
        BundleError::Store(error) | BundleError::Archive(ArchiveError::Store(error)) => ledger_failed(error),
        error @ BundleError::Archive(ArchiveError::Exists(_)) => {
            CommandError::usage(error).hint("resume the session by its id")
        }
        error @ BundleError::Exists(_) => {
            CommandError::usage(error).hint("remove it, or name another file with `--out`")
        }
        error @ BundleError::Format { .. } => CommandError::usage(error),
        error => CommandError::io(error),
    }
}
