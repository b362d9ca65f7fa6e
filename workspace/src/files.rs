//! The files of a workspace as they are on disk: what a snapshot holds, what the rules ignore, and what it cannot hold.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsStr;
use std::fs::{self, Metadata};
use std::io;
use std::os::unix::ffi::{OsStrExt as _, OsStringExt as _};
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};
use std::path::Path;
use std::rc::Rc;
use std::sync::Arc;

use camino::Utf8Path;
use counterproof_store::read_file;
use ignore::gitignore::{Gitignore, GitignoreBuilder};

use crate::repository::{WorkspaceError, below, display};
use crate::snapshot::LeftOut;
use crate::stat_cache::{FileKind, FileStat};

/// Maximum number of entries of a workspace, without ignored folders.
const MAX_ENTRIES: usize = 2_000_000;

/// Maximum size of a file with rules, in bytes. The rules of a larger file do not apply.
const MAX_RULES_BYTES: u64 = 4 << 20;

const RULES_FILE: &str = ".gitignore";

/// What decides about the entries of a workspace.
pub(crate) struct Rules<'a> {
    /// The rules of the repository and of the user.
    pub(crate) excludes: &'a [u8],
    /// Returns the files that are never ignored, since the base has them.
    pub(crate) tracked: &'a dyn Fn() -> Result<Arc<BTreeSet<Vec<u8>>>, WorkspaceError>,
    pub(crate) include_ignored: &'a [String],
    pub(crate) submodules: &'a BTreeMap<String, String>,
    /// Whether the rules file at a path applies.
    pub(crate) applies: &'a dyn Fn(&[u8]) -> bool,
}

/// The entries of a workspace that are not ignored.
#[derive(Debug, Default)]
pub(crate) struct WorkspaceFiles {
    pub(crate) files: BTreeMap<Vec<u8>, FileStat>,
    /// Folders without files and without other empty folders.
    pub(crate) empty_folders: Vec<Vec<u8>>,
    pub(crate) left_out: Vec<(Vec<u8>, LeftOutReason)>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum LeftOutReason {
    NestedGit,
    Special,
    NotUtf8,
    /// It cannot be read: the last snapshot is right about it, as far as one can know.
    Unreadable(String),
}

impl LeftOutReason {
    pub(crate) fn listed(&self, path: &[u8]) -> LeftOut {
        let reason = match self {
            LeftOutReason::NestedGit => "git folder inside of the workspace".to_owned(),
            LeftOutReason::Special => "not a file, a folder or a link".to_owned(),
            LeftOutReason::NotUtf8 => "an empty folder whose name is not UTF-8".to_owned(),
            LeftOutReason::Unreadable(error) => format!("cannot be read: {error}"),
        };
        LeftOut { path: display(path), reason }
    }
}

/// The rules of a folder and of those above it.
struct Chain {
    parent: Option<Rc<Chain>>,
    /// Length of the path of the folder, with the slash after it.
    prefix: usize,
    rules: Gitignore,
}

struct Folder {
    path: Vec<u8>,
    chain: Rc<Chain>,
    is_ignored: bool,
}

impl WorkspaceFiles {
    pub(crate) fn read(root: &Utf8Path, rules: &Rules<'_>) -> Result<Self, WorkspaceError> {
        let mut found = Self::default();
        let mut folders_found = Vec::new();
        let chain = Rc::new(Chain { parent: None, prefix: 0, rules: parse_rules(rules.excludes) });
        let mut folders = vec![Folder { path: Vec::new(), chain, is_ignored: false }];
        let mut entries = 0;
        while let Some(folder) = folders.pop() {
            let full = below(root, &folder.path);
            let names = match names_in(&full) {
                Ok(names) => names,
                // Removed since its parent was read.
                Err(error) if error.kind() == io::ErrorKind::NotFound && !folder.path.is_empty() => continue,
                Err(error) if folder.path.is_empty() => return Err(WorkspaceError::file(root)(error)),
                Err(error) => {
                    found.left_out.push((folder.path, LeftOutReason::Unreadable(error.to_string())));
                    continue;
                }
            };
            entries += names.len();
            if entries > MAX_ENTRIES {
                return Err(WorkspaceError::TooManyFiles(MAX_ENTRIES));
            }
            if found.is_submodule(&folder.path, &full, &names, rules) {
                continue;
            }
            let chain = folder.chain_inside(root, &names, rules);
            for (name, is_folder) in names {
                let path = joined(&folder.path, &name);
                if name.eq_ignore_ascii_case(b".git") {
                    if path != b".git" && !folder.is_ignored {
                        found.left_out.push((path, LeftOutReason::NestedGit));
                    }
                    continue;
                }
                let is_ignored = folder.is_ignored || chain.ignores(&path, is_folder);
                let is_included = !is_ignored || rules.includes(&path);
                if is_folder {
                    if is_included || rules.has_files_in(&path)? {
                        if is_included {
                            folders_found.push(path.clone());
                        }
                        folders.push(Folder { path, chain: Rc::clone(&chain), is_ignored: !is_included });
                    }
                } else if is_included || (rules.tracked)()?.contains(&path) {
                    found.add(root, path);
                }
            }
        }
        found.set_empty_folders(folders_found);
        found.left_out.sort_by(|(left, _), (right, _)| left.cmp(right));
        Ok(found)
    }

