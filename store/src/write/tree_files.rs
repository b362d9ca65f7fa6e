//! Files of a tree that becomes visible or durable as a whole, so none of them is synced on its own: those of a folder that is not
//! published yet ([`StagedFolder`](super::StagedFolder)) need no temporary names, and those of a tree that is restored replace
//! older ones by a rename ([`sync_tree`](super::sync_tree) syncs it).

use std::cell::RefCell;
use std::fs::File;
use std::io::{self, Read, Write};
#[cfg(unix)]
use std::{ffi::OsStr, fs, os::unix::fs::PermissionsExt as _, path::Path};

use camino::Utf8Path;

use super::WriteError;
#[cfg(unix)]
use super::atomic_file::{OWN_PREFIX, create_temporary_in};
use crate::read_file;

thread_local! {
    /// The buffer of a thread. A new one for each file would be cleared each time, which costs more than most copies.
    static BUFFER: RefCell<Box<[u8]>> = RefCell::new(vec![0; 64 * 1024].into_boxed_slice());
}

/// Writes `bytes` to `path`, which must not exist yet.
pub fn write_new(path: &Utf8Path, bytes: &[u8]) -> Result<(), WriteError> {
    create(path).and_then(|mut file| file.write_all(bytes)).map_err(WriteError::at(path))
}

/// Copies the file `from` to `to`. Returns false where `to` exists already, and leaves it unchanged.
///
/// An error has the path of the side that failed. After an error of the source, `to` holds a part of it.
pub fn copy_new(from: &Utf8Path, to: &Utf8Path) -> Result<bool, WriteError> {
    let (mut source, _) = read_file::open(from).map_err(WriteError::at(from))?;
    let mut target = match create(to) {
        Ok(file) => file,
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => return Ok(false),
        Err(error) => return Err(WriteError::at(to)(error)),
    };
    // Not `io::copy`, which does not say whether reading or writing failed.
    BUFFER.with_borrow_mut(|buffer| {
        loop {
            match source.read(buffer).map_err(WriteError::at(from))? {
                0 => return Ok(true),
                read => target.write_all(&buffer[..read]).map_err(WriteError::at(to))?,
            }
        }
    })
}

fn create(path: &Utf8Path) -> io::Result<File> {
    #[expect(clippy::disallowed_methods, reason = "the folder is not published yet, so no reader sees a torn file")]
    File::create_new(path)
}

/// Writes a file with a mode (Unix) and all bytes of a reader. It replaces a file or link with this name.
#[cfg(unix)]
pub fn put_file(path: &Path, mode: u32, content: &mut impl Read) -> io::Result<()> {
    // Private until it is complete: the content may be.
    let mut temporary = create_temporary_in(parent_of(path), 0o600)?;
    io::copy(content, temporary.as_file_mut())?;
    temporary.flush()?;
    temporary.as_file().set_permissions(fs::Permissions::from_mode(mode))?;
    temporary.persist(path).map(drop).map_err(|error| error.error)
}

/// Creates a symbolic link. It replaces a file or link with this name.
#[cfg(unix)]
pub fn put_link(path: &Path, target: &OsStr) -> io::Result<()> {
    let create = |temporary: &Path| std::os::unix::fs::symlink(target, temporary);
    let temporary = tempfile::Builder::new().prefix(OWN_PREFIX).make_in(parent_of(path), create)?;
    temporary.persist(path).map(drop).map_err(|error| error.error)
}

#[cfg(unix)]
fn parent_of(path: &Path) -> &Path {
    path.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."))
}
