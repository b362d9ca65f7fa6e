//! Reads files of a folder that another program wrote, without leaving the folder.
//!
//! Symbolic links are followed only within the folder. Only regular files are opened: a pipe would block forever, and a
//! device may never end.

use std::fs::File;
use std::io::{self, Read};

use camino::{Utf8Path, Utf8PathBuf};

use crate::read_file;

/// Larger files are read in several steps.
const READ_AT_ONCE: usize = 1024 * 1024;

/// A file that could not be reached within its folder.
#[derive(Debug, thiserror::Error)]
pub enum ResolveError {
    /// The file does not exist.
    #[error("`{name}` does not exist")]
    Missing {
        /// The file, relative to the folder.
        name: String,
        /// The error of the operating system.
        source: io::Error,
    },
    /// A symbolic link on the path leaves the folder.
    #[error("`{name}` leaves its folder through a symbolic link")]
    Escapes {
        /// The file, relative to the folder.
        name: String,
    },
    /// The path names a folder, a pipe or a device.
    #[error("`{name}` is not a file")]
    NotAFile {
        /// The file, relative to the folder.
        name: String,
    },
    /// The path could not be resolved or read.
    #[error("failed to follow `{name}`")]
    Io {
        /// The file, relative to the folder.
        name: String,
        /// The error of the operating system.
        source: io::Error,
    },
}

impl ResolveError {
    /// Converts to an I/O error, and keeps the one of the operating system if there is one.
    pub(crate) fn into_io(self) -> io::Error {
        match self {
            ResolveError::Missing { source, .. } | ResolveError::Io { source, .. } => source,
            other => io::Error::other(other.to_string()),
        }
    }
}

/// Resolves the relative path `name` below `root`. The root itself may be a symbolic link.
pub fn resolve(root: &Utf8Path, name: &str) -> Result<Utf8PathBuf, ResolveError> {
    if let Some(path) = resolve_without_links(root, name) {
        return Ok(path);
    }
    let name = || name.to_owned();
    let follow = |path: &Utf8Path| {
        path.canonicalize_utf8().map_err(|source| match source.kind() {
            io::ErrorKind::NotFound | io::ErrorKind::NotADirectory => ResolveError::Missing { name: name(), source },
            _ => ResolveError::Io { name: name(), source },
        })
    };
    let (root, target) = (follow(root)?, follow(&root.join(name()))?);
    if !target.starts_with(&root) {
        return Err(ResolveError::Escapes { name: name() });
    }
    if !target.is_file() {
        return Err(ResolveError::NotAFile { name: name() });
    }
    Ok(target)
}

/// Fast path for names without symbolic links below the root. `None` means undecided.
fn resolve_without_links(root: &Utf8Path, name: &str) -> Option<Utf8PathBuf> {
    // Resolving links costs a system call for every folder up to the root of the file system.
    let mut path = root.to_owned();
    let mut segments = name.split('/').peekable();
    while let Some(segment) = segments.next() {
        // A backslash or a colon may mean another folder or a drive.
        if matches!(segment, "" | "." | "..") || segment.contains(['\\', ':']) {
            return None;
        }
        path.push(segment);
        let found = path.symlink_metadata().ok()?;
        let expected = if segments.peek().is_some() { found.is_dir() } else { found.is_file() };
        if !expected {
            return None;
        }
    }
    Some(path)
}

/// Opens the file `name` below `root` for reading.
pub fn open(root: &Utf8Path, name: &str) -> Result<File, ResolveError> {
    open_with_length(root, name).map(|(file, _)| file)
}

/// Opens the file `name` below `root` for reading, and returns its length at this time.
pub fn open_with_length(root: &Utf8Path, name: &str) -> Result<(File, u64), ResolveError> {
    if let Some(opened) = open_without_links(root, name) {
        return Ok(opened);
    }
    let failed = |source| ResolveError::Io { name: name.to_owned(), source };
    read_file::open(&resolve(root, name)?).map_err(failed)
}

/// Fast path for a file directly in `root`, which most are: opening it without following a link needs no check before.
/// `None` means undecided.
#[cfg(target_os = "linux")]
fn open_without_links(root: &Utf8Path, name: &str) -> Option<(File, u64)> {
    use rustix::fs::{Mode, OFlags};

    if matches!(name, "" | "." | "..") || name.contains(['/', '\\', ':', '\0']) {
        return None;
    }
    // Opening a pipe must not wait for a writer, and a terminal must not become that of this process.
    let flags = OFlags::RDONLY | OFlags::CLOEXEC | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::NOCTTY;
    let file = File::from(rustix::fs::open(root.join(name).as_std_path(), flags, Mode::empty()).ok()?);
    let found = file.metadata().ok()?;
    found.is_file().then_some((file, found.len()))
}

/// Other systems have no such flags in the standard library.
#[cfg(not(target_os = "linux"))]
fn open_without_links(_root: &Utf8Path, _name: &str) -> Option<(File, u64)> {
    None
}