    fn add(&mut self, root: &Utf8Path, path: Vec<u8>) {
        let full = below(root, &path);
        let folder = full.parent().unwrap_or(&full);
        match opening(folder, || full.symlink_metadata()) {
            Ok(metadata) => match file_stat(&metadata) {
                Some(stat) => drop(self.files.insert(path, stat)),
                None => self.left_out.push((path, LeftOutReason::Special)),
            },
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(error) => self.left_out.push((path, LeftOutReason::Unreadable(error.to_string()))),
        }
    }

    /// A folder in the place of a submodule is one as long as it has no files.
    fn is_submodule(&mut self, path: &[u8], full: &Path, names: &[(Vec<u8>, bool)], rules: &Rules<'_>) -> bool {
        let is_empty = names.iter().all(|(name, _)| name == b".git");
        if !is_empty || !std::str::from_utf8(path).is_ok_and(|path| rules.submodules.contains_key(path)) {
            return false;
        }
        if let Ok(metadata) = full.symlink_metadata() {
            // The times of a folder change with its entries, and do not matter here.
            let inode = metadata.ino();
            let stat = FileStat { kind: FileKind::Submodule, size: 0, modified: 0, changed: 0, inode };
            self.files.insert(path.to_vec(), stat);
        }
        true
    }

    fn set_empty_folders(&mut self, mut folders: Vec<Vec<u8>>) {
        folders.sort();
        let holds_files = |folder: &[u8]| {
            let prefix = joined(folder, b"");
            let next = self.files.range(prefix.clone()..).next();
            self.files.contains_key(folder) || next.is_some_and(|(path, _)| path.starts_with(&prefix))
        };
        let empty: BTreeSet<Vec<u8>> = folders.into_iter().filter(|folder| !holds_files(folder)).collect();
        for folder in &empty {
            let prefix = joined(folder, b"");
            if empty.range(prefix.clone()..).next().is_some_and(|next| next.starts_with(&prefix)) {
                continue;
            }
            if std::str::from_utf8(folder).is_ok() {
                self.empty_folders.push(folder.clone());
            } else {
                self.left_out.push((folder.clone(), LeftOutReason::NotUtf8));
            }
        }
    }
}

impl Folder {
    /// Adds the rules file of the folder, if it has one.
    fn chain_inside(&self, root: &Utf8Path, names: &[(Vec<u8>, bool)], rules: &Rules<'_>) -> Rc<Chain> {
        let path = joined(&self.path, RULES_FILE.as_bytes());
        let has_rules = names.iter().any(|(name, is_folder)| name == RULES_FILE.as_bytes() && !is_folder);
        if self.is_ignored || !has_rules || !(rules.applies)(&path) {
            return Rc::clone(&self.chain);
        }
        // As git does, links are not followed. A pipe is not opened.
        let full = below(root, &path);
        let content = read_file::open_exact(&full).ok().filter(|(_, found)| found.len() <= MAX_RULES_BYTES);
        let Some((mut file, _)) = content else { return Rc::clone(&self.chain) };
        let mut bytes = Vec::new();
        if io::Read::read_to_end(&mut io::Read::take(&mut file, MAX_RULES_BYTES), &mut bytes).is_err() {
            return Rc::clone(&self.chain);
        }
        let prefix = if self.path.is_empty() { 0 } else { self.path.len() + 1 };
        Rc::new(Chain { parent: Some(Rc::clone(&self.chain)), prefix, rules: parse_rules(&bytes) })
    }
}

impl Chain {
    fn ignores(&self, path: &[u8], is_folder: bool) -> bool {
        let mut chain = Some(self);
        while let Some(Chain { parent, prefix, rules }) = chain {
            let matched = rules.matched(Path::new(OsStr::from_bytes(&path[*prefix..])), is_folder);
            if !matched.is_none() {
                return matched.is_ignore();
            }
            chain = parent.as_deref();
        }
        false
    }
}

impl Rules<'_> {
    /// True if the caller names a path, or a folder above it.
    fn includes(&self, path: &[u8]) -> bool {
        self.included().any(|included| {
            path.strip_prefix(included).is_some_and(|rest| rest.is_empty() || rest[0] == b'/' || included.is_empty())
        })
    }

