//! What stands beside the pages, for readers that open no page: a summary for a pull request, test results for a CI, and
//! results for a code host. Each is a function from the evaluation to a text; nothing about a case is decided here.

mod junit;
mod markdown;
mod rows;
mod sarif;
mod summary;
mod url;
mod xml;

use std::collections::HashMap;

use camino::Utf8Path;
use counterproof_artifact::CaseId;
use counterproof_artifact::evaluation::Evaluation;
use counterproof_store::write::{self, Durability, WriteError};

pub use summary::SUMMARY_UP_TO_BYTES;
pub use url::{ReportUrl, UrlError};

use super::writer::PageSelection;

/// The summary, within the report.
pub(super) const SUMMARY_FILE: &str = "summary.md";
/// The test results, within the report.
pub(super) const JUNIT_FILE: &str = "junit.xml";
/// The results for a code host, within the report.
pub(super) const SARIF_FILE: &str = "results.sarif";

/// What the files beside the pages may say of places outside of the report.
#[derive(Debug, Clone, Default)]
pub struct Surroundings {
    /// Where the report will be found.
    pub report_url: Option<ReportUrl>,
    /// Where the cases stand in their files.
    pub places: HashMap<CaseId, CasePlace>,
}

/// Where a case stands in a cases file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CasePlace {
    /// The file, relative to the folder that the results are about, with forward slashes.
    pub file: String,
    /// The line, counted from 1.
    pub line: usize,
}

/// The evaluation as Markdown of at most so many bytes; `None` where not even its first line has room.
pub fn summary(
    evaluation: &Evaluation,
    surroundings: &Surroundings,
    pages: PageSelection,
    most_bytes: usize,
) -> Option<String> {
    let links = summary::Links::of(evaluation, surroundings.report_url.as_ref(), pages);
    summary::render(evaluation, &links, most_bytes)
}

/// Writes the three files into the report.
pub(super) fn write(
    out: &Utf8Path,
    evaluation: &Evaluation,
    surroundings: &Surroundings,
    pages: PageSelection,
) -> Result<(), WriteError> {
    let put = |name: &str, text: &str| write::write(&out.join(name), text.as_bytes(), Durability::Cached);
    // The first line has room in what a summary may be long.
    put(SUMMARY_FILE, &summary(evaluation, surroundings, pages, SUMMARY_UP_TO_BYTES).unwrap_or_default())?;
    put(JUNIT_FILE, &junit::render(evaluation))?;
    put(SARIF_FILE, &sarif::render(evaluation, &surroundings.places))
}
