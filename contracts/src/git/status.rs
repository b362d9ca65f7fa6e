//! What differs in the work tree.

use serde::{Deserialize, Serialize};

use super::GitError;
use super::command::split;
use super::repository::Repository;

/// The paths of a work tree that are not as they are in the checked out commit. Paths are relative to the repository.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(super) struct Status {
    /// Tracked files with changes, in the index or in the work tree.
    pub(super) changed: Vec<String>,
    /// Files that are neither tracked nor ignored. A nested repository ends with a slash.
    pub(super) untracked: Vec<String>,
    pub(super) submodules: Vec<String>,
}

/// How much a work tree differs from a commit.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Changes {
    /// Files that differ, new ones included.
    pub files: u64,
    /// Added lines. The lines of untracked and binary files are not counted.
    pub insertions: u64,
    /// Removed lines.
    pub deletions: u64,
}

impl Status {
    /// Reads the status: `git status --porcelain=v2`, whose format is stable.
    pub(super) fn read(repository: &Repository) -> Result<Self, GitError> {
        let arguments =
            ["status", "--porcelain=v2", "-z", "--untracked-files=all", "--ignore-submodules=none", "--no-renames"];
        let mut status = Self::default();
        for entry in split(&repository.git(&arguments).output()?)? {
            let (kind, rest) = entry.split_once(' ').ok_or_else(|| GitError::Output("status".to_owned()))?;
            match kind {
                "?" => status.untracked.push(rest.to_owned()),
                // `1 XY sub mH mI mW hH hI path`, and `u XY sub m1 m2 m3 mW h1 h2 h3 path` for conflicts.
                "1" | "u" => {
                    let fields = if kind == "1" { 8 } else { 10 };
                    let mut fields = rest.splitn(fields, ' ');
                    let submodule = fields.nth(1).unwrap_or_default().starts_with('S');
                    let path = fields.last().unwrap_or_default().to_owned();
                    let list = if submodule { &mut status.submodules } else { &mut status.changed };
                    list.push(path);
                }
                _ => {}
            }
        }
        Ok(status)
    }
}

impl Changes {
    /// Counts the differences between a commit and the work tree. `untracked` has the new files that are not tracked.
    pub(super) fn count(repository: &Repository, commit: &str, untracked: usize) -> Result<Self, GitError> {
        let output =
            repository.git(&["diff", "--numstat", "-z", "--no-renames", "--no-ext-diff", commit, "--"]).output()?;
        let mut changes = Self { files: untracked as u64, ..Self::default() };
        for line in split(&output)? {
            // A binary file has `-` for both numbers.
            let mut fields = line.split('\t');
            let mut number = || fields.next().and_then(|it| it.parse::<u64>().ok()).unwrap_or_default();
            changes.insertions += number();
            changes.deletions += number();
            changes.files += 1;
        }
        Ok(changes)
    }
}
