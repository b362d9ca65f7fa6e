//! Files below one folder. No path leads out of it or into a `.git` folder, also not while another process changes the tree.
//!
//! Each folder of a path is opened in the one before it, without following a link, so that a check and the use of what was
//! checked cannot see different files.

use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io::{self, Read as _, Write as _};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::ffi::{OsStrExt as _, OsStringExt as _};

use camino::{Utf8Path, Utf8PathBuf};
use rustix::fs::{AtFlags, Dir, FileType, Mode, OFlags, Stat};
use rustix::io::Errno;

/// A larger file is neither read nor written.
pub(super) const MAX_FILE_BYTES: u64 = 16 << 20;

const MAX_COMPONENTS: usize = 256;
const MAX_LINKS: usize = 40;

const READ: OFlags = OFlags::RDONLY.union(OFlags::CLOEXEC).union(OFlags::NOFOLLOW);
const FOLDER: OFlags = READ.union(OFlags::DIRECTORY);

/// An error with the path as the model wrote it.
#[derive(Debug, thiserror::Error)]
#[error("`{path}` {problem}")]
pub(super) struct FileError {
    path: String,
    problem: Problem,
}

#[derive(Debug, thiserror::Error)]
enum Problem {
    #[error("is not a path")]
    Invalid,
    #[error("is outside of the workspace")]
    Outside,
    #[error("belongs to git, and is not accessible")]
    Git,
    #[error("leads through a symbolic link, which is not followed to write")]
    Link,
    #[error("leads through too many symbolic links")]
    Links,
    #[error("does not exist")]
    Missing,
    #[error("is a folder")]
    Folder,
    #[error("is not a folder")]
    NotAFolder,
    #[error("is not a regular file")]
    Special,
    #[error("is larger than {} MiB", MAX_FILE_BYTES >> 20)]
    TooLarge,
    #[error("cannot be accessed: {0}")]
    System(Errno),
    #[error("cannot be read or written: {0}")]
    Io(io::Error),
}

impl From<Errno> for Problem {
    fn from(error: Errno) -> Self {
        match error {
            Errno::NOENT => Self::Missing,
            Errno::NOTDIR => Self::NotAFolder,
            // A link that took the place of what was checked before.
            Errno::LOOP => Self::Link,
            error => Self::System(error),
        }
    }
}

impl From<io::Error> for Problem {
    fn from(error: io::Error) -> Self {
        Self::Io(error)
    }
}

/// Whether links that stay within the folder are followed. To read, they are; a write through one would change another file
/// than the one that the model named.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Links {
    Follow,
    Refuse,
}

/// What a file was before it was written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Written {
    Created,
    Replaced,
}

/// What a path names.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum EntryKind {
    File,
    Folder,
    Other,
}

#[derive(Debug)]
pub(super) struct WorkspaceFiles {
    root: Utf8PathBuf,
}

/// A name in an open folder. The name `.` is the folder itself.
struct Place {
    folder: OwnedFd,
    name: OsString,
}

impl WorkspaceFiles {
    pub(super) fn new(root: Utf8PathBuf) -> Self {
        Self { root }
    }

    /// Returns a path relative to the folder, without `.` and empty parts. The path of the folder itself is empty.
    pub(super) fn relative(&self, path: &str) -> Result<String, FileError> {
        self.parts(path).map(|parts| parts.join("/")).map_err(|problem| FileError { path: shown(path), problem })
    }

