//! Writers for restoring a tree of files. Names may be any bytes that the system allows.
//!
//! A file or link replaces another one by a rename. Nothing is synced on its own: [`sync_tree`](super::sync_tree) makes a whole tree durable.

use std::ffi::OsStr;
use std::fs;
use std::io::{self, Read, Write as _};
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;

use super::atomic_file::{OWN_PREFIX, create_temporary_in};

/// Writes a file with a mode (Unix) and all bytes of a reader. It replaces a file or link with this name.
pub fn put_file(path: &Path, mode: u32, content: &mut impl Read) -> io::Result<()> {
    // Private until it is complete: the content may be.
    let mut temporary = create_temporary_in(parent_of(path), 0o600)?;
    io::copy(content, temporary.as_file_mut())?;
    temporary.flush()?;
    temporary.as_file().set_permissions(fs::Permissions::from_mode(mode))?;
    temporary.persist(path).map(drop).map_err(|error| error.error)
}

/// Creates a symbolic link. It replaces a file or link with this name.
pub fn put_link(path: &Path, target: &OsStr) -> io::Result<()> {
    let create = |temporary: &Path| std::os::unix::fs::symlink(target, temporary);
    let temporary = tempfile::Builder::new().prefix(OWN_PREFIX).make_in(parent_of(path), create)?;
    temporary.persist(path).map(drop).map_err(|error| error.error)
}

fn parent_of(path: &Path) -> &Path {
    path.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."))
}
