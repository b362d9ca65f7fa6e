//! Facts that a reader of the verdicts must know first: whether the cases file belongs to the compared runs, and whether the runs
//! are swapped, equal, unanswered or incomplete.

use std::collections::HashSet;

use camino::{Utf8Path, Utf8PathBuf};
use counterproof_artifact::Side;
use counterproof_evaluator::{ComparedRun, Request, SideRuns, text};
use counterproof_store::RunReader;

use crate::command_error::CommandError;
use crate::named_runs::RunIdentity;
use crate::named_runs::warn_about_side;
use crate::streams::Streams;

/// Maximum number of characters of a path in a message.
const MAX_PATH_CHARS: usize = 200;

/// Checks the cases file. Rejects one that contains none of the compared cases, and warns about one that lacks some.
pub(super) fn check_cases_file(
    cases: Option<&Utf8Path>,
    request: &Request<'_>,
    streams: &mut Streams,
) -> Result<(), CommandError> {
    let Some(path) = cases else {
        if let Some(cases) = recorded_cases_file(&request.new) {
            let cases = text::one_line(cases.as_str(), MAX_PATH_CHARS);
            streams.log(format_args!("note: expectations are not checked; to check them, pass `--cases {cases}`"));
        }
        return Ok(());
    };
    let entries = request.cases.iter().flat_map(|case| case.expected.expect.iter().flatten());
    let drafts = entries.filter(|expect| expect.draft).count();
    if drafts > 0 {
        let drafts = text::count(drafts, "draft expectation", "draft expectations");
        streams.log(format_args!(
            "note: {drafts} in `{path}` not checked: read each one, then remove its `draft` or the expectation"
        ));
    }
    let ids = counterproof_evaluator::pair(&request.baseline, &request.new).map_err(CommandError::io)?;
    let known: HashSet<_> = request.cases.iter().map(|case| &case.id).collect();
    let unknown = ids.iter().filter(|id| !known.contains(id)).count();
    let compared = text::count(ids.len(), "compared case", "compared cases");
    if unknown > 0 && unknown == ids.len() {
        return Err(CommandError::usage(format!("`{path}` contains none of the {compared}"))
            .hint("pass the cases of the runs with `--cases`"));
    }
    if unknown > 0 {
        streams.warn(format_args!("`{path}` lacks {unknown} of {compared}; their expectations are not checked"));
    }
    Ok(())
}

/// Returns the cases file that is recorded in the first run, if it still exists below the working folder. It is only named and
/// never read: a run folder may come from anywhere and must not decide which files are opened.
fn recorded_cases_file(runs: &SideRuns) -> Option<Utf8PathBuf> {
    let run = runs.iter().next()?.reader();
    let path = run.folder().join(&run.run().cases_path).canonicalize_utf8().ok()?;
    let here = Utf8Path::new(".").canonicalize_utf8().ok()?;
    Some(path.strip_prefix(&here).map_or_else(|_| path.clone(), Utf8Path::to_owned))
}

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
