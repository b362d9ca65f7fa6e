//! The files of a work tree as they are on disk. Nothing that git records about them is trusted.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::os::unix::ffi::OsStringExt as _;
use std::os::unix::fs::PermissionsExt as _;

use camino::Utf8Path;

use super::protected::{Rule, is_protected};
use counterproof_workspace::git::{GitError, utf8};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum FileKind {
    File {
        is_executable: bool,
    },
    Link,
    /// A pipe, a socket or a device.
    Special,
}

/// The paths that a walk leaves out.
#[derive(Debug, Default)]
pub(super) struct Skipped<'a> {
    /// Files and folders, without a slash at their end.
    pub(super) paths: BTreeSet<&'a str>,
    pub(super) protected: &'a [Rule],
}

impl Skipped<'_> {
    fn includes(&self, path: &str) -> bool {
        self.paths.contains(path) || is_protected(path, self.protected)
    }
}

#[derive(Debug, Default)]
pub(super) struct WorkTree {
    pub(super) files: BTreeMap<String, FileKind>,
    /// Folders that are repositories of their own. Their files are not listed.
    pub(super) nested: Vec<String>,
    /// The paths that the walk has left out.
    pub(super) skipped: Vec<String>,
}

impl WorkTree {
    /// Lists the files below a folder, relative to it. Follows no links, and leaves out empty folders and the git folder.
    pub(super) fn read(root: &Utf8Path, skipped: &Skipped<'_>) -> Result<Self, GitError> {
        let mut found = Self::default();
        let mut folders = vec![String::new()];
        while let Some(folder) = folders.pop() {
            let full = root.join(&folder);
            let mut inner = Vec::new();
            for entry in fs::read_dir(&full).map_err(GitError::file(&full))? {
                let entry = entry.map_err(GitError::file(&full))?;
                let name = entry.file_name();
                if name == ".git" {
                    if folder.is_empty() {
                        continue;
                    }
                    found.nested.push(folder.clone());
                    inner.clear();
                    break;
                }
                inner.push((utf8(name.into_vec())?, entry));
            }
            for (name, entry) in inner {
                let path = if folder.is_empty() { name } else { format!("{folder}/{name}") };
                if skipped.includes(&path) {
                    found.skipped.push(path);
                    continue;
                }
                let metadata = entry.metadata().map_err(GitError::file(&root.join(&path)))?;
                let kind = match metadata.file_type() {
                    kind if kind.is_dir() => {
                        folders.push(path);
                        continue;
                    }
                    // As git decides it: the bit of the owner.
                    kind if kind.is_file() => {
                        FileKind::File { is_executable: metadata.permissions().mode() & 0o100 != 0 }
                    }
                    kind if kind.is_symlink() => FileKind::Link,
                    _ => FileKind::Special,
                };
                found.files.insert(path, kind);
            }
        }
        found.nested.sort();
        Ok(found)
    }
}
