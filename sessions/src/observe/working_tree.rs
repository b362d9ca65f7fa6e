//! The changes of a working tree between two turns of an agent.
//!
//! At the start, only the times and sizes of files are read, and the content of those that differ from the index. A file that
//! changes later was like the index, or its content is known. Reads are not seen, and neither are changes that are undone
//! within a turn.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::fs::Metadata;
use std::time::{Duration, SystemTime};

use camino::{Utf8Path, Utf8PathBuf};
use counterproof_artifact::Sha256Digest;
use counterproof_ledger::location::real_path;
use counterproof_store::{read_file, relative_path};
use jiff::Timestamp;
use similar::TextDiff;

use super::git;
use crate::event::{EventBody, FileChange, FileOperation, SessionEvent};

/// Largest file whose content is compared. Of larger ones, only the digest is known.
const MAX_TEXT: u64 = 1 << 20;

/// Largest file whose digest is computed after a change. The agent does not wait for it.
const MAX_DIGEST: u64 = 256 << 20;

/// Content that is held for later differences. Beyond it, only digests are known.
const MAX_HELD: usize = 64 << 20;

/// Time after which a difference of two files is not refined further.
const DIFF_WITHIN: Duration = Duration::from_millis(500);

/// A working tree, or folders without git.
#[derive(Debug)]
pub struct WorkingTree {
    root: Utf8PathBuf,
    is_git: bool,
    /// Files and folders that are seen in addition, also if they are ignored. Relative to the root.
    included: Vec<Utf8PathBuf>,
    /// Files and folders of the recorder itself. Relative to the root.
    excluded: Vec<Utf8PathBuf>,
    files: BTreeMap<Utf8PathBuf, Known>,
    /// Objects of the index at the start.
    index: HashMap<Utf8PathBuf, String>,
    held: usize,
}

/// What is known about a file.
#[derive(Debug)]
struct Known {
    stat: Stat,
    content: KnownContent,
}

#[derive(Debug)]
enum KnownContent {
    /// As in the index at the start.
    Index,
    Bytes(Vec<u8>),
    Digest(Sha256Digest),
    /// It is too large, or cannot be read.
    Unknown,
}

/// By this, a file that did not change is recognized.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Stat {
    modified: Option<SystemTime>,
    size: u64,
    inode: u64,
}

/// Returns the time of the last change of a file or folder, at most `now`. A file that was moved or copied with its time of
/// modification has an older one, so that the time of its status counts as well, where there is one.
fn changed_at(metadata: &Metadata, now: Timestamp) -> Timestamp {
    let modified = metadata.modified().ok().and_then(|time| Timestamp::try_from(time).ok());
    #[cfg(unix)]
    let status = {
        use std::os::unix::fs::MetadataExt;
        let nanos = i32::try_from(metadata.ctime_nsec()).unwrap_or_default();
        Timestamp::new(metadata.ctime(), nanos).ok()
    };
    #[cfg(not(unix))]
    let status = None;
    modified.max(status).map_or(now, |time| time.min(now))
}

impl Stat {
    fn new(metadata: &Metadata) -> Self {
        #[cfg(unix)]
        let inode = std::os::unix::fs::MetadataExt::ino(metadata);
        #[cfg(not(unix))]
        let inode = 0;
        Self { modified: metadata.modified().ok(), size: metadata.len(), inode }
    }
}

/// A working tree that cannot be observed.
#[derive(Debug, thiserror::Error)]
pub enum ObserveError {
    #[error("git cannot list the files of `{0}`")]
    Git(Utf8PathBuf),
}

/// The content of a file before or after a change.
struct Content {
    digest: Option<Sha256Digest>,
    text: Option<String>,
}

