//! Finds evaluations in the given folders and in their direct subfolders.

use std::fmt;

use camino::{Utf8Path, Utf8PathBuf};
use counterproof_store::{EVALUATION_FILE, RunReader};

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

/// Returns the evaluation files of the folders: the file of a folder itself, or else those of its direct subfolders. Also returns
/// the folders without one.
pub fn find(folders: &[Utf8PathBuf]) -> (Vec<Utf8PathBuf>, Vec<SkippedPath>) {
    let (mut found, mut skipped) = (Vec::new(), Vec::new());
    for folder in folders {
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
                    } else if !is_confirmation(&folder) {
                        skipped.push(without_evaluation(&folder));
                    }
                }
            }
            Err(error) => skipped.push(SkippedPath { path: folder.clone(), reason: error.to_string() }),
        }
    }
    (found, skipped)
}

/// A confirmation run has no evaluation: that of the run that it confirms counts it.
fn is_confirmation(folder: &Utf8Path) -> bool {
    RunReader::open(folder).is_ok_and(|run| run.run().confirmation.is_some())
}

fn below(folder: &Utf8Path) -> std::io::Result<Vec<Utf8PathBuf>> {
    let mut below = Vec::new();
    for entry in folder.read_dir_utf8()? {
        let entry = entry?;
        if entry.path().is_dir() && !entry.file_name().starts_with('.') {
            below.push(entry.into_path());
        }
    }
    below.sort_unstable();
    Ok(below)
}

fn without_evaluation(folder: &Utf8Path) -> SkippedPath {
    SkippedPath { path: folder.to_owned(), reason: format!("no {EVALUATION_FILE}") }
}
