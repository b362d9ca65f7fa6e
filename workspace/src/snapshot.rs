//! Snapshots of a workspace: its files as a commit in the store.
//!
//! ```text
//! StatCache of the last snapshot ─┐
//! WorkspaceFiles on disk ─────────┴─▶ changed files ─▶ git fast-import ─▶ one pack, one reference ─▶ StatCache
//! ```

use std::collections::BTreeSet;
use std::fs::{self, File};
use std::io::{self, BufWriter, Read as _, Write};
use std::os::unix::ffi::OsStrExt as _;
use std::sync::{Arc, OnceLock};

use camino::{Utf8Path, Utf8PathBuf};
use counterproof_store::FileLock;
use counterproof_store::write::sync;
use serde::{Deserialize, Serialize};

use crate::CHECKPOINTS;
use crate::files::{LeftOutReason, Rules, WorkspaceFiles, file_stat, joined, open_file};
use crate::git::GitError;
use crate::publish::EXCLUDES;
use crate::repository::{
    RepositoryId, StoredRepository, WorkspaceError, absolute, below, display, object_name, own_reference,
};
use crate::stat_cache::{FileKind, FileStat, StatCache};

/// Files up to this size are read before their length is known to git, so that they may change at the same time.
const MAX_BUFFERED_BYTES: u64 = 8 << 20;

/// The number of packs at which they are combined. Each snapshot with changes has one.
const MAX_PACKS: usize = 24;

/// How often the files are read again if they change meanwhile.
const RETRIES: u32 = 3;

/// How many of the largest files an error lists.
const LISTED: usize = 5;

/// The trees without entries, by SHA-1 and SHA-256.
const EMPTY_TREES: [&str; 2] =
    ["4b825dc642cb6eb9a060e54bf8d69288fbee4904", "6ef19b41225c5369f1c104d45d8d85efa9b057b53b14b4b9b939dd74decc5321"];

/// A folder with the files of a repository, to work in. Its `.git` is for the agent: no command of this crate reads it.
#[derive(Debug)]
pub struct Workspace {
    pub(crate) store: StoredRepository,
    pub(crate) folder: Utf8PathBuf,
    pub(crate) cache: StatCache,
    pub(crate) tracked: OnceLock<Arc<BTreeSet<Vec<u8>>>>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SnapshotOptions {
    /// The start of the references of a session, below [`CHECKPOINTS`], without a slash at its end. Each snapshot has the
    /// reference `START/COMMIT`, and the last one with changes is also `START/newest`.
    pub reference: String,
    /// Files and folders to save although they are ignored, relative to the workspace.
    pub include_ignored: Vec<String>,
    /// Maximum bytes of files that are new or changed since the last snapshot.
    pub max_bytes: u64,
}

/// The files of a workspace at one time.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Snapshot {
    pub repository: RepositoryId,
    /// The commit that the work started from: the parent of `commit`.
    pub base: String,
    pub commit: String,
    pub tree: String,
    /// Folders without files, which git does not record.
    pub empty_folders: Vec<String>,
    pub include_ignored: Vec<String>,
    pub left_out: Vec<LeftOut>,
}

/// An entry of the workspace that a snapshot cannot hold. Ignored files are not listed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct LeftOut {
    pub path: String,
    pub reason: String,
}

impl StoredRepository {
    /// Opens a workspace as it is.
    pub fn open(&self, folder: &Utf8Path) -> Result<Workspace, WorkspaceError> {
        let folder = &absolute(folder)?;
        let not_a_workspace = || WorkspaceError::NotAWorkspace(folder.to_owned());
        let cache = StatCache::read(folder).ok_or_else(not_a_workspace)?;
        if cache.header.repository != self.id {
            return Err(WorkspaceError::OtherRepository(cache.header.repository));
        }
        if !folder.symlink_metadata().is_ok_and(|found| found.is_dir()) {
            return Err(not_a_workspace());
        }
        Ok(Workspace { store: self.clone(), folder: folder.to_owned(), cache, tracked: OnceLock::new() })
    }

    /// Combines the small packs of snapshots, so that their number and the space for their folders stay small. The large pack of an
    /// import stays as it is, and nothing is removed.
    fn combine_packs(&self) -> Result<(), WorkspaceError> {
        let folder = self.path.join("objects/pack");
        let entries = folder.read_dir_utf8().map_err(WorkspaceError::file(&folder))?;
        let packs = entries.filter_map(Result::ok).filter(|entry| entry.path().extension() == Some("pack")).count();
        if packs < MAX_PACKS {
            return Ok(());
        }
        // Another process combines them already, or will find more of them soon.
        let lock = self.path.join("packs.lock");
        let Some(_lock) = FileLock::try_lock(&lock).map_err(WorkspaceError::file(&lock))? else { return Ok(()) };
        self.git(&["repack", "--geometric=2", "-d", "-q"]).output()?;
        self.unlocking_within(1, || self.git(&["pack-refs", "--all"]).output())?;
        Ok(())
    }
}