/// Reads the complete file `name` below `root`, of at most [`read_file::MAX_DOCUMENT_BYTES`].
pub fn read(root: &Utf8Path, name: &str) -> Result<Vec<u8>, ResolveError> {
    read_up_to(root, name, read_file::MAX_DOCUMENT_BYTES)
}

/// Reads the complete file `name` below `root`, of at most `limit` bytes.
pub fn read_up_to(root: &Utf8Path, name: &str, limit: u64) -> Result<Vec<u8>, ResolveError> {
    let failed = |source| ResolveError::Io { name: name.to_owned(), source };
    let (file, length) = open_with_length(root, name)?;
    read_file::read_to_limit(file, length, limit).map_err(failed)
}

/// Reads a file of this length, which may be wrong, in one system call where it is right.
pub fn read_to_end(file: &mut impl Read, length: u64) -> io::Result<Vec<u8>> {
    let length = usize::try_from(length).unwrap_or(usize::MAX);
    // One byte of room more than needed shows the end of the file. A wrong length must not reserve all memory.
    let room = length.min(READ_AT_ONCE) + 1;
    let mut bytes = vec![0; room];
    let read = loop {
        match file.read(&mut bytes) {
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            read => break read?,
        }
    };
    bytes.truncate(read);
    // A full buffer does not show the end, nor does a read that stopped early.
    if read != length || read == room {
        file.read_to_end(&mut bytes)?;
    }
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[cfg(unix)]
    #[test]
    fn symbolic_links_that_leave_the_folder_are_rejected() {
        let outside = tempfile::tempdir().unwrap();
        let inside = tempfile::tempdir().unwrap();
        let root = Utf8Path::from_path(inside.path()).unwrap();
        std::fs::create_dir(root.join("assets")).unwrap();
        crate::write::write(
            &Utf8Path::from_path(outside.path()).unwrap().join("secret"),
            b"s",
            crate::write::Durability::Cached,
        )
        .unwrap();
        std::os::unix::fs::symlink(outside.path(), root.join("assets/out")).unwrap();
        std::os::unix::fs::symlink(root, root.join("assets/round")).unwrap();

        let resolve = |name: &str| resolve(root, name);
        assert!(matches!(resolve("assets/out/secret"), Err(ResolveError::Escapes { .. })));
        assert!(matches!(resolve("assets/none"), Err(ResolveError::Missing { .. })));
        assert!(matches!(resolve("assets/round/assets"), Err(ResolveError::NotAFile { .. })));
    }

    #[cfg(unix)]
    #[test]
    fn a_file_is_read_through_a_link_within_the_folder_and_not_through_one_that_leaves_it() {
        let (outside, inside) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let (secret, root) = (outside.path().join("secret"), Utf8Path::from_path(inside.path()).unwrap());
        for path in [Utf8Path::from_path(&secret).unwrap(), &root.join("case.json")] {
            crate::write::write(path, b"content", crate::write::Durability::Cached).unwrap();
        }
        std::os::unix::fs::symlink(&secret, root.join("out.json")).unwrap();
        std::os::unix::fs::symlink("case.json", root.join("link.json")).unwrap();
        std::fs::create_dir(root.join("folder.json")).unwrap();

        assert_eq!(read(root, "case.json").unwrap(), b"content");
        assert_eq!(read(root, "link.json").unwrap(), b"content");
        assert!(matches!(read(root, "out.json"), Err(ResolveError::Escapes { .. })));
        assert!(matches!(read(root, "folder.json"), Err(ResolveError::NotAFile { .. })));
        assert!(matches!(read(root, "none.json"), Err(ResolveError::Missing { .. })));
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn a_pipe_is_rejected_without_waiting_for_a_writer() {
        let folder = tempfile::tempdir().unwrap();
        let root = Utf8Path::from_path(folder.path()).unwrap();
        let mode = rustix::fs::Mode::RUSR | rustix::fs::Mode::WUSR;
        rustix::fs::mknodat(rustix::fs::CWD, root.join("pipe").as_std_path(), rustix::fs::FileType::Fifo, mode, 0)
            .unwrap();
        assert!(matches!(read(root, "pipe"), Err(ResolveError::NotAFile { .. })));
    }

    #[test]
    fn a_file_is_read_to_its_end_whatever_length_is_expected() {
        let content: Vec<u8> = (0..READ_AT_ONCE + 10).map(|index| index.to_le_bytes()[0]).collect();
        for end in [0, 1, 10, READ_AT_ONCE, READ_AT_ONCE + 10] {
            for expected in [0, 1, 9, 10, 11, READ_AT_ONCE as u64 + 1, end as u64, u64::MAX] {
                assert_eq!(read_to_end(&mut &content[..end], expected).unwrap(), content[..end]);
            }
        }
    }
}
