//! `run --dry-run`: prints the cases and run folders of the plan.

use counterproof_artifact::{Exit, RunId, escape_invisible};
use counterproof_cases::CaseSpec;
use counterproof_evaluator::text;
use counterproof_runner::Settings;

use crate::command_error::CommandError;
use crate::run_plan::RunPlan;
use crate::streams::Streams;

/// Prints the plan.
pub(super) fn print(
    shared: &Settings,
    plan: &RunPlan,
    cases: &[CaseSpec],
    streams: &mut Streams,
) -> Result<Exit, CommandError> {
    let side = shared.side;
    let run_shard = plan.runs.first().and_then(|run| run.shard.as_ref());
    let in_shard = |case: &&CaseSpec| run_shard.is_none_or(|run_shard| run_shard.shard.contains(&case.id));
    streams.print_line(format_args!(
        "would run {} as side {side} against {}, with up to {} each",
        text::count(cases.iter().filter(in_shard).count(), "case", "cases"),
        shared.recorded_url(),
        text::count(shared.retry.retries as usize + 1, "attempt", "attempts"),
    ))?;
    for case in cases.iter().filter(in_shard) {
        // Titles are free text and may contain terminal escape sequences.
        let title = case.title.as_deref().map(|title| format!("  {}", escape_invisible(title))).unwrap_or_default();
        streams.print_line(format_args!("  {}{title}", case.id))?;
    }
    for run in &plan.runs {
        let folder = shared.out.join(side.as_str()).join(run.run_id.as_str());
        streams.print_line(format_args!("would write {folder}"))?;
    }
    if let (Some(first), Some(last)) = (plan.confirmations.first(), plan.confirmations.last()) {
        let folder = |id: &RunId| shared.out.join(side.as_str()).join(id.as_str());
        streams.print_line(format_args!("would run flipped cases again in {} to {}", folder(first), folder(last)))?;
    }
    Ok(Exit::Done)
}