impl Workspace {
    pub fn folder(&self) -> &Utf8Path {
        &self.folder
    }

    /// The commit that the work started from.
    pub fn base(&self) -> &str {
        &self.cache.header.base
    }

    /// Saves the files of the workspace. The objects are on disk when this returns.
    pub fn snapshot(&mut self, options: &SnapshotOptions) -> Result<Snapshot, WorkspaceError> {
        // A file that vanishes while the files are read may have been moved to a place that was read before.
        repeated_if_unstable(|| self.snapshot_once(options))
    }

    /// Reports whether files or empty folders are otherwise than at a snapshot, which is the last one. Stores nothing. Files that were
    /// written again count, also with the same content.
    pub fn has_changed_since(&self, snapshot: &Snapshot) -> Result<bool, WorkspaceError> {
        repeated_if_unstable(|| {
            let mut found = self.read_files(&snapshot.include_ignored)?;
            self.keep_unreadable(&mut found);
            let empty_folders = found.empty_folders.iter().map(|path| display(path));
            Ok(found.files != self.cache.files || !empty_folders.eq(snapshot.empty_folders.iter().cloned()))
        })
    }

    fn snapshot_once(&mut self, options: &SnapshotOptions) -> Result<Snapshot, WorkspaceError> {
        if !options.reference.starts_with(CHECKPOINTS) {
            return Err(WorkspaceError::InvalidReference(options.reference.clone()));
        }
        let start = own_reference(&options.reference)?;
        let read_at = file_system_time(&self.folder)?;
        let mut found = self.read_files(&options.include_ignored)?;
        self.keep_unreadable(&mut found);
        let changed: Vec<Vec<u8>> = found
            .files
            .iter()
            .filter(|(path, stat)| !self.cache.is_unchanged(path, stat))
            .map(|(path, _)| path.clone())
            .collect();
        let removed: Vec<&Vec<u8>> = self.cache.files.keys().filter(|path| !found.files.contains_key(*path)).collect();
        if changed.is_empty() && removed.is_empty() {
            let commit = &self.cache.header.commit;
            // The commit of the base itself has other parents.
            if *commit != self.cache.header.base {
                self.store.keep_snapshot(start, commit)?;
                return Ok(self.listed(&found, options));
            }
        }
        self.check_size(&found, &changed, options.max_bytes)?;
        let stream = tempfile::tempfile_in(&self.store.path).map_err(WorkspaceError::file(&self.store.path))?;
        let mut out = BufWriter::with_capacity(1 << 16, stream);
        self.write_stream(&format!("{start}/newest"), &mut found, &changed, &removed, &mut out)?;
        let stream = out.into_inner().map_err(|error| WorkspaceError::file(&self.store.path)(error.into_error()))?;
        let arguments = ["fast-import", "--quiet", "--done", "--force", "--date-format=raw"];
        let import = || match stream.try_clone() {
            Ok(file) => self.store.git(&arguments).with_input_file(file).text(),
            Err(error) => Err(GitError::Io(error)),
        };
        let commit = self.store.unlocking(import)?;
        let commit = object_name(commit.trim())?.to_owned();
        let folder = self.store.path.join("objects/pack");
        sync(&folder)?;
        self.store.keep_snapshot(start, &commit)?;
        self.cache.header.tree = self.store.tree_of(&commit)?;
        self.cache.header.commit = commit;
        self.cache.header.read_at = read_at;
        self.cache.files = std::mem::take(&mut found.files);
        self.cache.write(&self.folder)?;
        // The snapshot is complete. What fails here is done after one of the next.
        let _ = self.store.combine_packs();
        Ok(self.listed(&found, options))
    }

    fn listed(&self, found: &WorkspaceFiles, options: &SnapshotOptions) -> Snapshot {
        let header = &self.cache.header;
        Snapshot {
            repository: header.repository.clone(),
            base: header.base.clone(),
            commit: header.commit.clone(),
            tree: header.tree.clone(),
            empty_folders: found.empty_folders.iter().map(|path| display(path)).collect(),
            include_ignored: options.include_ignored.clone(),
            left_out: found.left_out.iter().map(|(path, reason)| reason.listed(path)).collect(),
        }
    }

