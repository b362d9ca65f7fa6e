//! `counterproof session resume`: goes on with the session of a workflow.

use camino::Utf8PathBuf;
use counterproof_artifact::Exit;
use counterproof_sessions::store::SessionStore;
use counterproof_workflow::run::{ReadBundle, ResumeOptions, Resumed, Stopped, read_bundle, resume, stored_settings};
use counterproof_workflow::tools::SandboxChoice;

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
/// A bundle has commands that run as you. They are printed, and run only with `--trust-commands`.
///
/// The output and the exit codes are those of `workflow run`. 2: the checkpoint is unknown or cannot be resumed, another process
/// runs the session, or the commands of a bundle are not trusted.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Checkpoint, or a session for its newest one
    #[arg(value_name = "CHECKPOINT", required_unless_present = "bundle")]
    id: Option<String>,

    /// Go on with the session of a file that `session bundle` has written; needs `--model-url`, which gets your key
    #[arg(long, value_name = "FILE", conflicts_with_all = ["id", "rewind"], requires = "model_url")]
    bundle: Option<Utf8PathBuf>,

    /// Run the commands of the bundle with your rights
    #[arg(long, requires = "bundle")]
    trust_commands: bool,

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
            let read = read_bundle(file).map_err(|error| bundle_failed(error, place))?;
            check_trust(&read, args.trust_commands, streams)?;
            read.add(&home, &mut store, &control(&outside)).map_err(|error| bundle_failed(error, place))?
        }
        None => args.id.clone().unwrap_or_default(),
    };
    let mut settings = stored_settings(&mut store, &id).map_err(|error| failed(error, place))?;
    let (replaced, urls) = replace(&args.replaced, &mut settings)?;
    let secrets = secrets(&settings, urls)?;
    let options = ResumeOptions { rewinds: args.rewind, settings, replaced };
    let resumed = resume(&home, &mut store, &id, options, &secrets, control(&outside));
    // The run opens the ledger again.
    drop(store);
    match resumed.map_err(|error| failed(error, place))? {
        Resumed::Begun(begun) => drive(*begun, &home, place, streams),
        Resumed::Ended(session_id, state) => end(&home, &session_id, &state, &Stopped::Ended, place, streams),
    }
}

/// Prints what the run of a bundle does outside of the sandbox, and fails if it is not trusted.
fn check_trust(read: &ReadBundle, is_trusted: bool, streams: &mut Streams) -> Result<(), CommandError> {
    let commands: Vec<String> = read.commands().into_iter().map(|(word, line)| format!("{word}: {line}")).collect();
    let sandbox = match read.sandbox() {
        SandboxChoice::Auto => "auto",
        SandboxChoice::Only(sandbox) => sandbox.name(),
    };
    let lines = commands.join("\n  ");
    if is_trusted || commands.is_empty() {
        streams.log(format_args!("the bundle runs these commands with your rights:\n  {lines}"));
        streams.log(format_args!("the sandbox of the agent's commands in the bundle: {sandbox}"));
        return Ok(());
    }
    let error = format!(
        "the bundle runs these commands with your rights:\n  {lines}\nthe sandbox of the agent's commands: {sandbox}"
    );
    Err(CommandError::usage(error).hint("if you trust them and the code of the bundle, pass `--trust-commands`"))
}
