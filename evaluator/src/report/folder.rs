//! The output folder of a report. A new report is written next to it and replaces it as a whole. A folder with other content
//! is never changed.

use std::io;

use camino::{Utf8DirEntry, Utf8Path};
use counterproof_store::EVALUATION_FILE;
use counterproof_store::write::{self, FolderReplacement, TEMPORARY_PREFIX};

use super::error::ReportError;
use super::layout::{
    ARTIFACTS_FOLDER, CASES_FOLDER, COMMON_FILES, INDEX_FILE, JUNIT_FILE, LISTS_FOLDER, MARKER_FILE, SARIF_FILE,
    SEARCH_FOLDER, STATIC_FOLDER, SUMMARY_FILE,
};

/// The content of the marker file, which identifies a report.
const MARKER: &str = "A report of Counterproof. The next report that is written here replaces it. Open index.html.\n";

/// The scripts of the report pages.
const SCRIPTS: [(&str, &str); 3] = [
    ("report.js", include_str!("../../../templates/static/report.js")),
    ("find.js", include_str!("../../../templates/static/find.js")),
    ("case.js", include_str!("../../../templates/static/case.js")),
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

/// Whether a new version may replace the content of the output folder: it is missing, empty, or holds an old version, whole
/// or interrupted. `marker` is the content of the marker file.
pub(crate) fn is_replaceable(out: &Utf8Path, marker: &str) -> io::Result<bool> {
    // The whole content is compared: a file of this name in a user's folder must not be enough to clear the folder.
    Ok(is_empty(out)? || FolderReplacement::has_version(out, Utf8Path::new(MARKER_FILE), marker))
}

/// Starts a new report that will replace the one in `out`: its folders and static files, and no page.
pub(crate) fn begin(out: &Utf8Path) -> Result<FolderReplacement, ReportError> {
    match is_replaceable(out, MARKER) {
        Ok(true) => {}
        Ok(false) => return Err(ReportError::NotAReport(out.to_owned())),
        Err(source) => return Err(ReportError::Folder { path: out.to_owned(), source }),
    }
    let replacement = FolderReplacement::begin(out, &ENTRIES)?;
    let folder = replacement.path();
    for name in [CASES_FOLDER, LISTS_FOLDER, SEARCH_FOLDER] {
        write::create_folder(&folder.join(name))?;
    }
    write::write_new(&folder.join(MARKER_FILE), MARKER.as_bytes())?;
    for (name, text) in COMMON_FILES.iter().chain(&SCRIPTS) {
        write::write_new(&folder.join(STATIC_FOLDER).join(name), text.as_bytes())?;
    }
    Ok(replacement)
}

/// Whether the folder is missing, or contains nothing but files that an interrupted writer has left.
fn is_empty(out: &Utf8Path) -> io::Result<bool> {
    match out.read_dir_utf8() {
        Ok(entries) => Ok(entries.collect::<io::Result<Vec<_>>>()?.iter().all(is_leftover)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(true),
        Err(error) if error.kind() == io::ErrorKind::NotADirectory => Ok(false),
        Err(error) => Err(error),
    }
}

/// Whether an interrupted writer has left an entry of an output folder.
fn is_leftover(entry: &Utf8DirEntry) -> bool {
    // Earlier versions created the folder of static files before the marker in it.
    is_unfinished(entry) || is_empty_static(entry)
}

fn is_unfinished(entry: &Utf8DirEntry) -> bool {
    entry.file_name().starts_with(TEMPORARY_PREFIX)
}

fn is_empty_static(entry: &Utf8DirEntry) -> bool {
    let contains_only_unfinished = |folder: &Utf8Path| {
        folder.read_dir_utf8().is_ok_and(|entries| entries.flatten().all(|entry| is_unfinished(&entry)))
    };
    entry.file_name() == STATIC_FOLDER && contains_only_unfinished(entry.path())
}
