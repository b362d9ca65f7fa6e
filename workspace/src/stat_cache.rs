//! The file next to a workspace that makes its snapshots fast: the last snapshot, and what the system reports about each file in it.
//! A file whose metadata are the same has the same content.
//!
//! The change time of a file cannot be set, so a program cannot hide a change. A file that changed shortly before it was read could
//! change again within one tick of the clock, so it is read again.

use std::collections::BTreeMap;
use std::io::Write as _;

use camino::{Utf8Path, Utf8PathBuf};
use counterproof_store::read_file;
use counterproof_store::write::{AtomicFile, Durability};
use serde::{Deserialize, Serialize};

use crate::repository::{RepositoryId, TreeEntry, WorkspaceError};

/// Changes of the format have another number. A file with another number is not read.
const VERSION: u32 = 1;

/// Longest time between two ticks of the clock of a file system, in nanoseconds.
const TICK: i64 = 50_000_000;

const MAX_BYTES: u64 = 1 << 30;

/// The last line, which shows that the file is whole.
const END: &[u8] = b"end\0";

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum FileKind {
    File,
    Executable,
    Link,
    /// A folder without files in the place of a submodule.
    Submodule,
}

impl FileKind {
    const ALL: [(FileKind, char); 4] =
        [(FileKind::File, 'f'), (FileKind::Executable, 'x'), (FileKind::Link, 'l'), (FileKind::Submodule, 's')];

    pub(crate) fn mode(self) -> &'static str {
        match self {
            FileKind::File => "100644",
            FileKind::Executable => "100755",
            FileKind::Link => "120000",
            FileKind::Submodule => "160000",
        }
    }
}

/// What the system reports about a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct FileStat {
    pub(crate) kind: FileKind,
    pub(crate) size: u64,
    /// Times in nanoseconds since 1970.
    pub(crate) modified: i64,
    pub(crate) changed: i64,
    pub(crate) inode: u64,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Header {
    version: u32,
    pub(crate) repository: RepositoryId,
    pub(crate) base: String,
    pub(crate) commit: String,
    pub(crate) tree: String,
    /// The submodules of the base.
    pub(crate) submodules: BTreeMap<String, String>,
    /// The time of the file system before the files were read.
    pub(crate) read_at: i64,
}

impl Header {
    pub(crate) fn new(repository: RepositoryId, base: String, commit: String, tree: String) -> Self {
        Self { version: VERSION, repository, base, commit, tree, submodules: BTreeMap::new(), read_at: 0 }
    }

