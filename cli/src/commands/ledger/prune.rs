//! `counterproof ledger prune`: deletes old runs.

use counterproof_artifact::Exit;
use counterproof_ledger::query::{Prunable, prunable_runs, prune_runs};
use jiff::{SignedDuration, Timestamp};
use serde_json::json;

use super::opened::{Place, failed};
use super::opened::{Since, age};
use super::runs::running;
use super::runs::{short_time, table};
use crate::command_error::CommandError;
use crate::streams::Streams;

/// Delete runs whose last event is older than a duration, with all their calls and events.
///
/// Runs that have not ended stay, unless `--include-open` is passed. Runs whose processes still run on
/// this machine are never deleted.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Age of the last event, such as 30d; a day has 24 hours
    #[arg(long, value_name = "DURATION", value_parser = age)]
    older_than: SignedDuration,

    /// Also return the space to the system, which rewrites the whole file
    #[arg(long)]
    vacuum: bool,

    /// Also delete runs that have not ended, such as those of processes on other machines that were killed
    #[arg(long)]
    include_open: bool,

    /// Only list the runs
    #[arg(long)]
    dry_run: bool,
}

pub(super) fn run(args: &Args, place: &Place, streams: &mut Streams) -> Result<Exit, CommandError> {
    let mut store = place.open(streams)?;
    let before = Since::Ago(args.older_than).sortable(Timestamp::now());
    let mut runs = prunable_runs(store.as_mut(), &before).map_err(failed)?;
    // To the ledger, a run whose process is alive looks like one whose process was killed on another machine.
    let running = running(store.as_mut(), place)?;
    runs.retain(|run| !running.contains(&run.run_id));
    // Without the running ones, which no option deletes.
    let found = runs.len();
    runs.retain(|run| args.include_open || !run.is_open);
    let kept = found - runs.len();
    if kept > 0 {
        streams.log(format_args!("runs that have not ended stay: {kept}; `--include-open` deletes them too"));
    }
    if !args.dry_run {
        prune_runs(store.as_mut(), &runs, &before).map_err(failed)?;
        if args.vacuum {
            store.compact().map_err(failed)?;
        }
    }
    print(&runs, args.dry_run, place, streams)?;
    store.close().map_err(failed)?;
    Ok(Exit::Done)
}

fn print(runs: &[Prunable], is_dry: bool, place: &Place, streams: &mut Streams) -> Result<(), CommandError> {
    if place.is_json {
        let ids: Vec<_> = runs.iter().map(|run| &run.run_id).collect();
        let document = json!({ "dry_run": is_dry, "runs": ids });
        streams.print_document(&crate::streams::to_json(&document))?;
    } else if is_dry && !runs.is_empty() {
        let rows = runs.iter().map(|run| [run.run_id.clone(), short_time(&run.last_event_at)]);
        streams.print_line(table(["run_id", "last_event_at"], rows).trim_end())?;
    } else {
        let done = if is_dry { "runs to delete" } else { "runs deleted" };
        streams.print_line(format_args!("{done}: {}", runs.len()))?;
    }
    Ok(())
}
