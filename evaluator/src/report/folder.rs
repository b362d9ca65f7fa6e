//! The folder that a report is written into: made, or cleared of the report that is there. A folder that holds anything
//! else is never touched.

use std::fs;
use std::io;

use camino::Utf8Path;
use counterproof_store::EVALUATION_FILE;
use counterproof_store::write::{self, Durability};

use super::beside::{JUNIT_FILE, SARIF_FILE, SUMMARY_FILE};
use super::files::ARTIFACTS_FOLDER;
use super::lists::LISTS_FOLDER;
use super::writer::ReportError;

/// The folder of the cases' pages.
pub(super) const CASES_FOLDER: &str = "cases";
/// The folder of what the pages share.
pub(super) const STATIC_FOLDER: &str = "static";
/// The folder of the cases as data.
pub(super) const SEARCH_FOLDER: &str = "static/search";
/// The page to open first.
pub(super) const INDEX_FILE: &str = "index.html";

/// Tells a report from any other folder. It is written first and never removed, so that a report whose writing was
/// interrupted can be written again.
const MARKER_FILE: &str = "static/about.txt";
const MARKER: &str = "A report of Counterproof. The next report that is written here replaces it. Open index.html.\n";

/// What every page needs beside it, that of a history too: name and content.
pub(super) const SHARED_BY_ALL: [(&str, &str); 2] = [
    ("style.css", include_str!("../../../templates/static/style.css")),
    ("icon.svg", include_str!("../../../templates/static/icon.svg")),
];

/// The scripts of a report's pages, and of single kinds of them.
const SCRIPTS: [(&str, &str); 3] = [
    ("report.js", include_str!("../../../templates/static/report.js")),
    ("find.js", include_str!("../../../templates/static/find.js")),
    ("case.js", include_str!("../../../templates/static/case.js")),
];

/// Refuses a folder that holds anything but a report.
pub(super) fn refuse_foreign(out: &Utf8Path) -> Result<(), ReportError> {
    if is_empty(out)? || is_report(out) { Ok(()) } else { Err(ReportError::NotAReport(out.to_owned())) }
}

/// Makes the folder of a report ready: afterwards it holds what all pages share, and no page.
pub(super) fn prepare(out: &Utf8Path) -> Result<(), ReportError> {
    for folder in [out.to_owned(), out.join(STATIC_FOLDER)] {
        write::create_folder(&folder)?;
    }
    write::write(&out.join(MARKER_FILE), MARKER.as_bytes(), Durability::Cached)?;
    for name in [INDEX_FILE, EVALUATION_FILE, SUMMARY_FILE, JUNIT_FILE, SARIF_FILE] {
        removed(&out.join(name), |path| fs::remove_file(path))?;
    }
    for name in [CASES_FOLDER, LISTS_FOLDER, SEARCH_FOLDER, ARTIFACTS_FOLDER] {
        removed(&out.join(name), |path| fs::remove_dir_all(path))?;
    }
    for name in [CASES_FOLDER, LISTS_FOLDER, SEARCH_FOLDER] {
        write::create_folder(&out.join(name))?;
    }
    for (name, text) in SHARED_BY_ALL.iter().chain(&SCRIPTS) {
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
    fs::read(out.join(MARKER_FILE)).is_ok_and(|bytes| bytes == MARKER.as_bytes())
}

fn removed(path: &Utf8Path, remove: impl FnOnce(&Utf8Path) -> io::Result<()>) -> Result<(), ReportError> {
    match remove(path) {
        Err(source) if source.kind() != io::ErrorKind::NotFound => {
            Err(ReportError::Folder { path: path.to_owned(), source })
        }
        _ => Ok(()),
    }
}
