//! Prepares the output folder of a report: creates it, or clears the report in it. A folder with other content is never
//! changed.

use std::fs;
use std::io;

use camino::Utf8Path;
use counterproof_store::EVALUATION_FILE;
use counterproof_store::write::{self, Durability};

use super::error::ReportError;
use super::layout::{
    ARTIFACTS_FOLDER, CASES_FOLDER, COMMON_FILES, INDEX_FILE, JUNIT_FILE, LISTS_FOLDER, MARKER_FILE, SARIF_FILE,
    SEARCH_FOLDER, STATIC_FOLDER, SUMMARY_FILE,
};

/// The content of the marker file, which identifies a report. It is written first and never removed, so that a report whose
/// writing was interrupted can be replaced.
const MARKER: &str = "A report of Counterproof. The next report that is written here replaces it. Open index.html.\n";

/// The scripts of the report pages.
const SCRIPTS: [(&str, &str); 3] = [
    ("report.js", include_str!("../../../templates/static/report.js")),
    ("find.js", include_str!("../../../templates/static/find.js")),
    ("case.js", include_str!("../../../templates/static/case.js")),
];

/// Fails for a folder with other content than a report.
pub(crate) fn refuse_foreign(out: &Utf8Path) -> Result<(), ReportError> {
    if is_empty(out)? || is_report(out) { Ok(()) } else { Err(ReportError::NotAReport(out.to_owned())) }
}

/// Creates or clears the folder. Afterwards it contains the static files and no page.
pub(crate) fn prepare(out: &Utf8Path) -> Result<(), ReportError> {
    for folder in [out.to_owned(), out.join(STATIC_FOLDER)] {
        write::create_folder(&folder)?;
    }
    // Before anything is removed: an interruption from here on leaves a folder that the next report can replace.
    write::write(&out.join(MARKER_FILE), MARKER.as_bytes(), Durability::Cached)?;
    for name in [INDEX_FILE, EVALUATION_FILE, SUMMARY_FILE, JUNIT_FILE, SARIF_FILE] {
        remove(&out.join(name), |path| fs::remove_file(path))?;
    }
    for name in [CASES_FOLDER, LISTS_FOLDER, SEARCH_FOLDER, ARTIFACTS_FOLDER] {
        remove(&out.join(name), |path| fs::remove_dir_all(path))?;
    }
    for name in [CASES_FOLDER, LISTS_FOLDER, SEARCH_FOLDER] {
        write::create_folder(&out.join(name))?;
    }
    for (name, text) in COMMON_FILES.iter().chain(&SCRIPTS) {
        write::write(&out.join(STATIC_FOLDER).join(name), text.as_bytes(), Durability::Cached)?;
    }
    Ok(())
}

fn is_empty(out: &Utf8Path) -> Result<bool, ReportError> {
    match out.read_dir_utf8() {
        Ok(mut entries) => Ok(entries.next().is_none()),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(true),
        Err(error) if error.kind() == io::ErrorKind::NotADirectory => Ok(false),
        Err(source) => Err(ReportError::Folder { path: out.to_owned(), source }),
    }
}

fn is_report(out: &Utf8Path) -> bool {
    // The whole content, because a file of this name in a user's folder must not be enough to clear it.
    fs::read(out.join(MARKER_FILE)).is_ok_and(|bytes| bytes == MARKER.as_bytes())
}

fn remove(path: &Utf8Path, remove: impl FnOnce(&Utf8Path) -> io::Result<()>) -> Result<(), ReportError> {
    match remove(path) {
        Err(source) if source.kind() != io::ErrorKind::NotFound => {
            Err(ReportError::Folder { path: path.to_owned(), source })
        }
        _ => Ok(()),
    }
}
