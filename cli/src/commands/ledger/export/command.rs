//! What the arguments of `ledger export` mean.

use counterproof_artifact::{Exit, Side};

use super::args::Args;
use super::events::export_events;
use super::runs::export;
use crate::command_error::CommandError;
use crate::commands::ledger::opened::Place;
use crate::streams::Streams;

/// Runs the command.
pub(crate) fn run(args: &Args, place: &Place, streams: &mut Streams) -> Result<Exit, CommandError> {
    match args.side {
        None => {
            reject_without_side(args)?;
            export_events(args, place, streams)
        }
        Some(side) => {
            reject_with_side(args, side)?;
            export(args, side, place, streams)
        }
    }
}

fn reject_without_side(args: &Args) -> Result<(), CommandError> {
    let options = [("--run-id", args.run_id.is_some()), ("--case-id", args.case_id.is_some())];
    if let Some((option, _)) = options.into_iter().find(|(_, is_given)| *is_given) {
        return Err(CommandError::usage(format!("`{option}` requires `--side`"))
            .hint("pass `--side baseline` or `--side new` to export runs as artifacts"));
    }
    if args.run.len() > 1 {
        return Err(
            CommandError::usage("several `--run` require `--side`").hint("export the events of one run at a time")
        );
    }
    Ok(())
}

fn reject_with_side(args: &Args, side: Side) -> Result<(), CommandError> {
    if args.format.is_some() || args.since.is_some() {
        let option = if args.format.is_some() { "--format" } else { "--since" };
        return Err(CommandError::usage(format!("`{option}` and `--side` exclude each other"))
            .hint("choose runs with `--run`, or export events without `--side`"));
    }
    if let Some((index, run)) = args.run.iter().enumerate().find(|(index, run)| args.run[..*index].contains(run)) {
        return Err(
            CommandError::usage(format!("`--run {run}` is given twice")).hint(format!("remove number {}", index + 1))
        );
    }
    if args.run.len() > 1 && args.case_id.is_some() {
        return Err(CommandError::usage("`--case-id` requires a single `--run`").hint(
            "record each run with `counterproof guard run --case ID`, or export each run with its own `--run-id`",
        ));
    }
    if args.run.len() > 1 && args.run_id.is_none() {
        return Err(CommandError::usage("several `--run` require `--run-id`")
            .hint(format!("choose a name for the folder below {side}, such as `--run-id nightly-1`")));
    }
    Ok(())
}
