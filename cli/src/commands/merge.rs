//! `counterproof merge`: shard runs in, one run folder out.

use camino::Utf8PathBuf;
use counterproof_artifact::Exit;
use counterproof_runner::MergeError;

use crate::command_error::CommandError;
use crate::streams::Streams;

/// Join the runs of all shards into one run folder.
///
/// Refuses shards of different runs (other cases, settings, side, commit or number of shards), a shard that is missing, twice
/// there or not complete. The new folder is there whole, or not at all; the shards stay as they are.
///
/// Exit code 0: done. 2: the shards do not make one run. 3: a file could not be read or written.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// The run folders of all shards, in any order
    #[arg(required = true, value_name = "SHARD")]
    shards: Vec<Utf8PathBuf>,

    /// The run folder to make; its name becomes the run's id
    #[arg(long, value_name = "RUN")]
    out: Utf8PathBuf,
}

/// Runs the command.
pub(crate) fn run(args: &Args, streams: &mut Streams) -> Result<Exit, CommandError> {
    let merged = counterproof_runner::merge(&args.shards, &args.out).map_err(|error| match error {
        MergeError::Refused(_) => CommandError::usage(error),
        MergeError::Create(counterproof_store::CreateError::Exists(_)) => {
            CommandError::usage(error).hint("choose another folder with `--out`")
        }
        MergeError::Read(_) | MergeError::Create(_) | MergeError::Write(_) => CommandError::io(error),
    })?;
    streams.note(format_args!("{} shards, {} cases: {} failed", merged.shards, merged.cases, merged.failed));
    streams.say(format_args!("run folder: {}", merged.folder))?;
    streams.note(format_args!("next: counterproof validate {}", merged.folder));
    Ok(Exit::Done)
}
