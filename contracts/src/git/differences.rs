//! How a work tree differs from the start, by content.

use std::collections::{BTreeMap, BTreeSet};

use camino::Utf8Path;
use counterproof_artifact::Sha256Digest;
use serde::{Deserialize, Serialize};

use super::manifest::Manifest;
use super::private::{Entries, LINK_MODE, Objects, PrivateGit};
use super::protected::is_protected;
use super::work_tree::{FileKind, WorkTree};
use super::{GitError, GitOptions, GitStart, Protected};
use counterproof_workspace::git::split;

/// The differences from a start. Files that were ignored or not tracked then are left out, and so are protected files, and new
/// files that the ignore rules of the start ignore, unless they are in the place of a tracked file.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(super) struct Differences {
    /// The tracked files as they were at the start, without submodules.
    pub(super) expected: Entries,
    /// The files of `expected` that are not as they were, and the new files, as they are now. `None` for a file that is missing,
    /// and for a special file.
    pub(super) now: Entries,
    /// The new files.
    pub(super) new: BTreeSet<String>,
    /// Pipes, sockets and devices. A commit cannot have them.
    pub(super) special: BTreeSet<String>,
    /// New folders that are repositories of their own.
    pub(super) nested: Vec<String>,
    /// Files that are left out, although a tracked file was in the place of a folder above them: a reset would remove them.
    pub(super) in_the_way: Vec<String>,
    pub(super) submodules: Vec<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Changes {
    /// Files that differ, new ones included.
    pub files: u64,
    /// Added lines. Those of binary files are not counted.
    pub insertions: u64,
    pub deletions: u64,
}

impl Differences {
    pub(super) fn find(
        start: &GitStart,
        manifest: &Manifest,
        private: &PrivateGit,
        protected: &Protected,
        options: &GitOptions,
    ) -> Result<Self, GitError> {
        let rules = protected.within(start.root());
        let mut skipped = manifest.skipped();
        skipped.paths.extend(start.untracked.iter().map(|path| path.strip_suffix('/').unwrap_or(path)));
        skipped.protected = &rules;
        let mut expected = manifest.expected(private, &start.commit)?;
        expected.retain(|path, _| !is_protected(path, &rules));
        let WorkTree { mut files, nested, skipped } = WorkTree::read(start.root(), &skipped)?;
        // A path that is new since the start may be ignored. For a nested repository, a file in it is checked.
        let inner = |folder: &String| format!("{folder}/.git");
        let unknown: Vec<String> = files
            .keys()
            .filter(|path| !expected.contains_key(*path))
            .cloned()
            .chain(nested.iter().map(inner))
            .collect();
        let mut ignored = private.ignored(unknown.iter())?;
        // What is in the place of a tracked file, or of a folder above one, is part of the work, whatever its name: a reset removes
        // it, so it must be saved.
        ignored.retain(|path| !is_above_a_file(path, &expected) && !is_below_a_file(path, &expected));
        files.retain(|path, _| !ignored.contains(path));
        let mut now = private.hash(&files, false)?;
        let special =
            files.iter().filter(|(_, kind)| **kind == FileKind::Special).map(|(path, _)| path.clone()).collect();
        let new = files.keys().filter(|path| !matches!(expected.get(*path), Some(Some(_)))).cloned().collect();
        for path in expected.iter().filter(|(_, entry)| entry.is_some()).map(|(path, _)| path) {
            now.entry(path.clone()).or_insert(None);
        }
        now.retain(|path, entry| expected.get(path) != Some(entry));
        let is_left_alone = |folder: &String| ignored.contains(&inner(folder)) && !is_above_a_file(folder, &expected);
        let nested = nested.into_iter().filter(|folder| !is_left_alone(folder)).collect();
        let in_the_way = skipped.into_iter().filter(|path| is_below_a_file(path, &expected)).collect();
        let submodules = changed_submodules(manifest, options)?;
        Ok(Self { expected, now, new, special, nested, in_the_way, submodules })
    }

    pub(super) fn changed(&self) -> impl Iterator<Item = &String> {
        self.now.keys().filter(|path| !self.new.contains(*path))
    }

    /// Returns the paths of everything that differs.
    pub(super) fn paths(&self) -> Vec<String> {
        let others = self.nested.iter().chain(&self.submodules);
        self.now.keys().chain(&self.special).chain(others).cloned().collect::<BTreeSet<_>>().into_iter().collect()
    }

    pub(super) fn digest(&self) -> Sha256Digest {
        let text = format!("{:?}", (&self.now, &self.special, &self.nested, &self.submodules));
        Sha256Digest::from_bytes(text.as_bytes())
    }

    /// Writes the objects of everything that differs, for a commit or a comparison.
    pub(super) fn store(&self, start: &GitStart, private: &PrivateGit) -> Result<(), GitError> {
        let kinds: BTreeMap<String, FileKind> = self
            .now
            .iter()
            .filter_map(|(path, entry)| {
                let kind = match entry.as_ref()?.mode.as_str() {
                    LINK_MODE => FileKind::Link,
                    mode => FileKind::File { is_executable: mode == "100755" },
                };
                Some((path.clone(), kind))
            })
            .collect();
        let stored = private.hash(&kinds, true)?;
        // A process that still writes would make the saved work another one than was compared.
        let differs = stored.iter().find(|(path, entry)| self.now.get(*path) != Some(entry));
        match differs {
            Some((path, _)) => Err(GitError::File {
                path: start.root().join(path),
                source: std::io::Error::other("it changes while it is saved"),
            }),
            None => Ok(()),
        }
    }

    pub(super) fn count(&self, start: &GitStart, private: &PrivateGit) -> Result<Changes, GitError> {
        self.store(start, private)?;
        let before = self.now.keys().map(|path| (path.clone(), self.expected.get(path).cloned().flatten())).collect();
        private.set_index(&start.commit, &before)?;
        let before = private.write_tree()?;
        private.set_index(&start.commit, &self.now)?;
        let arguments = ["diff-tree", "-r", "--numstat", "-z", "--no-renames", &before, &private.write_tree()?];
        let mut changes = Changes { files: self.special.len() as u64, ..Changes::default() };
        for line in split(&private.git_apart(&arguments)?.output()?)? {
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

/// True if a path is a folder of these files.
pub(super) fn is_above_a_file(path: &str, files: &Entries) -> bool {
    let folder = format!("{path}/");
    files.range(folder.clone()..).next().is_some_and(|(file, _)| file.starts_with(&folder))
}

/// True if one of these files was in the place of a folder above a path.
fn is_below_a_file(path: &str, files: &Entries) -> bool {
    Utf8Path::new(path).ancestors().skip(1).any(|folder| matches!(files.get(folder.as_str()), Some(Some(_))))
}

/// Returns the submodules whose commit, branch or files are not as they were.
fn changed_submodules(manifest: &Manifest, options: &GitOptions) -> Result<Vec<String>, GitError> {
    let mut changed = Vec::new();
    for (path, start) in &manifest.submodules {
        let is_same = start.repository.exists() && {
            let (_, _, inner) = start.differences(&Protected::default(), Objects::Temporary, options)?;
            let head = start.repository.head(options)?;
            inner.paths().is_empty() && head.as_ref() == Some(&start.commit)
        };
        if !is_same {
            changed.push(path.clone());
        }
    }
    Ok(changed)
}
