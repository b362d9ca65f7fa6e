//! The output folder of a report: its entries, the paths of its pages, and what can go wrong. A new report is written next to it
//! and replaces it as a whole; a folder with other content is never changed.

use std::io;

use camino::{Utf8Path, Utf8PathBuf};
use counterproof_artifact::evaluation::Verdict;
use counterproof_store::write::{self, INDEX_FILE, STATIC_FOLDER, SiteError, SiteKind, StagedFolder, WriteError};
use counterproof_store::{EVALUATION_FILE, ReadError};

use super::view::verdict;

/// The content of the marker file, which identifies a report.
const MARKER: &str = "A report of Counterproof. The next report that is written here replaces it. Open index.html.\n";

/// The static files of the report pages.
const FILES: [(&str, &str); 5] = [
    COMMON_FILES[0],
    COMMON_FILES[1],
    ("report.js", include_str!("../../templates/static/report.js")),
    ("find.js", include_str!("../../templates/static/find.js")),
    ("case.js", include_str!("../../templates/static/case.js")),
];

/// The entries of a report folder. All others are the user's, and stay.
const ENTRIES: [&str; 9] = [
    INDEX_FILE,
    EVALUATION_FILE,
    SUMMARY_FILE,
    JUNIT_FILE,
    SARIF_FILE,
    CASES_FOLDER,
    LISTS_FOLDER,
    ARTIFACTS_FOLDER,
    STATIC_FOLDER,
];

/// The kind of the folder.
const KIND: SiteKind<'_> = SiteKind { marker: MARKER, entries: &ENTRIES, files: &FILES };

/// Starts a new report that will replace the one in `out`: its folders and static files, and no page.
pub(crate) fn begin(out: &Utf8Path) -> Result<StagedFolder, ReportError> {
    let replacement = KIND.begin(out)?;
    for name in [CASES_FOLDER, LISTS_FOLDER, SEARCH_FOLDER] {
        write::create_folder(&replacement.path().join(name))?;
    }
    Ok(replacement)
}

/// The folder of the case pages.
pub(crate) const CASES_FOLDER: &str = "cases";
/// The folder of the case lists.
pub(crate) const LISTS_FOLDER: &str = "lists";
/// The folder of the copied run files.
pub(crate) const ARTIFACTS_FOLDER: &str = "artifacts";
/// The folder of the case data for the search.
pub(crate) const SEARCH_FOLDER: &str = "static/search";
/// The Markdown summary.
pub(crate) const SUMMARY_FILE: &str = "summary.md";
/// The JUnit test results.
pub(crate) const JUNIT_FILE: &str = "junit.xml";
pub(crate) const SARIF_FILE: &str = "results.sarif";

/// Static files of every page, the history page included: name and content.
pub(crate) const COMMON_FILES: [(&str, &str); 2] = [
    ("style.css", include_str!("../../templates/static/style.css")),
    ("icon.svg", include_str!("../../templates/static/icon.svg")),
];

/// The path of a case page, given its name without the extension.
pub(crate) fn case_page(stem: &str) -> String {
    format!("{CASES_FOLDER}/{stem}.html")
}

/// The path of a page of the list of a verdict. Pages count from 1.
pub(crate) fn verdict_list(verdict: Verdict, page: usize) -> String {
    format!("{LISTS_FOLDER}/{}-{page}.html", verdict::show(verdict).class)
}

/// The path of a page of the list of a root cause, given its index among all root causes. Pages count from 1.
pub(crate) fn root_cause_list(index: usize, page: usize) -> String {
    format!("{LISTS_FOLDER}/cause-{}-{page}.html", index + 1)
}

/// Why a report could not be written.
#[derive(Debug, thiserror::Error)]
pub enum ReportError {
    /// A run folder could not be listed.
    #[error(transparent)]
    Read(#[from] ReadError),
    /// The output folder holds files that this program did not write.
    #[error("`{0}` exists and is not a report; nothing was written")]
    NotAReport(Utf8PathBuf),
    /// A compared run is inside the output folder, which the report replaces.
    #[error("the run `{run}` is inside the report folder `{out}`, which would be replaced")]
    RunInside {
        /// The run folder.
        run: Utf8PathBuf,
        /// The report folder.
        out: Utf8PathBuf,
    },
    /// The output folder could not be read.
    #[error("failed to read `{path}`")]
    Folder {
        /// The file or folder.
        path: Utf8PathBuf,
        /// The error of the operating system.
        source: io::Error,
    },
    /// Another process writes a report into the folder.
    #[error("another process is writing a report to `{0}`")]
    Busy(Utf8PathBuf),
    /// A file could not be written.
    #[error(transparent)]
    Write(#[from] WriteError),
    /// A page could not be rendered.
    #[error("failed to render `{page}`")]
    Render {
        /// The path of the page within the report.
        page: String,
        /// The error of the template engine.
        source: askama::Error,
    },
}

impl From<SiteError> for ReportError {
    fn from(error: SiteError) -> Self {
        match error {
            SiteError::Foreign(out) => Self::NotAReport(out),
            SiteError::Read { path, source } => Self::Folder { path, source },
            SiteError::Busy(out) => Self::Busy(out),
            SiteError::Write(error) => Self::Write(error),
        }
    }
}
