//! Warnings about the compared runs: facts that a reader of the verdicts must know first.

use counterproof_artifact::Side;
use counterproof_evaluator::{ComparedRun, Request, SideRuns};
use counterproof_store::RunReader;

use crate::named_runs::warn_about_side;
use crate::run_identity::RunIdentity;
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
        for baseline in request.baseline.iter().map(ComparedRun::reader) {
            warn_if_same_run(baseline, new, streams);
        }
    }
}

fn warn_if_same_run(baseline: &RunReader, new: &RunReader, streams: &mut Streams) {
    let id = &new.run().run_id;
    match RunIdentity::compare(baseline, new) {
        RunIdentity::SameFolder => streams.warn(format_args!("`{}` is compared with itself", new.folder())),
        RunIdentity::Copy => {
            let (folder, other) = (new.folder(), baseline.folder());
            streams.warn(format_args!("`{folder}` is compared with itself: `{other}` is a copy of the same run"));
        }
        // Confirmation runs of both sides have the id of the run that they confirm, and their numbers.
        RunIdentity::Different if baseline.run().run_id == *id && baseline.run().confirmation.is_none() => {
            let (folder, other) = (new.folder(), baseline.folder());
            streams.log(format_args!("note: `{other}` and `{folder}` are different runs with the same id, `{id}`"));
        }
        RunIdentity::Different => {}
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
