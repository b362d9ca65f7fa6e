//! `counterproof merge`: joins the runs of all shards into one run folder.

use camino::Utf8PathBuf;
use counterproof_artifact::Exit;
use counterproof_runner::MergeError;
use counterproof_store::{CreateError, LockError};

use crate::command_error::{CommandError, WAIT_OR_STOP};
use crate::resume_command;
use crate::streams::Streams;

/// Merge the runs of all shards into one run folder.
///
/// Rejects shards of different runs (other cases, settings, side, commit or number of shards), and a shard that is missing,
/// duplicate or incomplete. The new folder is complete or absent; the shards do not change.
///
/// Exit code 0: done. 2: the shards do not form one run. 3: a file could not be read or written.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Run folders of all shards, in any order
    #[arg(required = true, value_name = "SHARD")]
    shards: Vec<Utf8PathBuf>,

    /// Run folder to create; its name becomes the run's ID
    #[arg(long, value_name = "RUN")]
    out: Utf8PathBuf,
}

pub(crate) fn run(args: &Args, streams: &mut Streams) -> Result<Exit, CommandError> {
    let merged = counterproof_runner::merge(&args.shards, &args.out).map_err(|error| match error {
        // Shards of different runs are a wrong choice of arguments, even if each of them is valid.
        MergeError::Shards(_) => CommandError::usage(error),
        MergeError::Create(CreateError::Exists(_)) => {
            CommandError::usage(error).hint("choose another folder with `--out`")
        }
        MergeError::Create(CreateError::Lock(LockError::Busy(_))) => CommandError::usage(error).hint(WAIT_OR_STOP),
        MergeError::Read(_) | MergeError::Create(_) | MergeError::Write(_) => CommandError::io(error),
    })?;
    streams.log(format_args!("{} shards, {} cases: {} failed", merged.shards, merged.cases, merged.failed));
    streams.print_line(format_args!("run folder: {}", merged.folder))?;
    streams.log(format_args!("next: counterproof validate {}", resume_command::path(&merged.folder)));
    Ok(Exit::Done)
}