impl WorkingTree {
    /// Looks at the working tree of a folder. Returns `None` if it is in none and no paths are included. Excluded files and folders
    /// are absolute.
    pub fn open(
        folder: &Utf8Path,
        included: &[Utf8PathBuf],
        excluded: &[Utf8PathBuf],
    ) -> Result<Option<Self>, ObserveError> {
        let root = git::root(folder);
        let is_git = root.is_some();
        if !is_git && included.is_empty() {
            return Ok(None);
        }
        let root = root.unwrap_or_else(|| folder.to_owned());
        let included = included.iter().map(|path| relative(&folder.join(path), &root)).collect();
        let excluded = excluded.iter().map(|path| relative(&real_path(path), &root)).collect();
        let (files, index) = (BTreeMap::new(), HashMap::new());
        let mut tree = Self { root, is_git, included, excluded, files, index, held: 0 };
        let changed: BTreeSet<Utf8PathBuf> = if is_git {
            tree.index = git::index(&tree.root).unwrap_or_default().into_iter().collect();
            git::changed(&tree.root).unwrap_or_default().into_iter().collect()
        } else {
            BTreeSet::new()
        };
        for path in tree.paths()? {
            let Some(stat) = tree.stat(&path) else { continue };
            let content = if tree.index.contains_key(&path) && !changed.contains(&path) {
                KnownContent::Index
            } else if stat.size <= MAX_TEXT {
                tree.hold(&path, &stat)
            } else {
                // The agent waits for this look, and must not wait for large files.
                KnownContent::Unknown
            };
            tree.files.insert(path, Known { stat, content });
        }
        Ok(Some(tree))
    }

    /// True in a working tree of git.
    pub const fn is_git(&self) -> bool {
        self.is_git
    }

    /// Returns the changes since the last time.
    pub fn changes(&mut self, now: Timestamp) -> Result<Vec<SessionEvent>, ObserveError> {
        // A deleted file is still in the index.
        let found = |path: Utf8PathBuf| self.stat(&path).map(|stat| (path, stat));
        let present: BTreeMap<Utf8PathBuf, Stat> = self.paths()?.into_iter().filter_map(found).collect();
        let gone: Vec<Utf8PathBuf> = self.files.keys().filter(|path| !present.contains_key(*path)).cloned().collect();
        let mut deleted: Vec<(FileOperation, Timestamp)> = Vec::new();
        for path in gone {
            if let Some(known) = self.release(&path) {
                let before = self.content(&path, &known.content, Some(known.stat.size));
                let patch = patch(&path, before.text.as_deref(), Some(""));
                let at = self.deleted_at(&path, now);
                deleted.push((operation(FileChange::Delete, &path, before.digest, None, patch), at));
            }
        }
        let mut changed = Vec::new();
        for (path, stat) in present {
            let known = self.files.get(&path);
            if known.is_some_and(|known| known.stat == stat) {
                continue;
            }
            let known = self.release(&path);
            let at = self.root.join(&path).symlink_metadata().map_or(now, |metadata| changed_at(&metadata, now));
            let before = known.as_ref().map(|it| self.content(&path, &it.content, Some(it.stat.size)));
            let content = self.hold(&path, &stat);
            let after = self.content(&path, &content, None);
            self.files.insert(path.clone(), Known { stat, content });
            let before_digest = before.as_ref().and_then(|before| before.digest);
            if before.is_some() && before_digest.is_some() && before_digest == after.digest {
                continue;
            }
            let renamed = deleted.iter().position(|(file, _)| {
                before.is_none() && file.before_sha256.is_some() && file.before_sha256 == after.digest
            });
            let file = if let Some(place) = renamed {
                let (from, _) = deleted.remove(place);
                let mut file = operation(FileChange::Rename, &path, from.before_sha256, after.digest, None);
                file.from_path = Some(from.path);
                file
            } else {
                let change = if before.is_none() { FileChange::Create } else { FileChange::Modify };
                let text = before.as_ref().map_or(Some(""), |before| before.text.as_deref());
                let patch = patch(&path, text, after.text.as_deref());
                operation(change, &path, before_digest, after.digest, patch)
            };
            changed.push((file, at));
        }
        let mut all: Vec<_> = deleted.into_iter().chain(changed).collect();
        all.sort_by_key(|(_, at)| *at);
        let event = |(file, at)| SessionEvent::captured(at, EventBody::FileOperation(file));
        Ok(all.into_iter().map(event).collect())
    }

