//! The summary of a GitHub Actions step: the Markdown file that `GITHUB_STEP_SUMMARY` names.

use std::fs;
use std::io;

use camino::{Utf8Path, Utf8PathBuf};
use counterproof_artifact::evaluation::Evaluation;
use counterproof_report::{PageSelection, ReportContext};
use counterproof_store::write::{self, WriteError};

/// The environment variable with the path of the step summary.
pub(crate) const VARIABLE: &str = "GITHUB_STEP_SUMMARY";

/// Size limit of a step summary. GitHub drops a larger one.
const MAX_BYTES: u64 = 1024 * 1024;

/// A summary that could not be appended to the step summary.
#[derive(Debug, thiserror::Error)]
pub(crate) enum StepSummaryError {
    /// The file's metadata could not be read.
    #[error("failed to read `{path}`: {source}")]
    Read { path: Utf8PathBuf, source: io::Error },
    /// The path names a folder, a pipe or a device.
    #[error("`{0}` is not a file")]
    NotAFile(Utf8PathBuf),
    /// The file has reached GitHub's size limit.
    #[error("`{0}` has no space left: GitHub drops step summaries over 1 MiB")]
    Full(Utf8PathBuf),
    /// The file could not be written.
    #[error("{}: {}", .0, .0.source)]
    Write(#[from] WriteError),
}

/// Appends the summary of a comparison to the step summary, shortened to the space that is left.
pub(crate) fn append(
    path: &Utf8Path,
    evaluation: &Evaluation,
    context: &ReportContext,
    pages: PageSelection,
) -> Result<(), StepSummaryError> {
    let length = match fs::metadata(path) {
        Ok(metadata) if metadata.is_file() => metadata.len(),
        Ok(_) => return Err(StepSummaryError::NotAFile(path.to_owned())),
        Err(error) if error.kind() == io::ErrorKind::NotFound => 0,
        Err(source) => return Err(StepSummaryError::Read { path: path.to_owned(), source }),
    };
    // A heading starts on a line of its own, whatever precedes it.
    let separator = if length > 0 { "\n\n" } else { "" };
    let room = MAX_BYTES.saturating_sub(length + separator.len() as u64);
    let room = usize::try_from(room).unwrap_or(usize::MAX).min(counterproof_report::SUMMARY_UP_TO_BYTES);
    match counterproof_report::summary(evaluation, context, pages, room) {
        Some(summary) => Ok(write::append(path, format!("{separator}{summary}").as_bytes())?),
        None => Err(StepSummaryError::Full(path.to_owned())),
    }
}
