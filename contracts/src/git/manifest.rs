//! What a reset must know about the start besides its commit. It is stored as an object of the repository, whose name is that of
//! its content, so it cannot be changed without notice.

use std::collections::{BTreeMap, BTreeSet};
use std::env;

use camino::{Utf8Path, Utf8PathBuf};
use counterproof_artifact::Sha256Digest;
use counterproof_store::read_file;
use serde::{Deserialize, Serialize};

use super::GitStart;
use super::private::{Entries, Entry, PrivateGit, SUBMODULE_MODE};
use super::repository::Repository;
use super::work_tree::{FileKind, Skipped, WorkTree};
use counterproof_workspace::git::{Git, GitError, GitOptions};

const IGNORE_RULES: &str = ".gitignore";

/// Maximum size of a file with settings or rules, in bytes.
const MAX_RULES_BYTES: u64 = 4 << 20;

/// The files of a git folder that decide what git does. Those of hooks are listed.
const SETTINGS: [&str; 5] = ["config", "config.worktree", "info/attributes", "info/exclude", "info/sparse-checkout"];

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Manifest {
    /// The digest of the list of files of the commit.
    tree: Sha256Digest,
    /// The tracked files that are not as in the commit, such as those that a filter converts. Their content is stored too.
    as_found: Entries,
    /// The ignored files and folders. A folder ends with a slash.
    pub(super) ignored: Vec<String>,
    /// The `.gitignore` files, with the objects of their content.
    rules: BTreeMap<String, String>,
    /// The objects with the rules of the repository and of the user.
    other_rules: [String; 2],
    pub(super) assume_unchanged: Vec<String>,
    pub(super) skip_worktree: Vec<String>,
    settings: BTreeMap<String, Sha256Digest>,
    /// The submodules that are checked out.
    pub(super) submodules: BTreeMap<String, GitStart>,
}

impl Manifest {
    /// Records a work tree without changes. Returns the name of the manifest, or the submodule that cannot be recorded.
    pub(super) fn record(
        repository: &Repository,
        private: &PrivateGit,
        commit: &str,
        untracked: &[String],
        options: &GitOptions,
    ) -> Result<Result<String, String>, GitError> {
        let git = |arguments: &[&str]| repository.git(options, arguments);
        let ignored = git(&["ls-files", "--others", "--ignored", "--exclude-standard", "--directory", "-z"]).paths()?;
        let (tracked, tree) = private.tree(commit)?;
        let mut submodules = BTreeMap::new();
        for path in tracked.iter().filter(|(_, entry)| entry.mode == SUBMODULE_MODE).map(|(path, _)| path) {
            let folder = repository.root.join(path);
            if folder.join(".git").symlink_metadata().is_err() {
                continue;
            }
            let Ok(start) = GitStart::record(&folder, options)? else { return Ok(Err(path.clone())) };
            submodules.insert(path.clone(), start);
        }
        let mut skipped = skipped(&ignored, &submodules);
        // Nested repositories. Other files that are not tracked may be rules.
        skipped.paths.extend(untracked.iter().filter_map(|path| path.strip_suffix('/')));
        let found = WorkTree::read(&repository.root, &skipped)?.files;
        let is_rules = |path: &str| Utf8Path::new(path).file_name() == Some(IGNORE_RULES);
        let rules: BTreeMap<String, FileKind> = found
            .iter()
            .filter(|(path, kind)| is_rules(path) && matches!(kind, FileKind::File { .. }))
            .map(|(path, kind)| (path.clone(), *kind))
            .collect();
        let rules = private.hash(&rules, true)?;
        let as_found = as_found(private, &tracked, found)?;
        let [assume_unchanged, skip_worktree] = flags(git(&["ls-files", "-v", "-z"]))?;
        let own = rules_text(&repository.common_folder.join("info/exclude"));
        let user = excludes_file(repository, options)?.map(|path| rules_text(&path)).unwrap_or_default();
        let manifest = Self {
            tree,
            as_found,
            ignored,
            rules: rules.into_iter().filter_map(|(path, entry)| Some((path, entry?.object))).collect(),
            other_rules: [private.store(own)?, private.store(user)?],
            assume_unchanged,
            skip_worktree,
            settings: settings(repository),
            submodules,
        };
        let bytes = serde_json::to_vec(&manifest).map_err(|error| GitError::Io(error.into()))?;
        private.store(bytes).map(Ok)
    }

    pub(super) fn load(private: &PrivateGit, object: &str) -> Result<Self, GitError> {
        let manifest: Self = serde_json::from_slice(&private.load(object)?).map_err(|_| GitError::NoManifest)?;
        private.set_rules(&manifest.rules, manifest.other_rules.each_ref().map(String::as_str))?;
        Ok(manifest)
    }