    fn paths(&self) -> Result<Vec<Utf8PathBuf>, ObserveError> {
        let mut paths: BTreeSet<Utf8PathBuf> = BTreeSet::new();
        if self.is_git {
            paths.extend(git::files(&self.root).ok_or_else(|| ObserveError::Git(self.root.clone()))?);
        }
        for included in &self.included {
            self.walk(included, &mut paths);
        }
        paths.retain(|path| !self.excluded.iter().any(|excluded| path.starts_with(excluded)));
        Ok(paths.into_iter().collect())
    }

    /// Adds the files below a path. Links are not followed.
    fn walk(&self, start: &Utf8Path, paths: &mut BTreeSet<Utf8PathBuf>) {
        let mut folders = vec![start.to_owned()];
        while let Some(path) = folders.pop() {
            let full = self.root.join(&path);
            match full.symlink_metadata() {
                // The index and the objects change with every commit.
                Ok(found) if found.is_dir() && path.file_name() != Some(".git") => {
                    let entries = full.read_dir_utf8().into_iter().flatten().filter_map(Result::ok);
                    folders.extend(entries.map(|entry| path.join(entry.file_name())));
                }
                Ok(found) if found.is_file() => drop(paths.insert(path)),
                _ => {}
            }
        }
    }

    /// Returns the facts of a file that is not a link, a device or a folder.
    fn stat(&self, path: &Utf8Path) -> Option<Stat> {
        let metadata = self.root.join(path).symlink_metadata().ok()?;
        metadata.is_file().then(|| Stat::new(&metadata))
    }

    /// Returns when a file was deleted: its folder was changed then, or the folder around it.
    fn deleted_at(&self, path: &Utf8Path, now: Timestamp) -> Timestamp {
        let mut folders = path.ancestors().skip(1).map(|folder| self.root.join(folder).symlink_metadata());
        folders.find_map(Result::ok).map_or(now, |metadata| changed_at(&metadata, now))
    }

    /// Reads a file for later differences.
    fn hold(&mut self, path: &Utf8Path, stat: &Stat) -> KnownContent {
        // The agent may have replaced the file by a link or a pipe since it was listed.
        let opened = read_file::open_exact(self.root.join(path).as_std_path());
        let Ok((file, metadata)) = opened else { return KnownContent::Unknown };
        if stat.size <= MAX_TEXT
            && let Ok(bytes) = read_file::read_to_limit(file, metadata.len(), MAX_TEXT)
        {
            if self.held + bytes.len() > MAX_HELD {
                return KnownContent::Digest(Sha256Digest::from_bytes(&bytes));
            }
            self.held += bytes.len();
            return KnownContent::Bytes(bytes);
        }
        if stat.size > MAX_DIGEST {
            return KnownContent::Unknown;
        }
        let opened = read_file::open_exact(self.root.join(path).as_std_path());
        let digest = opened.and_then(|(file, _)| Sha256Digest::from_reader(file));
        digest.map_or(KnownContent::Unknown, |(digest, _)| KnownContent::Digest(digest))
    }

    /// Takes what is known about a file.
    fn release(&mut self, path: &Utf8Path) -> Option<Known> {
        let known = self.files.remove(path)?;
        if let KnownContent::Bytes(bytes) = &known.content {
            self.held -= bytes.len();
        }
        Some(known)
    }

    /// Returns a known content. `size` is that of the file with this content.
    fn content(&self, path: &Utf8Path, content: &KnownContent, size: Option<u64>) -> Content {
        let of_bytes = |bytes: Vec<u8>| Content {
            digest: Some(Sha256Digest::from_bytes(&bytes)),
            text: String::from_utf8(bytes).ok().filter(|text| !text.contains('\0')),
        };
        match content {
            KnownContent::Bytes(bytes) => of_bytes(bytes.clone()),
            KnownContent::Digest(digest) => Content { digest: Some(*digest), text: None },
            KnownContent::Index => {
                let object = self.index.get(path).and_then(|object| git::content(&self.root, object));
                // Another size: filters of git convert the file, so the object is not what was there.
                let object = object.filter(|bytes| size.is_none_or(|size| bytes.len() as u64 == size));
                object.map_or(Content { digest: None, text: None }, of_bytes)
            }
            KnownContent::Unknown => Content { digest: None, text: None },
        }
    }
}

