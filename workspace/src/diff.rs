//! Differences between two commits or trees of the store.

use counterproof_artifact::Sha256Digest;
use serde::{Deserialize, Serialize};

use crate::git::GitError;
use crate::repository::{StoredRepository, WorkspaceError, display, object_name, temporary_folder};

/// Largest file whose changed lines are shown, in bytes. The same limit keeps the time of a comparison short.
const MAX_PATCH_FILE_BYTES: &str = "256k";

/// Longest patch, in bytes.
const MAX_PATCH_BYTES: usize = 64 << 10;

/// Maximum number of changed files for which there are patches.
const MAX_PATCHES: usize = 1000;

/// Maximum bytes of files that are read at once.
const MAX_READ_BYTES: u64 = 64 << 20;

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ChangeKind {
    Created,
    Modified,
    Deleted,
}

/// The changed lines of a file, as `git diff --numstat` counts them.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct FileStat {
    pub path: String,
    pub status: ChangeKind,
    /// `None` for a binary file.
    pub added: Option<u64>,
    pub removed: Option<u64>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TreeChange {
    pub path: String,
    pub change: ChangeKind,
    /// The digest of the bytes, or of the target of a link. `None` where there is no file, and for submodules.
    pub before_sha256: Option<String>,
    pub after_sha256: Option<String>,
    /// A unified diff. `None` for binary and for large files.
    pub patch: Option<String>,
}

/// A line of `git diff-tree --raw`.
struct RawChange {
    path: Vec<u8>,
    kind: ChangeKind,
    /// Between a file, a link and a submodule. Git prints two patches for it.
    changes_type: bool,
    before: Option<String>,
    after: Option<String>,
}

impl StoredRepository {
    /// Returns the changed files, without detection of renames.
    pub fn numstat(&self, base: &str, head: &str) -> Result<Vec<FileStat>, WorkspaceError> {
        let changes = self.raw_changes(base, head)?;
        // The attributes of the head decide which files are binary. They are read from an index, as there is no work tree.
        let folder = temporary_folder()?;
        let empty = folder.path().join("empty");
        std::fs::create_dir(&empty).map_err(WorkspaceError::file(&empty))?;
        let git = |arguments: &[&str]| {
            self.git(arguments).with("GIT_INDEX_FILE", folder.path().join("index")).with("GIT_WORK_TREE", &empty)
        };
        git(&["read-tree", object_name(head)?]).output()?;
        let arguments =
            ["diff-tree", "-r", "-z", "--numstat", "--no-renames", "--no-ext-diff", "--no-textconv", base, head];
        let output = git(&arguments).output()?;
        let invalid = || GitError::Output("diff-tree".to_owned());
        let lines = output.split(|byte| *byte == 0).filter(|line| !line.is_empty());
        let mut files = Vec::new();
        for (line, change) in lines.zip(&changes) {
            let mut fields = line.splitn(3, |byte| *byte == b'\t');
            let mut field = || fields.next().ok_or_else(invalid);
            let count = |bytes: &[u8]| std::str::from_utf8(bytes).ok().and_then(|text| text.parse().ok());
            let (added, removed, path) = (count(field()?), count(field()?), field()?);
            if path != change.path {
                return Err(invalid().into());
            }
            files.push(FileStat { path: display(path), status: change.kind, added, removed });
        }
        if files.len() == changes.len() { Ok(files) } else { Err(invalid().into()) }
    }

    /// Returns the changed files of two commits or trees, with the digests of their bytes and the changed lines.
    pub fn changes(&self, from_tree: &str, to_tree: &str) -> Result<Vec<TreeChange>, WorkspaceError> {
        if from_tree == to_tree {
            return Ok(Vec::new());
        }
        let changes = self.raw_changes(from_tree, to_tree)?;
        let objects: Vec<&str> =
            changes.iter().flat_map(|change| [&change.before, &change.after]).flatten().map(String::as_str).collect();
        let mut digests = self.digests(&objects)?.into_iter();
        let mut patches = self.patches(&changes, from_tree, to_tree)?.into_iter();
        let mut digest = |object: &Option<String>| object.as_ref().and_then(|_| digests.next());
        let listed = changes.iter().map(|change| TreeChange {
            path: display(&change.path),
            change: change.kind,
            before_sha256: digest(&change.before),
            after_sha256: digest(&change.after),
            patch: patches.next().flatten(),
        });
        Ok(listed.collect())
    }

