//! Functions that write, copy, append, sync and remove single files.

use std::fs::{self, File};
use std::io::{self, Read, Write};

use camino::Utf8Path;
use serde::Serialize;

use crate::read_file;

use super::atomic_file::{create_temporary, persist};
use super::folders::{parent_of, sync_folder};
use super::{AtomicFile, Durability, WriteError};

/// Writes `bytes` to `path`, whose folder exists.
pub fn write(path: &Utf8Path, bytes: &[u8], durability: Durability) -> Result<(), WriteError> {
    // No `AtomicFile`: its buffer only helps files that grow in steps.
    let mut temporary = create_temporary(path)?;
    temporary.write_all(bytes).map_err(WriteError::at(path))?;
    persist(temporary, path, durability)?;
    if durability == Durability::Synced {
        sync_folder(parent_of(path)).map_err(WriteError::at(path))?;
    }
    Ok(())
}

/// Writes a document as indented JSON with a final newline.
pub fn write_json(path: &Utf8Path, document: &impl Serialize, durability: Durability) -> Result<(), WriteError> {
    let mut file = AtomicFile::create(path)?;
    serde_json::to_writer_pretty(&mut file, document).map_err(|error| WriteError::at(path)(error.into()))?;
    file.write_all(b"\n").map_err(WriteError::at(path))?;
    file.commit(durability)
}

/// Appends bytes to a file that other programs append to as well, such as a log, and creates it where it does not exist.
/// A crash may leave a part of the bytes.
pub fn append(path: &Utf8Path, bytes: &[u8]) -> Result<(), WriteError> {
    #[expect(clippy::disallowed_methods, reason = "appends; the existing content stays")]
    let file = fs::OpenOptions::new().append(true).create(true).open(path);
    // One call for all bytes: lines of other programs rarely come between.
    file.and_then(|mut file| file.write_all(bytes)).map_err(WriteError::at(path))
}

/// Creates a file that must not exist yet and is not atomic: readers see it while it grows.
pub fn create_new(path: &Utf8Path) -> Result<File, WriteError> {
    #[expect(clippy::disallowed_methods, reason = "for files that are read while they are written")]
    File::create_new(path).map_err(WriteError::at(path))
}

/// Copies a file of any size.
pub fn copy(from: &Utf8Path, to: &Utf8Path, durability: Durability) -> Result<(), WriteError> {
    let (mut source, _) = read_file::open(from).map_err(WriteError::at(from))?;
    let mut file = AtomicFile::create(to)?;
    let mut buffer = vec![0; 64 * 1024];
    loop {
        // `io::copy` would not tell whether the source or the target failed, and the error names its file.
        let read = source.read(&mut buffer).map_err(WriteError::at(from))?;
        if read == 0 {
            return file.commit(durability);
        }
        file.write_all(&buffer[..read]).map_err(WriteError::at(to))?;
    }
}

/// Syncs a file that was written earlier.
pub(crate) fn sync_file(path: &Utf8Path) -> Result<(), WriteError> {
    #[expect(clippy::disallowed_methods, reason = "writes nothing; some systems sync only files open for writing")]
    fs::OpenOptions::new().write(true).open(path).and_then(|file| file.sync_all()).map_err(WriteError::at(path))
}

/// Syncs the whole file system that holds a folder. Returns false where the platform has no such call.
#[cfg(target_os = "linux")]
pub(crate) fn sync_file_system(folder: &Utf8Path) -> Result<bool, WriteError> {
    let open = File::open(folder).map_err(WriteError::at(folder))?;
    rustix::fs::syncfs(open).map(|()| true).map_err(|error| WriteError::at(folder)(error.into()))
}

/// Syncs the whole file system that holds a folder. Returns false where the platform has no such call.
#[cfg(not(target_os = "linux"))]
pub(crate) fn sync_file_system(_folder: &Utf8Path) -> Result<bool, WriteError> {
    Ok(false)
}

/// Removes a file. A file that does not exist is no error.
pub(crate) fn remove(path: &Utf8Path) -> Result<(), WriteError> {
    match fs::remove_file(path) {
        Err(source) if source.kind() != io::ErrorKind::NotFound => Err(WriteError { path: path.to_owned(), source }),
        _ => Ok(()),
    }
}