/// Returns a path relative to a folder, or the path itself if there is no way to it.
fn relative(path: &Utf8Path, folder: &Utf8Path) -> Utf8PathBuf {
    relative_path(folder, path).unwrap_or_else(|| path.to_owned())
}

fn operation(
    operation: FileChange,
    path: &Utf8Path,
    before_sha256: Option<Sha256Digest>,
    after_sha256: Option<Sha256Digest>,
    patch: Option<String>,
) -> FileOperation {
    FileOperation { operation, path: path.to_string(), from_path: None, before_sha256, after_sha256, patch }
}

/// Returns a unified difference, if both texts are known.
fn patch(path: &Utf8Path, before: Option<&str>, after: Option<&str>) -> Option<String> {
    let (before, after) = (before?, after?);
    let difference = TextDiff::configure().timeout(DIFF_WITHIN).diff_lines(before, after);
    Some(difference.unified_diff().context_radius(3).header(&format!("a/{path}"), &format!("b/{path}")).to_string())
}

#[cfg(test)]
mod tests {
    use std::process::Command;

    use super::*;

    struct Repository(tempfile::TempDir);

    impl Repository {
        fn new() -> Self {
            let repository = Self(tempfile::tempdir().unwrap());
            repository.git(&["init", "-q"]);
            repository.put(".gitignore", "ignored\n");
            repository.put("kept.txt", "one\ntwo\n");
            repository.put("moved.txt", "content\n");
            repository.git(&["add", "-A"]);
            repository.git(&["-c", "user.name=t", "-c", "user.email=t@t", "commit", "-qm", "start"]);
            repository
        }

        fn path(&self) -> &Utf8Path {
            Utf8Path::from_path(self.0.path()).unwrap()
        }

        fn git(&self, arguments: &[&str]) {
            assert!(Command::new("git").args(arguments).current_dir(self.path()).status().unwrap().success());
        }

        fn put(&self, name: &str, text: &str) {
            let path = self.path().join(name);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            counterproof_store::write::write(&path, text.as_bytes(), counterproof_store::write::Durability::Cached)
                .unwrap();
        }

        fn tree(&self, included: &[&str]) -> WorkingTree {
            let included: Vec<Utf8PathBuf> = included.iter().map(Utf8PathBuf::from).collect();
            WorkingTree::open(self.path(), &included, &[]).unwrap().unwrap()
        }
    }

    /// Returns each change as its operation, its path and whether the digests are known.
    fn changes(tree: &mut WorkingTree) -> BTreeMap<String, FileOperation> {
        let events = tree.changes(Timestamp::now()).unwrap();
        let file = |event: SessionEvent| match event.body {
            EventBody::FileOperation(file) => (file.path.clone(), file),
            _ => unreachable!(),
        };
        events.into_iter().map(file).collect()
    }

    #[expect(clippy::unnecessary_wraps, reason = "compared with optional digests")]
    fn digest(text: &str) -> Option<Sha256Digest> {
        Some(Sha256Digest::from_bytes(text.as_bytes()))
    }

    #[test]
    fn changes_have_both_digests_and_a_patch() {
        let repository = Repository::new();
        repository.put("dirty.txt", "mine\n");
        let mut tree = repository.tree(&[]);
        assert!(tree.is_git() && changes(&mut tree).is_empty());
        repository.put("kept.txt", "one\n2\n");
        repository.put("dirty.txt", "mine\nmore\n");
        repository.put("new/file.txt", "new\n");
        repository.put("ignored", "x");
        std::fs::remove_file(repository.path().join("moved.txt")).unwrap();
        let found = changes(&mut tree);
        assert_eq!(found.keys().collect::<Vec<_>>(), ["dirty.txt", "kept.txt", "moved.txt", "new/file.txt"]);
        let kept = &found["kept.txt"];
        assert_eq!((kept.operation, kept.before_sha256), (FileChange::Modify, digest("one\ntwo\n")));
        assert_eq!(kept.after_sha256, digest("one\n2\n"));
        assert_eq!(kept.patch.as_deref(), Some("--- a/kept.txt\n+++ b/kept.txt\n@@ -1,2 +1,2 @@\n one\n-two\n+2\n"));
        assert_eq!(found["dirty.txt"].before_sha256, digest("mine\n"));
        let new = &found["new/file.txt"];
        assert_eq!((new.operation, new.before_sha256, new.after_sha256), (FileChange::Create, None, digest("new\n")));
        let gone = &found["moved.txt"];
        assert_eq!((gone.operation, gone.before_sha256), (FileChange::Delete, digest("content\n")));
        assert_eq!(gone.after_sha256, None);
        assert!(changes(&mut tree).is_empty());
        repository.put("kept.txt", "3\n");
        assert_eq!(changes(&mut tree)["kept.txt"].before_sha256, digest("one\n2\n"), "the content of the last turn");
    }

