//! Warnings about the compared runs: facts that a reader of the verdicts must know first.

use counterproof_artifact::Side;
use counterproof_evaluator::{ComparedRun, Request, SideRuns};
use counterproof_store::RunReader;

use crate::named_runs::warn_about_side;
use crate::streams::Streams;

/// Logs all warnings about the runs of a comparison.
pub(super) fn warn_about_runs(request: &Request<'_>, streams: &mut Streams) {
    warn_if_swapped(request, streams);
    for (runs, side) in [(&request.baseline, Side::Baseline), (&request.new, Side::New)] {
        for error in runs.iter().filter_map(ComparedRun::labels_error) {
            streams.warn(format_args!(
                "{error}, so the labels of its run are not used; `counterproof validate` has the reason"
            ));
        }
        for run in runs.iter().map(ComparedRun::reader) {
            warn_about_side(run, side, streams);
            warn_if_unanswered_or_stopped(run, streams);
        }
    }
    for new in request.new.iter().map(ComparedRun::reader) {
        if request.baseline.iter().any(|baseline| is_same_run(baseline.reader(), new)) {
            streams.warn(format_args!("`{}` is compared with itself", new.folder()));
        }
    }
}

fn warn_if_swapped(request: &Request<'_>, streams: &mut Streams) {
    let all = |runs: &SideRuns, side: Side| runs.iter().all(|run| run.reader().run().version == side);
    if all(&request.baseline, Side::New) && all(&request.new, Side::Baseline) {
        streams.warn(
            "the runs look swapped: the first is a `new` run and the second a `baseline` run, so improvements will be reported \
             as regressions",
        );
    }
}

fn warn_if_unanswered_or_stopped(run: &RunReader, streams: &mut Streams) {
    let (folder, document) = (run.folder(), run.run());
    if document.confirmation.is_some() {
        // It runs cases that look worse, so failures are expected, and stopped ones are reported when they are found.
        return;
    }
    if let Some(stats) = &document.stats
        && stats.cases_failed.is_some_and(|failed| failed.get() > 0 && Some(failed) == stats.cases_total)
    {
        streams.warn(format_args!("every case of the run `{folder}` failed"));
    }
    if document.stats.is_none() || document.extra.get("interrupted").is_some_and(|value| value == true) {
        streams.warn(format_args!("the run `{folder}` is incomplete: it was stopped"));
    }
}

/// Returns true for the same run folder, a copy of it, and a baseline that was accepted from it.
fn is_same_run(baseline: &RunReader, new: &RunReader) -> bool {
    let (document, id) = (baseline.run(), &new.run().run_id);
    // Confirmation runs of both sides have the id of the run that they confirm, and their numbers.
    let has_same_id =
        document.run_id == *id && (document.confirmation.is_none() || document.version == new.run().version);
    baseline.folder() == new.folder()
        || has_same_id
        || document.accepted.as_ref().is_some_and(|accepted| accepted.from_run_id == *id)
}