    /// True if an ignored folder has files that are not ignored.
    fn has_files_in(&self, folder: &[u8]) -> Result<bool, WorkspaceError> {
        let prefix = joined(folder, b"");
        let is_tracked = |files: &BTreeSet<Vec<u8>>| {
            files.range(prefix.clone()..).next().is_some_and(|next| next.starts_with(&prefix))
        };
        Ok(self.included().any(|included| included.starts_with(&prefix)) || is_tracked(&*(self.tracked)()?))
    }

    fn included(&self) -> impl Iterator<Item = &[u8]> {
        self.include_ignored.iter().map(|path| path.trim_start_matches("./").trim_end_matches('/').as_bytes())
    }
}

fn parse_rules(bytes: &[u8]) -> Gitignore {
    let mut builder = GitignoreBuilder::new("");
    for line in String::from_utf8_lossy(bytes).trim_start_matches('\u{feff}').lines() {
        // A line that is not a valid pattern matches nothing, as in git.
        let _ = builder.add_line(None, line);
    }
    builder.build().unwrap_or_else(|_| Gitignore::empty())
}

/// Returns the names in a folder, and which of them are folders.
fn names_in(folder: &Path) -> io::Result<Vec<(Vec<u8>, bool)>> {
    opening(folder, || {
        let mut names = Vec::new();
        for entry in fs::read_dir(folder)? {
            let entry = entry?;
            names.push((entry.file_name().into_vec(), entry.file_type()?.is_dir()));
        }
        Ok(names)
    })
}

/// Runs an operation on a folder. If the permissions of the folder do not allow it, they are changed: a snapshot does not hold them,
/// and a test of an agent may have closed the folder.
pub(crate) fn opening<T>(folder: &Path, run: impl Fn() -> io::Result<T>) -> io::Result<T> {
    match run() {
        Err(error) if error.kind() == io::ErrorKind::PermissionDenied => {
            let mode = folder.symlink_metadata()?.permissions().mode();
            fs::set_permissions(folder, fs::Permissions::from_mode(mode | 0o700))?;
            run()
        }
        result => result,
    }
}

/// Opens a file without following links. If its permissions do not allow reading, they are changed for that time.
pub(crate) fn open_file(path: &Path) -> io::Result<(fs::File, Metadata)> {
    let denied = match read_file::open_exact(path) {
        Err(error) if error.kind() == io::ErrorKind::PermissionDenied => error,
        result => return result,
    };
    let metadata = path.symlink_metadata()?;
    let set = |mode| fs::set_permissions(path, fs::Permissions::from_mode(mode));
    let mode = metadata.permissions().mode();
    if !metadata.is_file() || set(mode | 0o400).is_err() {
        return Err(denied);
    }
    let opened = read_file::open_exact(path);
    set(mode)?;
    // Its metadata after the change: the next snapshot compares with them.
    opened.and_then(|(file, _)| file.metadata().map(|metadata| (file, metadata)))
}

pub(crate) fn file_stat(metadata: &Metadata) -> Option<FileStat> {
    let kind = match metadata.file_type() {
        // As git decides it: the bit of the owner.
        kind if kind.is_file() && metadata.mode() & 0o100 != 0 => FileKind::Executable,
        kind if kind.is_file() => FileKind::File,
        kind if kind.is_symlink() => FileKind::Link,
        _ => return None,
    };
    let nanoseconds = |seconds: i64, rest: i64| seconds.saturating_mul(1_000_000_000).saturating_add(rest);
    Some(FileStat {
        kind,
        size: metadata.len(),
        modified: nanoseconds(metadata.mtime(), metadata.mtime_nsec()),
        changed: nanoseconds(metadata.ctime(), metadata.ctime_nsec()),
        inode: metadata.ino(),
    })
}

pub(crate) fn joined(folder: &[u8], name: &[u8]) -> Vec<u8> {
    if folder.is_empty() { name.to_vec() } else { [folder, b"/", name].concat() }
}
