//! The folders of a history: where evaluations are found, and where the page is written. A new history is written next to the
//! earlier one and replaces it as a whole; a folder with other content is never changed.

use std::fmt;

use camino::{Utf8Path, Utf8PathBuf};
use counterproof_store::write::StagedFolder;
use counterproof_store::{EVALUATION_FILE, RunReader};

use super::evaluations::{EvaluationSource, History};
use super::page::HistoryPage;
use crate::folder::{CASES_FOLDER, COMMON_FILES, FolderKind, ReportError, publish_page};

/// The content of the marker file, which identifies a history.
const MARKER: &str = "A history of Counterproof. The next history that is written here replaces it. Open index.html.\n";

const HISTORY: FolderKind = FolderKind::of_page("a history", MARKER, &FILES);

const FILES: [(&str, &str); 3] =
    [COMMON_FILES[0], COMMON_FILES[1], ("history.css", include_str!("../../../templates/static/history.css"))];

/// A history under construction. Until it is written, the history that is in its folder stays unchanged.
#[derive(Debug)]
pub struct HistoryFolder {
    /// The folder as the caller named it.
    out: Utf8PathBuf,
    replacement: StagedFolder,
}

impl HistoryFolder {
    /// Starts a history that will be in the folder `out`.
    pub fn begin(out: &Utf8Path) -> Result<Self, ReportError> {
        Ok(Self { out: out.to_owned(), replacement: HISTORY.begin(out)? })
    }

    /// The folder that the history will be in, without symbolic links: for links that start there.
    pub fn target(&self) -> &Utf8Path {
        self.replacement.target()
    }

    /// Writes the history, puts it in its place, and returns the path of its page.
    pub fn write(self, history: &History, skipped: &[SkippedPath]) -> Result<Utf8PathBuf, ReportError> {
        publish_page(self.replacement, &self.out, &HistoryPage::new(history, skipped))
    }
}

/// A folder or file that is not part of the history.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SkippedPath {
    /// The folder or file.
    pub path: Utf8PathBuf,
    /// Why it was skipped.
    pub reason: String,
}

impl fmt::Display for SkippedPath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "skipped `{}`: {}", self.path, self.reason)
    }
}

/// Returns the evaluation files of the folders: the file of a folder itself, or else the files of its direct subfolders. Also returns
/// the folders without one.
pub fn find(folders: &[Utf8PathBuf]) -> (Vec<Utf8PathBuf>, Vec<SkippedPath>) {
    let (mut found, mut skipped) = (Vec::new(), Vec::new());
    for folder in folders {
        // The folder itself first, because a run folder has subfolders, too.
        let file = folder.join(EVALUATION_FILE);
        if file.is_file() {
            found.push(file);
            continue;
        }
        match below(folder) {
            Ok(below) if below.is_empty() => skipped.push(without_evaluation(folder)),
            Ok(below) => {
                for folder in below {
                    let file = folder.join(EVALUATION_FILE);
                    if file.is_file() {
                        found.push(file);
                    // A confirmation run has no evaluation: the one of the run that it confirms includes it. Nor has a history among
                    // the nights, which their reports link.
                    } else if !is_confirmation(&folder) && !HISTORY.site.has_version(&folder) {
                        skipped.push(without_evaluation(&folder));
                    }
                }
            }
            Err(error) => skipped.push(SkippedPath { path: folder.clone(), reason: error.to_string() }),
        }
    }
    (found, skipped)
}

/// The source of the evaluation in a folder, with what else is known of its night.
pub fn source(folder: &Utf8Path, href: Option<String>) -> EvaluationSource {
    let documents = ["", "artifacts/new", "artifacts/new-1"].map(|part| folder.join(part));
    let run = documents.iter().find_map(|folder| RunReader::open(folder).ok());
    let model = run.and_then(|run| run.run().model().map(str::to_owned));
    // Without a folder of pages, the cases are linked to the night.
    let pages = folder.join(CASES_FOLDER).read_dir_utf8().into_iter().flatten().flatten();
    let case_pages = pages.map(|page| page.file_name().to_owned()).collect();
    EvaluationSource { folder: folder.to_string(), href, case_pages, model }
}

fn is_confirmation(folder: &Utf8Path) -> bool {
    RunReader::open(folder).is_ok_and(|run| run.run().confirmation.is_some())
}

fn below(folder: &Utf8Path) -> std::io::Result<Vec<Utf8PathBuf>> {
    let mut below = Vec::new();
    for entry in folder.read_dir_utf8()? {
        let entry = entry?;
        // Unfinished folders of this program start with a dot.
        if entry.path().is_dir() && !entry.file_name().starts_with('.') {
            below.push(entry.into_path());
        }
    }
    // The order of a listing depends on the file system.
    below.sort_unstable();
    Ok(below)
}

fn without_evaluation(folder: &Utf8Path) -> SkippedPath {
    SkippedPath { path: folder.to_owned(), reason: format!("no {EVALUATION_FILE}") }
}