    fn raw_changes(&self, from: &str, to: &str) -> Result<Vec<RawChange>, WorkspaceError> {
        let arguments =
            ["diff-tree", "-r", "-z", "--raw", "--no-abbrev", "--no-renames", object_name(from)?, object_name(to)?];
        let output = self.git(&arguments).output()?;
        let invalid = || GitError::Output("diff-tree".to_owned());
        let mut parts = output.split(|byte| *byte == 0).filter(|part| !part.is_empty());
        let mut changes = Vec::new();
        // `:mode mode object object status`, and then the path.
        while let Some(fields) = parts.next() {
            let path = parts.next().ok_or_else(invalid)?;
            let fields = std::str::from_utf8(fields).map_err(|_| invalid())?;
            let fields: Vec<&str> = fields.trim_start_matches(':').split(' ').collect();
            let [mode_before, mode_after, before, after, status] = fields[..] else { return Err(invalid().into()) };
            let kind = match status {
                "A" => ChangeKind::Created,
                "D" => ChangeKind::Deleted,
                _ => ChangeKind::Modified,
            };
            let file = |mode: &str, object: &str| (mode != "000000" && mode != "160000").then(|| object.to_owned());
            changes.push(RawChange {
                path: path.to_vec(),
                kind,
                changes_type: status == "T",
                before: file(mode_before, before),
                after: file(mode_after, after),
            });
        }
        Ok(changes)
    }

    /// Returns the SHA-256 digests of the contents of objects.
    fn digests(&self, objects: &[&str]) -> Result<Vec<String>, WorkspaceError> {
        let invalid = || GitError::Output("cat-file".to_owned());
        let listed = |objects: &[&str]| objects.iter().flat_map(|object| format!("{object}\n").into_bytes()).collect();
        if objects.is_empty() {
            return Ok(Vec::new());
        }
        let sizes = self.git(&["cat-file", "--batch-check=%(objectsize)"]).with_input(listed(objects)).text()?;
        let sizes: Vec<u64> = sizes.lines().filter_map(|line| line.parse().ok()).collect();
        if sizes.len() != objects.len() {
            return Err(invalid().into());
        }
        let mut digests = Vec::new();
        let mut start = 0;
        while start < objects.len() {
            let mut bytes = sizes[start];
            let mut end = start + 1;
            while end < objects.len() && bytes.saturating_add(sizes[end]) <= MAX_READ_BYTES {
                bytes += sizes[end];
                end += 1;
            }
            let output =
                self.git(&["cat-file", "--batch=%(objectsize)"]).with_input(listed(&objects[start..end])).output()?;
            let mut rest = output.as_slice();
            for size in &sizes[start..end] {
                let header = rest.iter().position(|byte| *byte == b'\n').ok_or_else(invalid)?;
                let size = usize::try_from(*size).map_err(|_| invalid())?;
                let content = rest.get(header + 1..).and_then(|rest| rest.get(..size)).ok_or_else(invalid)?;
                digests.push(hex(content));
                // A line end follows the content.
                rest = rest.get(header + 1 + size + 1..).ok_or_else(invalid)?;
            }
            start = end;
        }
        Ok(digests)
    }

    /// Returns a patch for each change, in the same order.
    fn patches(&self, changes: &[RawChange], from: &str, to: &str) -> Result<Vec<Option<String>>, WorkspaceError> {
        if changes.len() > MAX_PATCHES {
            return Ok(Vec::new());
        }
        let limit = format!("core.bigFileThreshold={MAX_PATCH_FILE_BYTES}");
        let arguments =
            ["-c", &limit, "diff-tree", "-r", "-p", "--no-renames", "--no-ext-diff", "--no-textconv", from, to];
        let output = self.git(&arguments).output()?;
        let mut sections: Vec<Vec<u8>> = Vec::new();
        // Lines of files begin with a space or a sign, so only headers begin like this.
        for line in output.split_inclusive(|byte| *byte == b'\n') {
            if line.starts_with(b"diff --git ") {
                sections.push(Vec::new());
            }
            if let Some(section) = sections.last_mut() {
                section.extend_from_slice(line);
            }
        }
        let mut sections = sections.into_iter();
        let patch = |change: &RawChange| {
            let mut patch = sections.next()?;
            if change.changes_type {
                patch.extend(sections.next()?);
            }
            let is_binary = patch.split(|byte| *byte == b'\n').any(|line| line.starts_with(b"Binary files "));
            let patch = (!is_binary && patch.len() <= MAX_PATCH_BYTES).then_some(patch)?;
            String::from_utf8(patch).ok()
        };
        Ok(changes.iter().map(patch).collect())
    }
}

fn hex(bytes: &[u8]) -> String {
    let digest = Sha256Digest::from_bytes(bytes).to_string();
    digest.rsplit(':').next().unwrap_or_default().to_owned()
}