    /// Returns the files of the work tree at the start, without submodules.
    pub(super) fn expected(&self, private: &PrivateGit, commit: &str) -> Result<Entries, GitError> {
        let (mut tracked, digest) = private.tree(commit)?;
        // An object of the repository may have been replaced.
        if digest != self.tree {
            return Err(GitError::NoManifest);
        }
        tracked.retain(|_, entry| entry.mode != SUBMODULE_MODE);
        let mut expected: Entries = tracked.into_iter().map(|(path, entry)| (path, Some(entry))).collect();
        expected.extend(self.as_found.clone());
        Ok(expected)
    }

    pub(super) fn as_found(&self) -> &Entries {
        &self.as_found
    }

    pub(super) fn skipped(&self) -> Skipped<'_> {
        skipped(&self.ignored, &self.submodules)
    }

    /// Returns the files with settings that are not as they were. Programs that they name run with later git commands.
    pub(super) fn changed_settings(&self, repository: &Repository) -> Vec<String> {
        let now = settings(repository);
        let names: BTreeSet<&String> = now.keys().chain(self.settings.keys()).collect();
        names.into_iter().filter(|name| now.get(*name) != self.settings.get(*name)).cloned().collect()
    }
}

fn skipped<'a>(ignored: &'a [String], submodules: &'a BTreeMap<String, GitStart>) -> Skipped<'a> {
    let ignored = ignored.iter().map(|path| path.strip_suffix('/').unwrap_or(path));
    Skipped { paths: ignored.chain(submodules.keys().map(String::as_str)).collect(), protected: &[] }
}

/// Returns the tracked files that are not as in the commit, and stores their content. git takes them for unchanged.
fn as_found(
    private: &PrivateGit,
    tracked: &BTreeMap<String, Entry>,
    mut found: BTreeMap<String, FileKind>,
) -> Result<Entries, GitError> {
    found.retain(|path, _| tracked.contains_key(path));
    let mut now = private.hash(&found, false)?;
    for path in tracked.iter().filter(|(_, entry)| entry.mode != SUBMODULE_MODE).map(|(path, _)| path) {
        now.entry(path.clone()).or_insert(None);
    }
    now.retain(|path, entry| entry.as_ref() != tracked.get(path));
    found.retain(|path, _| now.contains_key(path));
    private.hash(&found, true)?;
    Ok(now)
}

/// Returns the paths with the flag `assume-unchanged`, and those with `skip-worktree`.
fn flags(list: Git) -> Result<[Vec<String>; 2], GitError> {
    let [mut assumed, mut skipped] = [Vec::new(), Vec::new()];
    for line in list.paths()? {
        let Some((tag, path)) = line.split_once(' ') else { continue };
        if tag.chars().all(char::is_lowercase) {
            assumed.push(path.to_owned());
        }
        if tag.eq_ignore_ascii_case("S") {
            skipped.push(path.to_owned());
        }
    }
    Ok([assumed, skipped])
}

/// Returns the file with the ignore rules of the user.
fn excludes_file(repository: &Repository, options: &GitOptions) -> Result<Option<Utf8PathBuf>, GitError> {
    let set = repository.git(options, &["config", "--type=path", "--get", "core.excludesFile"]).answer()?;
    if let Some(path) = set {
        let path = String::from_utf8(path).map_err(|_| GitError::Output("config".to_owned()))?;
        return Ok(Some(repository.root.join(path.trim_end_matches('\n'))));
    }
    let variable = |name| env::var(name).ok().filter(|value| !value.is_empty()).map(Utf8PathBuf::from);
    let folder = variable("XDG_CONFIG_HOME").or_else(|| variable("HOME").map(|home| home.join(".config")));
    Ok(folder.map(|folder| folder.join("git/ignore")))
}

/// Returns the rules of a file; none if it cannot be read, as git does.
fn rules_text(path: &Utf8Path) -> Vec<u8> {
    read_file::read(path, MAX_RULES_BYTES).unwrap_or_default()
}

fn settings(repository: &Repository) -> BTreeMap<String, Sha256Digest> {
    let hooks = repository.common_folder.join("hooks");
    let names = hooks.read_dir_utf8().into_iter().flatten().flatten().map(|entry| entry.file_name().to_owned());
    let hooks = names.filter(|name| !name.ends_with(".sample")).map(|name| format!("hooks/{name}"));
    let mut found = BTreeMap::new();
    for name in SETTINGS.map(str::to_owned).into_iter().chain(hooks) {
        let path = repository.common_folder.join(&name);
        if path.symlink_metadata().is_ok() {
            // A file that cannot be read differs from one that can.
            let bytes = read_file::read(&path, MAX_RULES_BYTES).unwrap_or_default();
            found.insert(name, Sha256Digest::from_bytes(&bytes));
        }
    }
    found
}
