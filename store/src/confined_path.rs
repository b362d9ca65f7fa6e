//! Reads files of a folder that another program wrote, without leaving the folder.
//!
//! Symbolic links are followed only within the folder. Only regular files are opened: a pipe would block forever, and a
//! device may never end.

use std::fs::File;
use std::io::{self, Read};

use camino::{Utf8Path, Utf8PathBuf};

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
    /// Converts to an I/O error, keeping the one of the operating system where there is one.
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

/// Fast path for names without symbolic links below the root. Resolving links costs a system call for every folder up to
/// the root of the file system. `None` means undecided.
fn resolve_without_links(root: &Utf8Path, name: &str) -> Option<Utf8PathBuf> {
    let mut path = root.to_owned();
    let mut segments = name.split('/').peekable();
    while let Some(segment) = segments.next() {
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
    let path = resolve(root, name)?;
    File::open(&path).map_err(|source| ResolveError::Io { name: name.to_owned(), source })
}

/// Reads the complete file `name` below `root`.
pub fn read(root: &Utf8Path, name: &str) -> Result<Vec<u8>, ResolveError> {
    let mut file = open(root, name)?;
    let mut bytes = Vec::new();
    file.read_to_end(&mut bytes).map_err(|source| ResolveError::Io { name: name.to_owned(), source })?;
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
}
