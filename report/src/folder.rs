//! The output folder of a report. A new report is written next to it and replaces it as a whole. A folder with other content
//! is never changed.

use camino::Utf8Path;
use counterproof_store::EVALUATION_FILE;
use counterproof_store::write::{self, INDEX_FILE, STATIC_FOLDER, SiteKind, StagedFolder};

use super::error::ReportError;
use super::layout::{
    ARTIFACTS_FOLDER, CASES_FOLDER, COMMON_FILES, JUNIT_FILE, LISTS_FOLDER, SARIF_FILE, SEARCH_FOLDER, SUMMARY_FILE,
};

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
