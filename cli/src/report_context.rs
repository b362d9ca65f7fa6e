//! What the files beside the report's pages say of the world around the report: its address, the lines of the cases, and the
//! summary of the CI step that made it.

use std::env;
use std::fs;
use std::io;

use camino::{Utf8Component, Utf8Path, Utf8PathBuf};
use counterproof_artifact::evaluation::{Evaluation, Verdict};
use counterproof_evaluator::report::{self, CasePlace, PageSelection, ReportUrl, Surroundings};
use counterproof_store::write::{self, WriteError};

/// Where GitHub Actions says that the summary of a step goes.
pub(crate) const STEP_SUMMARY: &str = "GITHUB_STEP_SUMMARY";

/// Bytes of a step's summary: GitHub drops one that is longer.
const STEP_SUMMARY_UP_TO_BYTES: u64 = 1024 * 1024;

/// Cases files that are larger are not searched for the lines of their cases.
const CASES_UP_TO_BYTES: usize = 16 * 1024 * 1024;

/// What is known around a report of this evaluation.
pub(crate) fn of(evaluation: &Evaluation, cases: Option<&Utf8Path>, report_url: Option<&ReportUrl>) -> Surroundings {
    let told = |verdict| !matches!(verdict, Verdict::Unchanged | Verdict::Noisy);
    let is_told = evaluation.cases.iter().any(|case| told(case.verdict) || !case.findings.is_empty());
    let places = cases.filter(|_| is_told).and_then(|path| {
        let root = env::current_dir().ok().and_then(|folder| Utf8PathBuf::from_path_buf(folder).ok())?;
        // What cannot be read was told when the cases were loaded.
        let places = counterproof_cases::locate(path, CASES_UP_TO_BYTES).ok()?;
        let place = |place: counterproof_cases::CaseLocation| {
            Some((place.id, CasePlace { file: below(&place.file, &root)?, line: place.line }))
        };
        Some(places.into_iter().filter_map(place).collect())
    });
    Surroundings { report_url: report_url.cloned(), places: places.unwrap_or_default() }
}

/// A path as code hosts know it: from the folder that the program runs in, with forward slashes. `None` for what lies elsewhere.
fn below(path: &Utf8Path, root: &Utf8Path) -> Option<String> {
    let path = if path.is_absolute() { path.strip_prefix(root).ok()? } else { path };
    let mut parts = Vec::new();
    for component in path.components() {
        match component {
            Utf8Component::Normal(part) => parts.push(part),
            Utf8Component::CurDir => {}
            Utf8Component::ParentDir | Utf8Component::RootDir | Utf8Component::Prefix(_) => return None,
        }
    }
    Some(parts.join("/"))
}

/// Why a summary was not added to that of the step.
#[derive(Debug, thiserror::Error)]
pub(crate) enum StepSummaryError {
    /// The file could not be looked at.
    #[error("failed to read `{path}`: {source}")]
    Read { path: Utf8PathBuf, source: io::Error },
    /// It is a folder, a pipe or a device.
    #[error("`{0}` is no file")]
    NotAFile(Utf8PathBuf),
    /// It is full.
    #[error("`{0}` has no room for another summary: GitHub drops one that is longer than 1 MiB")]
    Full(Utf8PathBuf),
    /// It could not be written.
    #[error("{}: {}", .0, .0.source)]
    Write(#[from] WriteError),
}

/// Adds the summary to that of the step, shortened to the room that is left there.
pub(crate) fn append_to_step(
    path: &Utf8Path,
    evaluation: &Evaluation,
    surroundings: &Surroundings,
    pages: PageSelection,
) -> Result<(), StepSummaryError> {
    let length = match fs::metadata(path) {
        Ok(metadata) if metadata.is_file() => metadata.len(),
        Ok(_) => return Err(StepSummaryError::NotAFile(path.to_owned())),
        Err(error) if error.kind() == io::ErrorKind::NotFound => 0,
        Err(source) => return Err(StepSummaryError::Read { path: path.to_owned(), source }),
    };
    // Whatever stands there, a heading begins on a line of its own.
    let lead = if length > 0 { "\n\n" } else { "" };
    let room = STEP_SUMMARY_UP_TO_BYTES.saturating_sub(length + lead.len() as u64);
    let room = usize::try_from(room).unwrap_or(usize::MAX).min(report::SUMMARY_UP_TO_BYTES);
    match report::summary(evaluation, surroundings, pages, room) {
        Some(summary) => Ok(write::append(path, format!("{lead}{summary}").as_bytes())?),
        None => Err(StepSummaryError::Full(path.to_owned())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_lies_below_has_a_name_on_a_code_host() {
        let root = Utf8Path::new("/checkouts/repo");
        for (path, expected) in [
            ("cases.json", Some("cases.json")),
            ("./a/./cases.json", Some("a/cases.json")),
            ("/checkouts/repo/a/cases.json", Some("a/cases.json")),
            ("/checkouts/repository/cases.json", None),
            ("../cases.json", None),
            ("a/../../cases.json", None),
        ] {
            assert_eq!(below(Utf8Path::new(path), root).as_deref(), expected, "{path}");
        }
    }
}
