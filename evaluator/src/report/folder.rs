//! The output folder of a report. A new report is written next to it and replaces it as a whole. A folder with other content
//! is never changed.

use std::io;

use camino::{Utf8DirEntry, Utf8Path};
use counterproof_store::EVALUATION_FILE;
use counterproof_store::read_file;
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

/// Fails for a folder with other content than a report.
fn refuse_foreign(out: &Utf8Path) -> Result<(), ReportError> {
    // A process that was killed while it published its first report inside of `out` has left entries without a marker.
    if is_empty(out)? || is_report(out) || FolderReplacement::is_interrupted(out) {
        Ok(())
    } else {
        Err(ReportError::NotAReport(out.to_owned()))
    }
}

/// Starts a new report that will replace the one in `out`: its folders and static files, and no page.
pub(crate) fn begin(out: &Utf8Path) -> Result<FolderReplacement, ReportError> {
    refuse_foreign(out)?;
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
fn is_empty(out: &Utf8Path) -> Result<bool, ReportError> {
    let failed = |source| ReportError::Folder { path: out.to_owned(), source };
    match out.read_dir_utf8() {
        Ok(entries) => {
            let entries = entries.collect::<io::Result<Vec<_>>>().map_err(failed)?;
            Ok(entries.iter().all(is_leftover))
        }
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(true),
        Err(error) if error.kind() == io::ErrorKind::NotADirectory => Ok(false),
        Err(source) => Err(failed(source)),
    }
}

/// Whether an interrupted writer has left an entry of an output folder.
pub(crate) fn is_leftover(entry: &Utf8DirEntry) -> bool {
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

fn is_report(out: &Utf8Path) -> bool {
    // The whole content, because a file of this name in a user's folder must not be enough to clear it.
    read_file::read(&out.join(MARKER_FILE), read_file::MAX_SMALL_BYTES).is_ok_and(|bytes| bytes == MARKER.as_bytes())
}
