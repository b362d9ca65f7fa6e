//! `counterproof export facts`: writes the results of comparisons as Parquet files.

use std::collections::HashMap;

use camino::Utf8PathBuf;
use counterproof_artifact::Exit;
use counterproof_evaluator::text;
use counterproof_report::facts::{Facts, RunFolders};
use counterproof_report::history::SkippedPath;
use counterproof_store::{read_evaluation, write};

use super::history::{found_evaluations, reason, warn};
use crate::command_error::CommandError;
use crate::streams::Streams;
use crate::working_copies::reject_bucket;

/// Export the results of comparisons for databases.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, clap::Subcommand)]
enum Command {
    Facts(FactsArgs),
}

/// Write the results of comparisons as Parquet files, with a row per case, side and run.
///
/// Reads evaluation.json in each folder, or else in the folders directly below it. Each comparison is one file in FACTS, which
/// replaces that of an earlier export of the same comparison; files of other comparisons stay.
///
/// With several runs per side, the values of each run are read from its run folder. If one is not found, the side has one row per
/// case with the medians.
///
/// Exit code 0: the facts are written. 2: no folder contains an evaluation. 3: a file could not be read or written.
#[derive(Debug, clap::Args)]
struct FactsArgs {
    /// Folders with an evaluation.json, such as reports and run folders, or folders of such folders
    #[arg(required = true, value_name = "DIR")]
    folders: Vec<Utf8PathBuf>,

    /// Folder of the Parquet files
    #[arg(long, value_name = "FACTS")]
    out: Utf8PathBuf,

    /// Folder of all runs, where the runs of the comparisons are looked up
    #[arg(long, value_name = "RUNS", default_value = "runs")]
    runs: Utf8PathBuf,
}

pub(crate) fn run(args: &Args, streams: &mut Streams) -> Result<Exit, CommandError> {
    let Command::Facts(args) = &args.command;
    export(args, streams)
}

fn export(args: &FactsArgs, streams: &mut Streams) -> Result<Exit, CommandError> {
    reject_bucket(&args.out, "`--out` of `export facts`")?;
    reject_bucket(&args.runs, "`--runs` of `export facts`")?;
    let (files, mut left_out) = found_evaluations(&args.folders, streams)?;
    write::create_folder(&args.out).map_err(CommandError::io)?;
    let mut written = HashMap::new();
    let mut has_medians = false;
    for file in files {
        let folder = file.parent().unwrap_or(&file).to_owned();
        let evaluation = match read_evaluation(&file) {
            Ok((evaluation, _)) => evaluation,
            Err(error) => {
                left_out.push(SkippedPath { path: file, reason: reason(&error) });
                continue;
            }
        };
        let facts = Facts::new(&evaluation, &RunFolders { evaluation: folder.clone(), runs: args.runs.clone() });
        // The report and both run folders have a copy of the same evaluation.
        if let Some(known) = written.get(&facts.file_name()) {
            left_out.push(SkippedPath { path: file, reason: format!("same comparison as in `{known}`") });
            continue;
        }
        if let Some(run) = facts.missing.first() {
            has_medians = true;
            streams
                .warn(format_args!("`{folder}`: the run `{run}` was not found; its side has the medians of all runs"));
        }
        let stays = Some(&*folder).filter(|folder| !streams.copies.is_of_bucket(folder));
        facts.write(&args.out, stays).map_err(CommandError::io)?;
        written.insert(facts.file_name(), folder);
    }
    warn(&left_out, streams);
    if has_medians {
        streams.log("hint: pass the folder that holds the sides with `--runs`");
    }
    if written.is_empty() {
        return Err(CommandError::io("no evaluation could be read"));
    }
    streams.print_line(format_args!(
        "facts of {}: {}",
        text::count(written.len(), "comparison", "comparisons"),
        args.out
    ))?;
    Ok(Exit::Done)
}