    fn read_files(&self, include_ignored: &[String]) -> Result<WorkspaceFiles, WorkspaceError> {
        let tracked = || {
            if let Some(files) = self.tracked.get() {
                return Ok(Arc::clone(files));
            }
            let files = self.store.tree(&self.cache.header.base)?;
            let files = Arc::new(files.into_iter().map(|(path, _)| path).collect());
            Ok(Arc::clone(self.tracked.get_or_init(|| files)))
        };
        let rules = Rules {
            excludes: &self.store.read_file(EXCLUDES),
            tracked: &tracked,
            include_ignored,
            submodules: &self.cache.header.submodules,
            applies: &|_| true,
        };
        WorkspaceFiles::read(&self.folder, &rules)
    }

    /// Files that cannot be read stay as they are in the last snapshot, because nothing is known about them.
    fn keep_unreadable(&self, found: &mut WorkspaceFiles) {
        for (path, _) in found.left_out.iter().filter(|(_, reason)| matches!(reason, LeftOutReason::Unreadable(_))) {
            let prefix = joined(path, b"");
            let inside = self.cache.files.range(prefix.clone()..).take_while(|(file, _)| file.starts_with(&prefix));
            let kept = self.cache.files.get_key_value(path).into_iter().chain(inside);
            found.files.extend(kept.map(|(path, stat)| (path.clone(), *stat)));
        }
    }

    /// Files that are only read again, because they are too new to be compared, do not count.
    fn check_size(&self, found: &WorkspaceFiles, changed: &[Vec<u8>], limit: u64) -> Result<(), WorkspaceError> {
        let is_other = |path: &&Vec<u8>| found.files.get(*path) != self.cache.files.get(*path);
        let size = |path: &Vec<u8>| found.files.get(path).map_or(0, |stat| stat.size);
        let mut sizes: Vec<(u64, &Vec<u8>)> = changed.iter().filter(is_other).map(|path| (size(path), path)).collect();
        let bytes = sizes.iter().map(|(size, _)| *size).fold(0, u64::saturating_add);
        if bytes <= limit {
            return Ok(());
        }
        sizes.sort_by(|left, right| right.cmp(left));
        let listed = sizes.iter().take(LISTED).map(|(size, path)| format!("`{}` ({size} bytes)", display(path)));
        Err(WorkspaceError::TooLarge { bytes, limit, largest: listed.collect::<Vec<_>>().join(", ") })
    }

    /// Writes the input of `git fast-import`: a commit whose tree is the last one with these changes. The same files on the same
    /// base give the same commit.
    fn write_stream(
        &self,
        reference: &str,
        found: &mut WorkspaceFiles,
        changed: &[Vec<u8>],
        removed: &[&Vec<u8>],
        out: &mut impl Write,
    ) -> Result<(), WorkspaceError> {
        let header = &self.cache.header;
        let failed = |error| WorkspaceError::file(&self.store.path)(error);
        let start = format!(
            "commit {reference}\nmark :1\ncommitter counterproof <counterproof@localhost> 0 +0000\ndata 8\nSnapshot\nfrom {}\n",
            header.base
        );
        let root = if EMPTY_TREES.contains(&header.tree.as_str()) {
            "deleteall\n".to_owned()
        } else {
            format!("M 040000 {} \"\"\n", header.tree)
        };
        out.write_all(format!("{start}{root}").as_bytes()).map_err(failed)?;
        // Removals first: a new file may be in the place of a folder, and the reverse.
        for path in removed {
            out.write_all(&line(b"D ", path)).map_err(failed)?;
        }
        for path in changed {
            let full = below(&self.folder, path);
            let Some(stat) = found.files.get(path).copied() else { continue };
            let mode = stat.kind.mode();
            if stat.kind == FileKind::Submodule {
                let name = std::str::from_utf8(path).unwrap_or_default();
                if let Some(object) = header.submodules.get(name) {
                    out.write_all(&line(format!("M {mode} {object} ").as_bytes(), path)).map_err(failed)?;
                }
                continue;
            }
            let content = match stat.kind {
                FileKind::Link => {
                    fs::read_link(&full).map(|target| Content::Bytes(target.as_os_str().as_bytes().to_vec(), stat))
                }
                _ => read_content(&full, stat),
            };
            match content {
                Ok(content) => {
                    out.write_all(&line(format!("M {mode} inline ").as_bytes(), path)).map_err(failed)?;
                    let stat = content.write(out, &full)?;
                    found.files.insert(path.clone(), stat);
                }
                Err(error) if error.kind() == io::ErrorKind::NotFound => return Err(WorkspaceError::Unstable(full)),
                Err(error) => {
                    found.left_out.push((path.clone(), LeftOutReason::Unreadable(error.to_string())));
                    match self.cache.files.get(path) {
                        Some(old) => drop(found.files.insert(path.clone(), *old)),
                        None => drop(found.files.remove(path)),
                    }
                }
            }
        }
        out.write_all(b"\nget-mark :1\ndone\n").map_err(failed)
    }
}

