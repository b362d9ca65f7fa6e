//! Writes single files: under a temporary name in the same folder, which is then renamed.

use std::fs::{self, File, Permissions};
use std::io::{self, BufWriter, Read, Write};
use std::path::Path;

use camino::{Utf8Path, Utf8PathBuf};
use serde::Serialize;
use tempfile::NamedTempFile;

use super::folders::{parent_of, sync_folder};
use crate::file_lock::lock_new_file;
use crate::read_file;

/// Prefix of every temporary name. A file or folder with this prefix that remains after a crash belongs to no document.
pub const TEMPORARY_PREFIX: &str = ".tmp-";

/// Start of the names of unfinished files and folders. They lie in folders of users too, so no other program may choose the same
/// names.
pub(super) const OWN_PREFIX: &str = ".tmp-counterproof-";

/// Number of names to try for an unfinished file. A name fails only if another process looks for leftovers at that moment.
const MAX_NAMES: u32 = 1000;

/// Bytes that are buffered before they go to the temporary file.
const BUFFER: usize = 64 * 1024;

/// Whether a write survives a power loss.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Durability {
    /// On disk when the write returns: for evidence.
    Synced,
    /// Complete, but flushed to disk at the system's discretion: for files that can be generated again.
    Cached,
}

/// A file that could not be written.
#[derive(Debug, thiserror::Error)]
#[error("failed to write `{path}`")]
pub struct WriteError {
    /// The file or folder.
    pub path: Utf8PathBuf,
    /// The error of the operating system.
    pub source: io::Error,
}

impl WriteError {
    pub(crate) fn at(path: &Utf8Path) -> impl FnOnce(io::Error) -> WriteError {
        let path = path.to_owned();
        move |source| WriteError { path, source }
    }
}

/// A file under construction: [`AtomicFile::commit`] renames it to its target, dropping it before removes it.
#[derive(Debug)]
pub struct AtomicFile {
    path: Utf8PathBuf,
    temporary: BufWriter<NamedTempFile>,
}

impl AtomicFile {
    /// Starts a file for the target `path`, whose folder exists.
    pub fn create(path: &Utf8Path) -> Result<Self, WriteError> {
        let temporary = create_temporary(path)?;
        Ok(Self { path: path.to_owned(), temporary: BufWriter::with_capacity(BUFFER, temporary) })
    }

    /// Starts a file that only its owner may read (Unix).
    pub(super) fn create_private(path: &Utf8Path) -> Result<Self, WriteError> {
        let folder = parent_of(path).as_std_path();
        let temporary = create_temporary_in(folder, 0o600).map_err(WriteError::at(path))?;
        Ok(Self { path: path.to_owned(), temporary: BufWriter::with_capacity(BUFFER, temporary) })
    }

    /// Changes the target to another path in the same folder.
    #[must_use]
    pub(crate) fn with_path(self, path: &Utf8Path) -> Self {
        Self { path: path.to_owned(), ..self }
    }

    /// Sets the permissions that the target gets, instead of those of a new file.
    pub fn set_permissions(&mut self, permissions: Permissions) -> Result<(), WriteError> {
        self.temporary.get_ref().as_file().set_permissions(permissions).map_err(WriteError::at(&self.path))
    }

    /// Renames the file to its target, replacing a file that is there.
    pub fn commit(self, durability: Durability) -> Result<(), WriteError> {
        let path = self.path;
        let temporary = self.temporary.into_inner().map_err(|error| WriteError::at(&path)(error.into_error()))?;
        persist(temporary, &path, durability)?;
        if durability == Durability::Synced {
            sync_folder(parent_of(&path)).map_err(WriteError::at(&path))?;
        }
        Ok(())
    }

    /// Renames the file to the first of these paths, all in the same folder, that does not exist, and returns that path.
    /// Returns `None` where all of them exist.
    pub fn commit_new(
        self,
        paths: impl IntoIterator<Item = Utf8PathBuf>,
        durability: Durability,
    ) -> Result<Option<Utf8PathBuf>, WriteError> {
        // Synced once, before the first name is tried: the content is the same under every name.
        let Self { path, temporary } = self;
        let mut temporary = temporary.into_inner().map_err(|error| WriteError::at(&path)(error.into_error()))?;
        if durability == Durability::Synced {
            temporary.as_file().sync_all().map_err(WriteError::at(&path))?;
        }
        for name in paths {
            // Fails if the name exists. A check before a rename would race with other processes.
            match temporary.persist_noclobber(&name) {
                Ok(_file) if durability == Durability::Cached => return Ok(Some(name)),
                Ok(_file) => return sync_folder(parent_of(&name)).map(|()| Some(name)).map_err(WriteError::at(&path)),
                Err(error) if error.error.kind() == io::ErrorKind::AlreadyExists => temporary = error.file,
                Err(error) => return Err(WriteError::at(&name)(error.error)),
            }
        }
        Ok(None)
    }
}

impl Write for AtomicFile {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.temporary.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.temporary.flush()
    }
}

pub(super) fn create_temporary(path: &Utf8Path) -> Result<NamedTempFile, WriteError> {
    // The crate creates private files (0600). Artifacts are readable by everyone that the umask allows.
    create_temporary_in(parent_of(path).as_std_path(), 0o666).map_err(WriteError::at(path))
}

/// Creates a temporary file with a mode (Unix), from which the umask is taken.
pub(super) fn create_temporary_in(folder: &Path, mode: u32) -> io::Result<NamedTempFile> {
    let mut builder = tempfile::Builder::new();
    builder.prefix(OWN_PREFIX);
    #[cfg(unix)]
    builder.permissions(std::os::unix::fs::PermissionsExt::from_mode(mode));
    #[cfg(not(unix))]
    let _ = mode;
    // In the folder of the target: a rename across file systems is not atomic.
    for _ in 0..MAX_NAMES {
        let temporary = builder.tempfile_in(folder).map_err(without_temporary_name)?;
        // Locked until it is closed: a file without a lock is the leftover of a killed process.
        if Utf8Path::from_path(temporary.path()).is_none_or(|name| lock_new_file(temporary.as_file(), name)) {
            return Ok(temporary);
        }
    }
    Err(io::ErrorKind::ResourceBusy.into())
}

/// Returns the error of the system alone: the name of a temporary file means nothing to a person.
fn without_temporary_name(error: io::Error) -> io::Error {
    let (text, kind) = (error.to_string(), error.kind());
    // The crate adds the path, and gives no access to the error without it.
    text.split_once(" at path ").map_or(error, |(cause, _path)| io::Error::new(kind, cause.to_owned()))
}

/// Renames a temporary file to `path`.
pub(super) fn persist(temporary: NamedTempFile, path: &Utf8Path, durability: Durability) -> Result<(), WriteError> {
    // Before the rename, otherwise a power loss could leave the name with an empty file.
    if durability == Durability::Synced {
        temporary.as_file().sync_all().map_err(WriteError::at(path))?;
    }
    temporary.persist(path).map(drop).map_err(|error| WriteError::at(path)(error.error))
}

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
pub fn remove(path: &Utf8Path) -> Result<(), WriteError> {
    match fs::remove_file(path) {
        Err(source) if source.kind() != io::ErrorKind::NotFound => Err(WriteError { path: path.to_owned(), source }),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_error_names_no_temporary_file() {
        let error = create_temporary(Utf8Path::new("/nonexistent/folder/file")).unwrap_err();
        assert_eq!(error.path, "/nonexistent/folder/file");
        assert_eq!(error.source.kind(), io::ErrorKind::NotFound);
        assert!(!error.source.to_string().contains("/nonexistent"), "{}", error.source);
    }
}
