//! `counterproof merge`: joins the runs of all shards into one run folder.

use std::num::NonZeroU32;
use std::thread;
use std::time::{Duration, Instant};

use camino::{Utf8Path, Utf8PathBuf};
use counterproof_artifact::Exit;
use counterproof_bucket::BucketUrl;
use counterproof_evaluator::text;
use counterproof_runner::{MergeError, RunForm};
use counterproof_store::{CreateError, LockError};

use crate::command_error::{CommandError, WAIT_OR_STOP};
use crate::commands::run::claim_error;
use crate::resume_command;
use crate::streams::Streams;
use crate::value_parsers::{at_least_one, duration};
use crate::working_copies::bucket_url;

/// Time between two looks at the shards.
const POLL: Duration = Duration::from_secs(2);

/// The same in a bucket, where each look costs requests.
const BUCKET_POLL: Duration = Duration::from_secs(10);

/// A message names at most this many shards.
const SHARDS_NAMED: usize = 20;

/// Merge the runs of all shards into one run folder.
///
/// Rejects shards of different runs (other cases, settings, side, commit or number of shards), and a shard that is missing or
/// incomplete. Of several attempts at a shard, the first complete one is taken. The new folder is complete or absent; the shards do
/// not change.
///
/// Exit code 0: done. 2: the shards do not form one run, or are not complete in time. 3: a file could not be read or written.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Run folders of all shards, in any order; also in a bucket
    #[arg(required_unless_present = "of", value_name = "SHARD")]
    shards: Vec<Utf8PathBuf>,

    /// Merge the N shards of the run of --out, which are next to it
    #[arg(long = "shards", value_name = "N", value_parser = at_least_one, conflicts_with = "shards")]
    of: Option<NonZeroU32>,

    /// With --shards: wait up to this time until all shards are complete, such as 30s or 90m
    #[arg(long, value_name = "TIME", value_parser = duration, requires = "of")]
    wait: Option<Duration>,

    /// Run folder to create; its name becomes the run's ID. Also in a bucket, such as `s3://BUCKET/runs/new/ID`
    #[arg(long, value_name = "RUN")]
    out: Utf8PathBuf,

    /// Write two files: run.json, and run.zip with all others. Commands that read the run unpack it to a temporary folder
    #[arg(long)]
    pack: bool,
}

pub(crate) fn run(args: &Args, streams: &mut Streams) -> Result<Exit, CommandError> {
    if BucketUrl::is_bucket(args.out.as_str()) && bucket_url(&args.out)?.prefix().is_empty() {
        return Err(CommandError::usage(format!("`{}` has no name for the run", args.out))
            .hint("example: `s3://BUCKET/runs/new/ID`"));
    }
    let out = streams.copies.output(&args.out)?.folder;
    streams.copies.document(&args.out)?;
    let found = match args.of {
        Some(shards) => find(&out, shards, args.wait.unwrap_or_default(), streams)?,
        None => args.shards.iter().map(|shard| streams.copies.run(shard)).collect::<Result<_, _>>()?,
    };
    let form = if args.pack { RunForm::Packed } else { RunForm::Files };
    let merged = counterproof_runner::merge(&found, &out, form).map_err(|error| match error {
        // Shards of different runs are a wrong choice of arguments, even if each of them is valid.
        MergeError::Shards(_) => CommandError::usage(error),
        MergeError::Create(CreateError::Exists(_)) => {
            CommandError::usage(error).hint("choose another folder with `--out`")
        }
        MergeError::Create(CreateError::Lock(LockError::Busy(_))) => CommandError::usage(error).hint(WAIT_OR_STOP),
        MergeError::Read(_) | MergeError::Create(_) | MergeError::Write(_) => CommandError::io(error),
    })?;
    streams.copies.put_new_run(&merged.folder)?;
    for folder in &merged.left_out {
        streams.log(format_args!("left out `{folder}`: another attempt at its shard was complete first"));
    }
    streams.log(format_args!("{} shards, {} cases: {} failed", merged.shards, merged.cases, merged.failed));
    streams.print_line(format_args!("run folder: {}", merged.folder))?;
    streams.log(format_args!("next: counterproof validate {}", resume_command::path(&merged.folder)));
    Ok(Exit::Done)
}

/// The folders of all attempts at the shards of a run. Waits for shards that are not complete.
fn find(
    out: &Utf8Path,
    shards: NonZeroU32,
    wait: Duration,
    streams: &mut Streams,
) -> Result<Vec<Utf8PathBuf>, CommandError> {
    let start = Instant::now();
    let mut waiting = None;
    loop {
        streams.copies.attempts(out, shards.get())?;
        let attempts = counterproof_runner::find_attempts(out, shards).map_err(claim_error)?;
        if attempts.unfinished.is_empty() {
            return Ok(attempts.folders);
        }
        let count = attempts.unfinished.len();
        if start.elapsed() >= wait {
            let named = attempts.unfinished.iter().take(SHARDS_NAMED).cloned().collect::<Vec<_>>().join("; ");
            let more = count.saturating_sub(SHARDS_NAMED);
            let more = if more > 0 { format!("; {more} more") } else { String::new() };
            let of = text::count(shards.get() as usize, "shard is", "shards are");
            return Err(CommandError::usage(format!("{count} of {of} not complete: {named}{more}"))
                .hint("start these shards again with the command of the run and `--take-over`"));
        }
        if waiting != Some(count) {
            waiting = Some(count);
            streams.log(format_args!("waiting for {count} of {shards} shards"));
        }
        let poll = if streams.copies.is_of_bucket(out) { BUCKET_POLL } else { POLL };
        thread::sleep(poll.min(wait.saturating_sub(start.elapsed())));
    }
}
