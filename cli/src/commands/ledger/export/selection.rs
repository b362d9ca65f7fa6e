//! Which runs are exported, and as which cases.

use counterproof_ledger::export::{SelectedRun, case_id};
use counterproof_ledger::query::{RunFilter, RunRecord, SourceKind, runs, source_kinds};
use counterproof_ledger::store::EventStore;

use super::args::Args;
use crate::command_error::CommandError;
use crate::commands::ledger::opened::{Place, failed};
use crate::streams::Streams;

/// Number of the latest runs among which one with calls or an agent is searched.
const SEARCHED: u32 = 100;

/// Returns the runs that the arguments name, or the latest one, with their case ids.
pub(super) fn selected(
    args: &Args,
    place: &Place,
    store: &mut dyn EventStore,
    streams: &mut Streams,
) -> Result<Vec<SelectedRun>, CommandError> {
    let chosen = if args.run.is_empty() {
        vec![latest(place, store, streams)?]
    } else {
        args.run.iter().map(|id| place.find_run(id, store)).collect::<Result<Vec<_>, _>>()?
    };
    let select = |run: RunRecord| {
        let case_id = args.case_id.clone().map_or_else(|| case_id(&run), Ok).map_err(CommandError::usage)?;
        Ok(SelectedRun { run, case_id })
    };
    chosen.into_iter().map(select).collect()
}

/// Returns the latest run that is worth an export. Clients start servers without a call, for example to list their tools.
fn latest(place: &Place, store: &mut dyn EventStore, streams: &mut Streams) -> Result<RunRecord, CommandError> {
    let filter = RunFilter { limit: SEARCHED, ..RunFilter::default() };
    let found = runs(store, &filter).map_err(failed)?;
    if found.is_empty() {
        return Err(CommandError::usage(format!("the ledger `{}` has no runs", place.location))
            .hint("record one with `counterproof guard run`"));
    }
    for (skipped, run) in found.into_iter().enumerate() {
        let kinds = source_kinds(store, &run.run_id).map_err(failed)?;
        if run.calls > 0 || kinds.contains(&SourceKind::Agent) {
            let id = &run.run_id;
            match skipped {
                0 => streams.log(format_args!("the latest run: {id}")),
                _ => streams
                    .log(format_args!("the latest run with calls or an agent: {id}; newer runs without: {skipped}")),
            }
            return Ok(run);
        }
    }
    Err(CommandError::usage(format!(
        "none of the latest {SEARCHED} runs of the ledger `{}` has calls or an agent",
        place.location
    ))
    .hint("record one with `counterproof guard run`, or name a run of `counterproof ledger runs` with `--run`"))
}