impl StoredRepository {
    /// Gives a snapshot a reference of its own, so that `git gc` keeps all of them, and makes it durable: git syncs the file, and
    /// not its folder.
    fn keep_snapshot(&self, start: &str, commit: &str) -> Result<(), WorkspaceError> {
        self.keep(&format!("{start}/{commit}"), commit)?;
        let folder = self.path.join(start);
        // A reference whose value has not changed may be in the list of references, and the folder removed.
        for folder in folder.ancestors().take(2).filter(|folder| folder.is_dir()) {
            sync(folder)?;
        }
        Ok(())
    }
}

fn repeated_if_unstable<T>(mut run: impl FnMut() -> Result<T, WorkspaceError>) -> Result<T, WorkspaceError> {
    for _ in 0..RETRIES {
        match run() {
            Err(WorkspaceError::Unstable(_)) => {}
            result => return result,
        }
    }
    run()
}

/// The content of a file, with its metadata from before it was read.
enum Content {
    Bytes(Vec<u8>, FileStat),
    File(File, FileStat),
}

impl Content {
    fn write(self, out: &mut impl Write, path: &std::path::Path) -> Result<FileStat, WorkspaceError> {
        let failed = |error| WorkspaceError::file(path)(error);
        match self {
            Content::Bytes(bytes, stat) => {
                out.write_all(format!("data {}\n", bytes.len()).as_bytes()).map_err(failed)?;
                out.write_all(&bytes).map_err(failed)?;
                out.write_all(b"\n").map_err(failed)?;
                Ok(stat)
            }
            Content::File(file, stat) => {
                out.write_all(format!("data {}\n", stat.size).as_bytes()).map_err(failed)?;
                if io::copy(&mut file.take(stat.size), out).map_err(failed)? != stat.size {
                    return Err(WorkspaceError::Unstable(path.to_owned()));
                }
                out.write_all(b"\n").map_err(failed)?;
                Ok(stat)
            }
        }
    }
}

fn read_content(path: &std::path::Path, listed: FileStat) -> io::Result<Content> {
    let (file, metadata) = open_file(path)?;
    let stat = file_stat(&metadata).filter(|stat| stat.inode == listed.inode);
    // Another file has taken its place, perhaps one outside of the workspace in a folder that is a link now.
    let stat = stat.ok_or(io::ErrorKind::NotFound)?;
    if stat.size > MAX_BUFFERED_BYTES {
        return Ok(Content::File(file, FileStat { kind: listed.kind, ..stat }));
    }
    let mut bytes = Vec::new();
    file.take(MAX_BUFFERED_BYTES).read_to_end(&mut bytes)?;
    Ok(Content::Bytes(bytes, FileStat { kind: listed.kind, ..stat }))
}

/// A line of `git fast-import` that ends with a path.
fn line(start: &[u8], path: &[u8]) -> Vec<u8> {
    let mut line = [start, b"\""].concat();
    for byte in path {
        match byte {
            b'"' | b'\\' => line.extend([b'\\', *byte]),
            b' '..=b'~' => line.push(*byte),
            _ => line.extend(format!("\\{byte:03o}").into_bytes()),
        }
    }
    line.extend(b"\"\n");
    line
}

/// The time of the file system of a workspace, which can be behind that of the system.
pub(crate) fn file_system_time(workspace: &Utf8Path) -> Result<i64, WorkspaceError> {
    let folder = workspace.parent().unwrap_or(workspace);
    let read = || file_stat(&tempfile::tempfile_in(folder)?.metadata()?).ok_or_else(|| io::ErrorKind::Other.into());
    Ok(read().map_err(WorkspaceError::file(folder))?.changed)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_that_change_while_they_are_read_are_read_again_three_times() {
        for (changes, expected) in [(0, Ok(1)), (3, Ok(4)), (4, Err(4))] {
            let mut runs = 0;
            let result = repeated_if_unstable(|| {
                runs += 1;
                if runs > changes { Ok(runs) } else { Err(WorkspaceError::Unstable("a".into())) }
            });
            assert_eq!(result.map_err(|_| runs), expected);
        }
        let mut runs = 0;
        let other = || WorkspaceError::TooManyFiles(1);
        let result: Result<(), _> = repeated_if_unstable(|| {
            runs += 1;
            Err(other())
        });
        assert!(matches!(result, Err(WorkspaceError::TooManyFiles(1))) && runs == 1);
    }
}