    pub(crate) fn with_submodules(mut self, files: &[(Vec<u8>, TreeEntry)]) -> Self {
        // Those whose names are not UTF-8 are saved as folders.
        let found = files.iter().filter(|(_, entry)| entry.is_submodule());
        let named =
            found.filter_map(|(path, entry)| Some((String::from_utf8(path.clone()).ok()?, entry.object.clone())));
        self.submodules = named.collect();
        self
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct StatCache {
    pub(crate) header: Header,
    pub(crate) files: BTreeMap<Vec<u8>, FileStat>,
}

impl StatCache {
    pub(crate) fn path(workspace: &Utf8Path) -> Utf8PathBuf {
        Utf8PathBuf::from(format!("{workspace}.state"))
    }

    /// Reads the file. Returns `None` if it is missing or damaged.
    pub(crate) fn read(workspace: &Utf8Path) -> Option<Self> {
        let bytes = read_file::read(&Self::path(workspace), MAX_BYTES).ok()?;
        let bytes = bytes.strip_suffix(END)?;
        let mut lines = bytes.split(|byte| *byte == 0);
        let header: Header = serde_json::from_slice(lines.next()?).ok()?;
        if header.version != VERSION {
            return None;
        }
        let mut files = BTreeMap::new();
        for line in lines.filter(|line| !line.is_empty()) {
            let mut fields = line.splitn(6, |byte| *byte == b' ');
            let mut field = || std::str::from_utf8(fields.next()?).ok();
            let kind = field()?;
            let (kind, _) = FileKind::ALL.into_iter().find(|(_, letter)| kind.chars().eq([*letter]))?;
            let stat = FileStat {
                kind,
                size: field()?.parse().ok()?,
                modified: field()?.parse().ok()?,
                changed: field()?.parse().ok()?,
                inode: field()?.parse().ok()?,
            };
            files.insert(fields.next()?.to_vec(), stat);
        }
        Some(Self { header, files })
    }

    /// Replaces the file. A power loss may damage it, which [`StatCache::read`] detects.
    pub(crate) fn write(&self, workspace: &Utf8Path) -> Result<(), WorkspaceError> {
        let path = Self::path(workspace);
        let mut file = AtomicFile::create(&path)?;
        self.write_to(&mut file).map_err(WorkspaceError::file(&path))?;
        Ok(file.commit(Durability::Cached)?)
    }

    fn write_to(&self, file: &mut AtomicFile) -> std::io::Result<()> {
        serde_json::to_writer(&mut *file, &self.header)?;
        file.write_all(&[0])?;
        for (path, stat) in &self.files {
            let FileStat { kind, size, modified, changed, inode } = stat;
            let letter = FileKind::ALL.iter().find(|(found, _)| found == kind).map_or('f', |(_, letter)| *letter);
            write!(file, "{letter} {size} {modified} {changed} {inode} ")?;
            file.write_all(path)?;
            file.write_all(&[0])?;
        }
        file.write_all(END)
    }

    /// True if the file at a path surely has the content that the last snapshot has.
    pub(crate) fn is_unchanged(&self, path: &[u8], stat: &FileStat) -> bool {
        let is_old = stat.modified.max(stat.changed).saturating_add(TICK) < self.header.read_at;
        self.files.get(path) == Some(stat) && (is_old || stat.kind == FileKind::Submodule)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cache() -> StatCache {
        let id = RepositoryId::new("x");
        let mut header = Header::new(id, "a".repeat(40), "b".repeat(40), "c".repeat(40));
        header.read_at = 1_000_000_000;
        let stat = |kind, changed| FileStat { kind, size: 3, modified: -5, changed, inode: 9 };
        let files = [
            (b"a b\n\xff/c".to_vec(), stat(FileKind::Link, 1)),
            (b"late".to_vec(), stat(FileKind::File, 990_000_000)),
            (b"sub".to_vec(), stat(FileKind::Submodule, 990_000_000)),
        ];
        StatCache { header, files: files.into() }
    }

    #[test]
    fn a_cache_is_read_as_it_was_written_and_not_at_all_if_a_part_is_missing() {
        let folder = tempfile::tempdir().unwrap();
        let workspace = Utf8Path::from_path(folder.path()).unwrap().join("w");
        assert_eq!(StatCache::read(&workspace), None);
        cache().write(&workspace).unwrap();
        assert_eq!(StatCache::read(&workspace), Some(cache()));
        let path = StatCache::path(&workspace);
        let bytes = std::fs::read(&path).unwrap();
        for length in 0..bytes.len() {
            counterproof_store::write::write(&path, &bytes[..length], Durability::Cached).unwrap();
            assert_eq!(StatCache::read(&workspace), None, "{length}");
        }
    }

    #[test]
    fn a_file_is_unchanged_only_if_it_is_older_than_the_reading() {
        let cache = cache();
        let is_unchanged = |path: &[u8]| cache.is_unchanged(path, &cache.files[path]);
        assert!(is_unchanged(b"a b\n\xff/c") && is_unchanged(b"sub") && !is_unchanged(b"late"));
        let other = FileStat { inode: 10, ..cache.files[b"a b\n\xff/c".as_slice()] };
        assert!(!cache.is_unchanged(b"a b\n\xff/c", &other));
    }
}
