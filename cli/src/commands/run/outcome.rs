//! Log output at the end of a run: counts, failures, hints and next steps.

use counterproof_artifact::{CaseId, Side};
use counterproof_evaluator::text;
use counterproof_runner::{Settings, Summary, Target};
use counterproof_store::RunReader;

use super::failure_hints;
use crate::command_error::CommandError;
use crate::connect_error::connect_error;
use crate::reporter::{FailureSummary, ReporterKind};
use crate::run_plan::RunPlan;
use crate::shell;
use crate::streams::Streams;

/// Logs the outcome of a run.
pub(super) fn log_outcome(
    reporter: ReporterKind,
    settings: &Settings,
    summary: &Summary,
    failures: &FailureSummary,
    streams: &mut Streams,
) -> Result<(), CommandError> {
    let counts = counts_line(summary, failures);
    match &settings.confirmation {
        None => {
            streams.log(counts);
            warn_about_baseline(settings, summary, streams);
        }
        // It has flipped cases only, so that failures are expected.
        Some(plan) => streams.log(format_args!("{} of {} as {}: {counts}", plan.index, plan.count, settings.side)),
    }
    // The other reporters have logged each failure when it happened.
    if reporter == ReporterKind::Human {
        let is_program = matches!(settings.target, Target::Command(_));
        let exit = |case_id: &CaseId| {
            if is_program { failure_hints::program_exit(&summary.folder, case_id) } else { String::new() }
        };
        for failure in failures.lines(exit) {
            streams.log(format_args!("  {failure}"));
        }
    }
    if summary.counts.over_budget > 0 {
        let cases = text::count(summary.counts.over_budget, "case", "cases");
        streams.log(format_args!("retry budget exhausted: {cases} failed without further retries"));
    }
    // The folders of confirmation runs follow from that of the run.
    if reporter != ReporterKind::Jsonl && settings.confirmation.is_none() {
        streams.print_line(format_args!("run folder: {}", summary.folder))?;
    }
    for hint in failure_hints::hints(&settings.target, summary, failures) {
        streams.log(format_args!("hint: {hint}"));
    }
    Ok(())
}

/// The least share of its cases that a baseline has to answer, in percent. Below it, a comparison says little.
const BASELINE_ANSWERED_PERCENT: usize = 90;

/// Warns, in red on a terminal, about a baseline that lacks answers: cases without one cannot regress.
fn warn_about_baseline(settings: &Settings, summary: &Summary, streams: &mut Streams) {
    let counts = &summary.counts;
    let asked = counts.answered + counts.failed;
    if settings.side == Side::Baseline && counts.answered * 100 < asked * BASELINE_ANSWERED_PERCENT {
        streams.warn_in_red(format_args!(
            "the baseline answered {} of {}; cases without an answer cannot be compared",
            counts.answered,
            text::count(asked, "case", "cases")
        ));
    }
}

/// Formats the counts, such as `6 cases: 2 ok, 4 failed (3 http_error, 1 timeout), 2 retried`.
fn counts_line(summary: &Summary, failures: &FailureSummary) -> String {
    let counts = &summary.counts;
    // `failures` lacks the cases that failed before a resumed run was stopped, so the classes would not add up.
    let classes =
        if counts.failed > 0 && counts.already_complete == 0 { format!(" ({failures})") } else { String::new() };
    let not_run = if counts.not_run() > 0 { format!(", {} not run", counts.not_run()) } else { String::new() };
    let earlier = if counts.already_complete > 0 {
        format!("; {} completed earlier", counts.already_complete)
    } else {
        String::new()
    };
    format!(
        "{}: {} ok, {} failed{classes}, {} retried{not_run}{earlier}",
        text::count(counts.selected, "case", "cases"),
        counts.answered,
        counts.failed,
        counts.retried
    )
}

/// Returns an error if no attempt reached the agent, or cases were skipped because it looked down.
pub(super) fn check_reached(
    settings: &Settings,
    summary: &Summary,
    failures: &FailureSummary,
) -> Result<(), CommandError> {
    const SEE_ARTIFACTS: &str = "the artifacts in the run folder contain the details of each attempt";

    let counts = &summary.counts;
    if !summary.reached && counts.selected > 0 {
        return Err(connect_error(&settings.target, &summary.folder, failures.first_attempted()).hint(SEE_ARTIFACTS));
    }
    if counts.skipped > 0 {
        let skipped = text::count(counts.skipped, "case", "cases");
        let message = format!("the agent at {} looks down; skipped {skipped}", settings.target.recorded());
        return Err(CommandError::io(message).hint(SEE_ARTIFACTS).hint("run the skipped cases with `--resume`"));
    }
    Ok(())
}

/// Logs the commands that usually follow.
pub(super) fn log_next_steps(shared: &Settings, plan: &RunPlan, streams: &mut Streams) {
    let side = shared.out.join(shared.side.as_str());
    for (number, run) in plan.runs.iter().enumerate() {
        let prefix = if number == 0 { "next: " } else { "      " };
        streams.log(format_args!("{prefix}counterproof validate {}", shell::path(&side.join(run.run_id.as_str()))));
    }
    let other = shared.side.other();
    if let Some(run_shard) = plan.runs.first().and_then(|run| run.shard.as_ref()) {
        let merged = shell::path(&side.join(run_shard.run_id.as_str()));
        let count = run_shard.shard.count();
        streams.log(format_args!(
            "      after all {count} shards: counterproof merge {merged}-s*of{count} --out {merged}"
        ));
    } else if RunReader::open_latest(&shared.out, other).is_ok() {
        let (runs, cases) = (shell::path(&shared.out), shell::path(&shared.cases_path));
        streams.log(format_args!("      counterproof compare --runs {runs} --cases {cases}"));
    } else {
        streams.log(format_args!("      counterproof run --side {other} …, then counterproof compare"));
    }
}
