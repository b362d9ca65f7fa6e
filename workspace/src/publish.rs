//! What leaves the store: the tree of a snapshot to publish, and the file for another machine.

use std::collections::BTreeSet;
use std::fmt::Write as _;

use camino::Utf8Path;
use counterproof_store::read_file;
use counterproof_store::write::{Durability, copy, write};

use crate::git::GitError;
use crate::repository::{StoredRepository, TreeEntry, WorkspaceError, object_name, temporary_folder};
use crate::snapshot::Snapshot;

/// The folders that builds create anywhere. They are left out of commits unless the base has files in them.
const OUTPUT_FOLDERS: [&str; 3] = ["__pycache__", ".pytest_cache", "node_modules"];

/// The folder of builds next to a `Cargo.toml`.
const CARGO_FOLDER: &str = "target";

impl StoredRepository {
    /// Returns the tree to commit for a snapshot: without outputs of builds that are new since the base, unless the base has
    /// files in the same folder, and with the submodules of the base.
    pub fn publishable_tree(&self, snapshot: &Snapshot) -> Result<String, WorkspaceError> {
        let base = self.tree(&snapshot.base)?;
        let in_base: BTreeSet<&[u8]> = base.iter().map(|(path, _)| path.as_slice()).collect();
        let submodules: Vec<&(Vec<u8>, TreeEntry)> = base.iter().filter(|(_, entry)| entry.is_submodule()).collect();
        let files = self.tree(&snapshot.tree)?;
        let saved: BTreeSet<&[u8]> = files.iter().map(|(path, _)| path.as_slice()).collect();
        let is_in_submodule = |path: &[u8]| submodules.iter().any(|(folder, _)| is_below(path, folder));
        let mut changes = Vec::new();
        let mut change = |mode: &str, object: &str, path: &[u8]| {
            changes.extend_from_slice(format!("{mode} {object}\t").as_bytes());
            changes.extend_from_slice(path);
            changes.push(0);
        };
        let nothing = "0".repeat(snapshot.tree.len());
        for (path, _) in files.iter().filter(|(path, _)| !in_base.contains(path.as_slice())) {
            if is_output(path, &in_base, &saved) || is_in_submodule(path) {
                change("0", &nothing, path);
            }
        }
        // Removals first: a submodule may be in the place of a folder.
        for (path, entry) in submodules.iter().filter(|(path, _)| !saved.contains(path.as_slice())) {
            if files.iter().any(|(file, _)| is_below(file, path)) {
                change(&entry.mode, &entry.object, path);
            }
        }
        if changes.is_empty() {
            return Ok(snapshot.tree.clone());
        }
        let folder = temporary_folder()?;
        let index = folder.path().join("index");
        let git = |arguments: &[&str]| self.git(arguments).with("GIT_INDEX_FILE", &index);
        git(&["read-tree", &snapshot.tree]).output()?;
        git(&["update-index", "--add", "--remove", "--replace", "-z", "--index-info"]).with_input(changes).output()?;
        // A submodule has its objects elsewhere.
        Ok(git(&["write-tree", "--missing-ok"]).text()?)
    }

    /// Writes commits with their whole history into one file. It replaces a file with this name.
    pub fn bundle(&self, commits: &[String], out: &Utf8Path) -> Result<(), WorkspaceError> {
        // A bundle holds references, and these are there only for it.
        let parent = out.parent().filter(|parent| !parent.as_str().is_empty()).unwrap_or(Utf8Path::new("."));
        // Absolute: git runs in another folder.
        let parent = parent.canonicalize_utf8().map_err(WorkspaceError::file(parent))?;
        let folder = tempfile::tempdir_in(&parent).map_err(WorkspaceError::file(&parent))?;
        let name = folder.path().file_name().unwrap_or_default().to_string_lossy().replace('.', "");
        let prefix = format!("{BUNDLE}{name}/");
        let mut create = String::new();
        let mut remove = String::new();
        for (number, commit) in commits.iter().enumerate() {
            let _ = writeln!(create, "update {prefix}commits/{number} {}", object_name(commit)?);
            let _ = writeln!(remove, "delete {prefix}commits/{number}");
        }
        for file in [SHALLOW, EXCLUDES] {
            let bytes = self.read_file(file);
            if !bytes.is_empty() {
                let object = self.git(&["hash-object", "-w", "--no-filters", "--stdin"]).with_input(bytes).text()?;
                let _ = writeln!(create, "update {prefix}{file} {object}");
                let _ = writeln!(remove, "delete {prefix}{file}");
            }
        }
        let update = |lines: &str| {
            let lines = lines.as_bytes().to_vec();
            self.unlocking(|| self.git(&["update-ref", "--no-deref", "--stdin"]).with_input(lines.clone()).output())
        };
        update(&create)?;
        let pattern = format!("--glob={prefix}*");
        let staged = folder.path().join("bundle");
        let staged = staged.to_string_lossy();
        let created = self.git(&["bundle", "create", "--quiet", &staged, &pattern]).output();
        update(&remove)?;
        created?;
        let staged = Utf8Path::new(&*staged);
        copy(staged, out, Durability::Synced)?;
        Ok(())
    }

