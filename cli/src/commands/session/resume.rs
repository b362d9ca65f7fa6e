//! `counterproof session resume`: goes on with the session of a workflow.

use counterproof_artifact::Exit;
use counterproof_workflow::run::{ResumeOptions, Resumed, Stopped, resume, stored_settings};

use super::opened::open;
use crate::command_error::CommandError;
use crate::commands::ledger::Place;
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
    #[arg(value_name = "CHECKPOINT")]
    id: String,

    /// Go on in the session itself, also from an older checkpoint
    #[arg(long)]
    rewind: bool,

    #[command(flatten)]
    replaced: ReplacedArgs,
}

pub(super) fn run(args: &Args, place: &Place, streams: &mut Streams) -> Result<Exit, CommandError> {
    let outside = Outside::new(place)?;
    let home = home(place)?;
    let mut store = open(place, streams)?;
    let mut settings = stored_settings(&mut store, &args.id).map_err(|error| failed(error, place))?;
    let replaced = replace(&args.replaced, &mut settings);
    let secrets = secrets(&settings)?;
    let options = ResumeOptions { rewinds: args.rewind, settings, replaced };
    let resumed = resume(&home, &mut store, &args.id, options, &secrets, control(&outside));
    // The run opens the ledger again.
    drop(store);
    match resumed.map_err(|error| failed(error, place))? {
        Resumed::Begun(begun) => drive(*begun, &home, place, streams),
        Resumed::Ended(session_id, state) => end(&home, &session_id, &state, &Stopped::Ended, place, streams),
    }
}
