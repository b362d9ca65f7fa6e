//! Where evaluations are: in the folders that are named, and in those right below them.

use std::fmt;

use camino::{Utf8Path, Utf8PathBuf};
use counterproof_store::EVALUATION_FILE;

/// A folder or a file that is no part of the history, and why.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LeftOut {
    /// What was looked at.
    pub path: Utf8PathBuf,
    /// Why it does not count.
    pub why: String,
}

impl fmt::Display for LeftOut {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "`{}` is left out: {}", self.path, self.why)
    }
}

/// The evaluations of some folders: that which lies in a folder itself, or else one in each folder right below it. What has
/// none is told too.
pub fn find(folders: &[Utf8PathBuf]) -> (Vec<Utf8PathBuf>, Vec<LeftOut>) {
    let (mut found, mut left_out) = (Vec::new(), Vec::new());
    for folder in folders {
        let file = folder.join(EVALUATION_FILE);
        if file.is_file() {
            found.push(file);
            continue;
        }
        match below(folder) {
            Ok(below) if below.is_empty() => left_out.push(without_evaluation(folder)),
            Ok(below) => {
                for folder in below {
                    let file = folder.join(EVALUATION_FILE);
                    if file.is_file() { found.push(file) } else { left_out.push(without_evaluation(&folder)) }
                }
            }
            Err(error) => left_out.push(LeftOut { path: folder.clone(), why: error.to_string() }),
        }
    }
    (found, left_out)
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

fn without_evaluation(folder: &Utf8Path) -> LeftOut {
    LeftOut { path: folder.to_owned(), why: format!("it has no {EVALUATION_FILE}") }
}