    fn parts<'p>(&self, path: &'p str) -> Result<Vec<&'p str>, Problem> {
        if path.is_empty() || path.contains('\0') {
            return Err(Problem::Invalid);
        }
        let relative = if path.starts_with('/') {
            let canonical = self.root.canonicalize_utf8().ok();
            let below = |root: &Utf8Path| Utf8Path::new(path).strip_prefix(root).ok();
            below(&self.root).or_else(|| below(canonical.as_deref()?)).ok_or(Problem::Outside)?.as_str()
        } else {
            path
        };
        let parts: Vec<&str> = relative.split('/').filter(|part| !part.is_empty() && *part != ".").collect();
        if parts.contains(&"..") {
            return Err(Problem::Outside);
        }
        if parts.len() > MAX_COMPONENTS {
            return Err(Problem::Invalid);
        }
        if parts.iter().any(|part| is_git(part.as_ref())) {
            return Err(Problem::Git);
        }
        Ok(parts)
    }

    /// Reads a regular file.
    pub(super) fn read(&self, path: &str, links: Links) -> Result<Vec<u8>, FileError> {
        let read = || -> Result<Vec<u8>, Problem> {
            let place = self.find(path, links, false)?;
            // Before it is opened, because opening a device can have an effect.
            expect_file(place.stat()?)?;
            // Not blocking, in case a named pipe took its place.
            let descriptor = rustix::fs::openat(
                &place.folder,
                &place.name,
                READ | OFlags::NONBLOCK | OFlags::NOCTTY,
                Mode::empty(),
            )?;
            expect_file(rustix::fs::fstat(&descriptor)?)?;
            let mut bytes = Vec::new();
            // The size is not trusted: files of `/proc` have none, and others grow.
            File::from(descriptor).take(MAX_FILE_BYTES + 1).read_to_end(&mut bytes)?;
            if bytes.len() as u64 > MAX_FILE_BYTES { Err(Problem::TooLarge) } else { Ok(bytes) }
        };
        read().map_err(|problem| FileError { path: shown(path), problem })
    }

    /// Replaces or creates a regular file: all of the new content is there, or none. The mode stays. Missing folders are created.
    pub(super) fn write(&self, path: &str, bytes: &[u8]) -> Result<Written, FileError> {
        let write = || -> Result<Written, Problem> {
            if bytes.len() as u64 > MAX_FILE_BYTES {
                return Err(Problem::TooLarge);
            }
            let place = self.find(path, Links::Refuse, true)?;
            let before = match place.stat() {
                Ok(stat) => Some(stat),
                Err(Problem::Missing) => None,
                Err(problem) => return Err(problem),
            };
            before.map_or(Ok(()), expect_file)?;
            let temporary = format!(".counterproof-{}.tmp", uuid::Uuid::now_v7());
            let replaced = place.replace(&temporary, bytes, before);
            if replaced.is_err() {
                let _ = rustix::fs::unlinkat(&place.folder, &temporary, AtFlags::empty());
            }
            replaced.map(|()| if before.is_some() { Written::Replaced } else { Written::Created })
        };
        write().map_err(|problem| FileError { path: shown(path), problem })
    }

    pub(super) fn kind(&self, path: &str) -> Result<EntryKind, FileError> {
        let kind = || Ok(kind_of(self.find(path, Links::Follow, false)?.stat()?));
        kind().map_err(|problem| FileError { path: shown(path), problem })
    }

    /// Returns the entries of a folder in the order of their names. Links, special files, `.git` and names that are not UTF-8
    /// are left out.
    pub(super) fn entries(&self, path: &str) -> Result<Vec<(String, EntryKind)>, FileError> {
        let list = || -> Result<_, Problem> {
            let Place { folder, name } = self.find(path, Links::Follow, false)?;
            let folder = rustix::fs::openat(&folder, &name, FOLDER, Mode::empty())?;
            let mut entries = Vec::new();
            for entry in Dir::read_from(&folder)? {
                let entry = entry?;
                let Ok(name) = entry.file_name().to_str() else { continue };
                if matches!(name, "." | "..") || is_git(name.as_ref()) {
                    continue;
                }
                let kind = match entry.file_type() {
                    FileType::RegularFile => EntryKind::File,
                    FileType::Directory => EntryKind::Folder,
                    // Not all file systems state it in the list.
                    FileType::Unknown => kind_of(rustix::fs::statat(&folder, name, AtFlags::SYMLINK_NOFOLLOW)?),
                    _ => EntryKind::Other,
                };
                if kind != EntryKind::Other {
                    entries.push((name.to_owned(), kind));
                }
            }
            entries.sort_unstable();
            Ok(entries)
        };
        list().map_err(|problem| FileError { path: shown(path), problem })
    }

    /// Opens the folder of a path, link by link if they are followed.
    fn find(&self, path: &str, links: Links, create: bool) -> Result<Place, Problem> {
        let mut pending: Vec<OsString> = self.parts(path)?.into_iter().rev().map(OsString::from).collect();
        // The folders from the root to the current one, for `..` in links.
        let root = rustix::fs::open(self.root.as_std_path(), FOLDER.difference(OFlags::NOFOLLOW), Mode::empty())?;
        let (mut folders, mut links_left) = (vec![root], MAX_LINKS);
        while let Some(name) = pending.pop() {
            let Some(folder) = folders.last() else { return Err(Problem::Outside) };
            match name.as_bytes() {
                b"" | b"." => continue,
                b".." => {
                    folders.pop();
                    continue;
                }
                _ if is_git(&name) => return Err(Problem::Git),
                _ => {}
            }
            let is_last = pending.is_empty();
            let stat = rustix::fs::statat(folder, &name, AtFlags::SYMLINK_NOFOLLOW);
            match stat.map(|stat| FileType::from_raw_mode(stat.st_mode)) {
                Ok(FileType::Symlink) => {
                    if links == Links::Refuse {
                        return Err(Problem::Link);
                    }
                    links_left = links_left.checked_sub(1).ok_or(Problem::Links)?;
                    let target = rustix::fs::readlinkat(folder, &name, Vec::new())?.into_bytes();
                    if target.starts_with(b"/") {
                        return Err(Problem::Outside);
                    }
                    pending.extend(
                        target.split(|byte| *byte == b'/').rev().map(|part| OsString::from_vec(part.to_owned())),
                    );
                    if pending.len() > MAX_COMPONENTS {
                        return Err(Problem::Links);
                    }
                    continue;
                }
                _ if is_last => return Ok(Place { folder: folders.pop().ok_or(Problem::Outside)?, name }),
                Err(Errno::NOENT) if create => match rustix::fs::mkdirat(folder, &name, Mode::from(0o777)) {
                    Ok(()) | Err(Errno::EXIST) => {}
                    Err(error) => return Err(error.into()),
                },
                Err(error) => return Err(error.into()),
                Ok(_) => {}
            }
            if folders.len() > MAX_COMPONENTS {
                return Err(Problem::Invalid);
            }
            folders.push(rustix::fs::openat(folder, &name, FOLDER, Mode::empty())?);
        }
        Ok(Place { folder: folders.pop().ok_or(Problem::Outside)?, name: ".".into() })
    }
}

