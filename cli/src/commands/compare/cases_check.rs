//! Checks that the cases file belongs to the compared runs. With another file, expectations would be skipped silently.

use std::collections::HashSet;

use camino::{Utf8Path, Utf8PathBuf};
use counterproof_evaluator::{Request, SideRuns, text};

use crate::command_error::CommandError;
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