    /// Adds what [`StoredRepository::bundle`] has written to a repository of the store. What the repository has stays as it is.
    pub(crate) fn add_bundle(&self, file: &Utf8Path) -> Result<(), WorkspaceError> {
        let file = file.canonicalize_utf8().map_err(WorkspaceError::file(file))?;
        let invalid = || GitError::Output("bundle".to_owned());
        let listed = self.git(&["bundle", "unbundle", "--", file.as_str()]).text()?;
        let mut references = String::new();
        for line in listed.lines() {
            let (object, name) = line.split_once(' ').ok_or_else(invalid)?;
            let object = object_name(object)?;
            let name = name.strip_prefix(BUNDLE).and_then(|name| name.split_once('/')).map(|(_, name)| name);
            match name {
                Some(SHALLOW) => self.add_shallow(&self.small_blob(object)?)?,
                Some(EXCLUDES) if self.path.join(EXCLUDES).exists() => {}
                Some(EXCLUDES) => write(&self.path.join(EXCLUDES), &self.small_blob(object)?, Durability::Synced)?,
                Some(_) => {
                    let _ = writeln!(references, "update {STARTS}{object} {object}");
                }
                None => return Err(invalid().into()),
            }
        }
        let lines = references.into_bytes();
        self.unlocking(|| self.git(&["update-ref", "--no-deref", "--stdin"]).with_input(lines.clone()).output())?;
        Ok(())
    }

    fn small_blob(&self, object: &str) -> Result<Vec<u8>, WorkspaceError> {
        let size = self.git(&["cat-file", "-s", object]).text()?;
        if size.parse::<u64>().is_ok_and(|size| size <= read_file::MAX_SMALL_BYTES) {
            Ok(self.git(&["cat-file", "blob", object]).output()?)
        } else {
            Err(GitError::Output("bundle".to_owned()).into())
        }
    }

    /// Adds the oldest commits of a shallow history, if this repository does not have what is before them.
    fn add_shallow(&self, listed: &[u8]) -> Result<(), WorkspaceError> {
        let listed = String::from_utf8_lossy(listed).into_owned();
        let mut shallow = String::from_utf8_lossy(&self.read_file(SHALLOW)).into_owned();
        for commit in listed.lines() {
            if shallow.lines().any(|line| line == commit) {
                continue;
            }
            let content = self.git(&["cat-file", "commit", object_name(commit)?]).output()?;
            let content = String::from_utf8_lossy(&content).into_owned();
            let mut parents = content.lines().map_while(|line| {
                let is_header = line.starts_with("tree ") || line.starts_with("parent ");
                is_header.then(|| line.strip_prefix("parent "))
            });
            let is_missing = |parent: &str| self.git(&["cat-file", "-e", parent]).output().is_err();
            let is_cut = parents.any(|parent| parent.is_some_and(is_missing));
            if is_cut {
                let _ = writeln!(shallow, "{commit}");
            }
        }
        if shallow.is_empty() {
            Ok(())
        } else {
            Ok(write(&self.path.join(SHALLOW), shallow.as_bytes(), Durability::Synced)?)
        }
    }
}

/// Start of the references of a bundle.
const BUNDLE: &str = "refs/counterproof/bundle/";

/// Start of the references of commits that work starts from, which are named after the commits.
pub(crate) const STARTS: &str = "refs/counterproof/starts/";

/// The file with the oldest commits of a shallow repository.
pub(crate) const SHALLOW: &str = "shallow";

/// The file with the rules of the user for ignored files.
pub(crate) const EXCLUDES: &str = "info/exclude";

fn is_below(path: &[u8], folder: &[u8]) -> bool {
    path.strip_prefix(folder).is_some_and(|rest| rest.first() == Some(&b'/'))
}

/// True for an output of a build at a path that the base does not have.
fn is_output(path: &[u8], in_base: &BTreeSet<&[u8]>, saved: &BTreeSet<&[u8]>) -> bool {
    if path.ends_with(b".pyc") {
        return true;
    }
    let mut start = 0;
    for (end, _) in path.iter().enumerate().filter(|(_, byte)| **byte == b'/') {
        let name = &path[start..end];
        let is_folder = OUTPUT_FOLDERS.iter().any(|folder| folder.as_bytes() == name)
            || (name == CARGO_FOLDER.as_bytes() && {
                let manifest = [&path[..start], b"Cargo.toml"].concat();
                saved.contains(manifest.as_slice())
            });
        // The first path at or after `folder/` is in the folder, if any is.
        let is_in_base = || in_base.range(&path[..=end]..).next().is_some_and(|next| next.starts_with(&path[..=end]));
        if is_folder && !is_in_base() {
            return true;
        }
        start = end + 1;
    }
    false
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn outputs_of_builds_are_left_out_unless_the_base_has_files_in_their_folder() {
        fn set<'a>(paths: &[&'a str]) -> BTreeSet<&'a [u8]> {
            paths.iter().map(|path| path.as_bytes()).collect()
        }
        let base = set(&["src/a.py", "vendor/node_modules/a/index.js"]);
        let saved = set(&["rust/Cargo.toml"]);
        let is_output = |path: &str| is_output(path.as_bytes(), &base, &saved);
        for path in ["a.pyc", "src/__pycache__/a.bin", "node_modules/x/y", "rust/target/debug/x", ".pytest_cache/v/1"] {
            assert!(is_output(path), "{path}");
        }
        for path in ["target/x", "vendor/node_modules/b.js", "node_modules", "src/target", "a.py", "my__pycache__/x"] {
            assert!(!is_output(path), "{path}");
        }
    }
}
