//! Confirmation runs: adds those of the compared new runs to a comparison.

use camino::Utf8PathBuf;
use counterproof_artifact::{Count, RunId, Side, Sides};
use counterproof_evaluator::text;
use counterproof_store::RunReader;

use crate::streams::Streams;

/// Adds the confirmation runs of the new runs to both sides. Adds none if confirmation runs were named explicitly.
pub(crate) fn add(runs: &mut Sides<Vec<RunReader>>, streams: &mut Streams) {
    if runs.baseline.iter().chain(&runs.new).any(|run| run.run().confirmation.is_some()) {
        return;
    }
    let compared: Vec<RunId> = runs.baseline.iter().map(|run| run.run().run_id.clone()).collect();
    let confirmed: Vec<RunReader> = runs.new.iter().filter(|run| run.run().version == Side::New).cloned().collect();
    for run in confirmed {
        let id = &run.run().run_id;
        let parent = run.parent_folder();
        let mut of_new = complete(RunReader::confirmations(&parent, id), streams);
        let mut of_baseline = baseline_folder(&run)
            .map(|folder| complete(RunReader::confirmations(&folder, id), streams))
            .unwrap_or_default();
        // Runs of the agent behind another baseline say nothing about this one.
        of_baseline.retain(|run| is_against(run, &compared));
        if of_new.is_empty() && of_baseline.is_empty() {
            continue;
        }
        let count = text::count(of_new.len(), "confirmation run", "confirmation runs");
        let again = match of_baseline.len() {
            0 => String::new(),
            runs => format!(", and {runs} of the baseline"),
        };
        streams.log(format_args!("note: judging the flipped cases with {count} of `{id}`{again}"));
        runs.new.append(&mut of_new);
        runs.baseline.append(&mut of_baseline);
    }
}

/// Returns the folder of the baseline runs next to the folder of a new run, `RUNS/baseline` for `RUNS/new/ID`.
fn baseline_folder(run: &RunReader) -> Option<Utf8PathBuf> {
    // An absolute path, because a relative one may not show its parents.
    let folder = run.folder().canonicalize_utf8().ok()?;
    let side = folder.parent()?;
    (side.file_name() == Some(Side::New.as_str())).then(|| side.with_file_name(Side::Baseline.as_str()))
}

/// Drops runs that were stopped: their missing cases are not missing answers.
fn complete(mut runs: Vec<RunReader>, streams: &mut Streams) -> Vec<RunReader> {
    runs.retain(|run| {
        let document = run.run();
        let is_complete =
            document.stats.is_some() && document.extra.get("interrupted").is_none_or(|value| value != true);
        if !is_complete {
            streams.warn(format_args!("ignoring the confirmation run `{}`: it was stopped", run.folder()));
        }
        is_complete
    });
    let planned = runs.iter().filter_map(|run| run.run().confirmation.as_ref()?.count).map(Count::get).max();
    if let (Some(planned), Some(first)) = (planned.filter(|planned| *planned > runs.len() as u64), runs.first()) {
        let (found, side) = (runs.len(), first.run().version);
        let of = first.run().confirmation.as_ref().map(|confirmation| confirmation.of.as_str()).unwrap_or_default();
        streams.warn(format_args!("found only {found} of {planned} confirmation runs of `{of}` as {side}"));
    }
    runs
}

/// Reports whether the cases of a confirmation run flipped against one of these baseline runs.
fn is_against(run: &RunReader, baseline: &[RunId]) -> bool {
    let against = run.run().confirmation.as_ref().map(|confirmation| confirmation.against.as_slice());
    against.is_none_or(|against| against.is_empty() || against.iter().any(|id| baseline.contains(id)))
}
