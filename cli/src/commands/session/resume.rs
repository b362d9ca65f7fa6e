//! `counterproof session resume`: goes on with the session of a workflow.

use camino::Utf8PathBuf;
use counterproof_artifact::Exit;
use counterproof_sessions::store::SessionStore;
use counterproof_workflow::run::{ResumeOptions, Resumed, Stopped, resume, stored_settings, unbundle};

use super::bundle::bundle_failed;
use super::opened::open;
use crate::command_error::CommandError;
use crate::commands::ledger::{Place, failed as ledger_failed};
use crate::commands::workflow::{Outside, ReplacedArgs, control, drive, end, failed, home, replace, secrets};
use crate::streams::Streams;

/// Go on with a workflow from a checkpoint.
///
/// From the newest checkpoint, the session itself goes on. From an older one, a fork does: a session with a workspace, a branch and a
/// pull request of its own; with `--rewind`, the session itself. The files are as they were at the checkpoint. The end of a finished
/// session is printed again.
///
/// The output and the exit codes are those of `workflow run`. 2: the checkpoint is unknown or cannot be resumed, or another process
/// runs the session.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Checkpoint, or a session for its newest one
    #[arg(value_name = "CHECKPOINT", required_unless_present = "bundle")]
    id: Option<String>,

    /// Go on with the session of a file that `session bundle` has written
    #[arg(long, value_name = "FILE", conflicts_with_all = ["id", "rewind"])]
    bundle: Option<Utf8PathBuf>,

    /// Go on in the session itself, also from an older checkpoint
    #[arg(long)]
    rewind: bool,

    #[command(flatten)]
    replaced: ReplacedArgs,
}

pub(super) fn run(args: &Args, place: &Place, streams: &mut Streams) -> Result<Exit, CommandError> {
    let outside = Outside::new(place)?;
    let home = home(place)?;
    let mut store = match &args.bundle {
        // The ledger may be new.
        Some(_) => SessionStore::new(counterproof_ledger::open_or_create(&place.location).map_err(ledger_failed)?)
            .map_err(ledger_failed)?,
        None => open(place, streams)?,
    };
    let id = match &args.bundle {
        Some(file) => {
            unbundle(&home, &mut store, file, &control(&outside)).map_err(|error| bundle_failed(error, place))?
        }
        None => args.id.clone().unwrap_or_default(),
    };
    let mut settings = stored_settings(&mut store, &id).map_err(|error| failed(error, place))?;
    let replaced = replace(&args.replaced, &mut settings);
    let secrets = secrets(&settings)?;
    let options = ResumeOptions { rewinds: args.rewind, settings, replaced };
    let resumed = resume(&home, &mut store, &id, options, &secrets, control(&outside));
    // The run opens the ledger again.
    drop(store);
    match resumed.map_err(|error| failed(error, place))? {
        Resumed::Begun(begun) => drive(*begun, &home, place, streams),
        Resumed::Ended(session_id, state) => end(&home, &session_id, &state, &Stopped::Ended, place, streams),
    }
}