impl Place {
    fn stat(&self) -> Result<Stat, Problem> {
        Ok(rustix::fs::statat(self.folder.as_fd(), &self.name, AtFlags::SYMLINK_NOFOLLOW)?)
    }

    /// Writes a new file, and gives it the name of this place.
    fn replace(&self, temporary: &str, bytes: &[u8], before: Option<Stat>) -> Result<(), Problem> {
        let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let mut file = File::from(rustix::fs::openat(&self.folder, temporary, flags, Mode::from(0o666))?);
        file.write_all(bytes)?;
        if let Some(before) = before {
            rustix::fs::fchmod(&file, Mode::from_raw_mode(before.st_mode & 0o777))?;
        }
        // Not synced: what counts after a crash of the system is the last snapshot. A link that was put there is replaced.
        Ok(rustix::fs::renameat(&self.folder, temporary, &self.folder, &self.name)?)
    }
}

/// In any case, because some file systems do not distinguish it.
fn is_git(name: &OsStr) -> bool {
    name.as_bytes().eq_ignore_ascii_case(b".git")
}

fn kind_of(stat: Stat) -> EntryKind {
    match FileType::from_raw_mode(stat.st_mode) {
        FileType::RegularFile => EntryKind::File,
        FileType::Directory => EntryKind::Folder,
        _ => EntryKind::Other,
    }
}

fn expect_file(stat: Stat) -> Result<(), Problem> {
    match kind_of(stat) {
        EntryKind::File => Ok(()),
        EntryKind::Folder => Err(Problem::Folder),
        EntryKind::Other => Err(Problem::Special),
    }
}

/// The path in a message: short, and on one line.
fn shown(path: &str) -> String {
    counterproof_artifact::one_line(path, 200)
}