    #[test]
    fn a_moved_file_is_one_rename_and_a_commit_changes_no_file() {
        let repository = Repository::new();
        let mut tree = repository.tree(&[]);
        repository.git(&["mv", "moved.txt", "there.txt"]);
        repository.git(&["-c", "user.name=t", "-c", "user.email=t@t", "commit", "-qm", "move"]);
        let found = changes(&mut tree);
        assert_eq!(found.len(), 1);
        let renamed = &found["there.txt"];
        assert_eq!((renamed.operation, renamed.from_path.as_deref()), (FileChange::Rename, Some("moved.txt")));
        assert_eq!((renamed.before_sha256, renamed.after_sha256), (digest("content\n"), digest("content\n")));
    }

    #[cfg(unix)]
    #[test]
    fn moves_and_deletions_have_the_time_at_which_they_took_place() {
        let repository = Repository::new();
        repository.put("old/file.txt", "old");
        let sh = |script: &str| Command::new("sh").args(["-c", script]).current_dir(repository.path()).status();
        assert!(sh("touch -t 197001020000 kept.txt").unwrap().success());
        let mut tree = repository.tree(&[]);
        let begun = Timestamp::now() - jiff::SignedDuration::from_millis(20);
        assert!(sh("mv kept.txt there.txt && rm -r old").unwrap().success());
        let ended = Timestamp::now();
        for event in tree.changes(ended + jiff::SignedDuration::from_secs(60)).unwrap() {
            assert!(begun <= event.timestamp && event.timestamp <= ended, "{event:?}");
        }
    }

    #[test]
    fn binary_files_links_and_included_files_are_handled() {
        let repository = Repository::new();
        let mut tree = repository.tree(&["ignored", "build"]);
        repository.put("ignored", "seen");
        repository.put("build/deep/out.txt", "seen");
        repository.put("binary", "\0\u{1}");
        #[cfg(unix)]
        std::os::unix::fs::symlink("/etc/passwd", repository.path().join("link")).unwrap();
        let found = changes(&mut tree);
        assert_eq!(found.keys().collect::<Vec<_>>(), ["binary", "build/deep/out.txt", "ignored"]);
        assert_eq!((&found["binary"].patch, found["binary"].after_sha256), (&None, digest("\0\u{1}")));
    }

    #[test]
    fn without_git_only_included_paths_are_seen() {
        let folder = tempfile::tempdir().unwrap();
        let path = Utf8Path::from_path(folder.path()).unwrap();
        assert!(WorkingTree::open(path, &[], &[]).unwrap().is_none());
        let mut tree = WorkingTree::open(path, &[Utf8PathBuf::from("out")], &[path.join("out/own")]).unwrap().unwrap();
        assert!(!tree.is_git());
        std::fs::create_dir_all(path.join("out/own")).unwrap();
        counterproof_store::write::write(&path.join("out/own/b"), b"x", counterproof_store::write::Durability::Cached)
            .unwrap();
        counterproof_store::write::write(&path.join("out/a"), b"x", counterproof_store::write::Durability::Cached)
            .unwrap();
        assert_eq!(changes(&mut tree).keys().collect::<Vec<_>>(), ["out/a"]);
    }
}
