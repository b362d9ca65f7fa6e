//! Writes the exports into the report folder.

use camino::Utf8Path;
use counterproof_artifact::evaluation::Evaluation;
use counterproof_store::write::{self, WriteError};

use super::context::ReportContext;
use super::summary::{SUMMARY_UP_TO_BYTES, summary};
use super::{junit, sarif};
use crate::folder::{JUNIT_FILE, SARIF_FILE, SUMMARY_FILE};
use crate::site::PageSelection;

/// Writes the Markdown summary, the JUnit results and the SARIF results.
pub(crate) fn write(
    out: &Utf8Path,
    evaluation: &Evaluation,
    context: &ReportContext,
    pages: PageSelection,
) -> Result<(), WriteError> {
    let put = |name: &str, text: &str| write::write_new(&out.join(name), text.as_bytes());
    // The limit is far longer than the first line, so the summary is never `None`.
    put(SUMMARY_FILE, &summary(evaluation, context, pages, SUMMARY_UP_TO_BYTES).unwrap_or_default())?;
    put(JUNIT_FILE, &junit::render(evaluation))?;
    put(SARIF_FILE, &sarif::render(evaluation, &context.case_locations))
}
