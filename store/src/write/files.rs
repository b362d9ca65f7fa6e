//! The one atomic writer: a file is there whole or not at all, whatever happens to the process or the machine.
//!
//! Bytes go to a temporary file in the same folder, which then takes the target's name. With [`Durability::Synced`] the
//! file and the folder's entry for it are on disk before a write returns. Threads that write into one folder at the same
//! time can share the second half of that: see [`SharedFolder`].

mod shared_folder;

use std::fs::{self, File};
use std::io::{self, BufWriter, Read, Write};

use camino::{Utf8Path, Utf8PathBuf};
use serde::Serialize;
use tempfile::NamedTempFile;

pub use shared_folder::SharedFolder;

/// What the name of every temporary file starts with; one that stays behind after a crash belongs to no document.
pub const TEMPORARY_PREFIX: &str = ".tmp-";

/// Whether a write outlives a loss of power.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Durability {
    /// On disk when the write returns: for evidence.
    Synced,
    /// Whole, but the system writes it when it likes: for what can be made again.
    Cached,
}

/// A file that could not be written.
#[derive(Debug, thiserror::Error)]
#[error("failed to write `{path}`")]
pub struct WriteError {
    /// The file or folder.
    pub path: Utf8PathBuf,
    /// What the system said.
    pub source: io::Error,
}

impl WriteError {
    fn at(path: &Utf8Path) -> impl FnOnce(io::Error) -> WriteError {
        let path = path.to_owned();
        move |source| WriteError { path, source }
    }
}

/// A file under construction: it takes its name with [`AtomicFile::commit`], and is gone when dropped before.
#[derive(Debug)]
pub struct AtomicFile {
    path: Utf8PathBuf,
    temporary: BufWriter<NamedTempFile>,
}

impl AtomicFile {
    /// Starts a file that will stand at `path`, whose folder is there already.
    pub fn create(path: &Utf8Path) -> Result<Self, WriteError> {
        let temporary = temporary_for(path)?;
        Ok(Self { path: path.to_owned(), temporary: BufWriter::with_capacity(64 * 1024, temporary) })
    }

    /// The same file, but it will stand at `path`, which is in the same folder.
    #[must_use]
    pub(crate) fn at(self, path: &Utf8Path) -> Self {
        Self { path: path.to_owned(), ..self }
    }

    /// Gives the file its name, replacing what stood there.
    pub fn commit(self, durability: Durability) -> Result<(), WriteError> {
        let path = self.name(durability)?;
        if durability == Durability::Synced {
            sync_folder(folder_of(&path)).map_err(WriteError::at(&path))?;
        }
        Ok(())
    }

    /// Gives the file the first of these names, in the same folder, that nothing stands at, and gives that name back. `None`
    /// where all of them are taken.
    pub fn commit_new(
        self,
        names: impl IntoIterator<Item = Utf8PathBuf>,
        durability: Durability,
    ) -> Result<Option<Utf8PathBuf>, WriteError> {
        let Self { path, temporary } = self;
        let mut temporary = temporary.into_inner().map_err(|error| WriteError::at(&path)(error.into_error()))?;
        if durability == Durability::Synced {
            temporary.as_file().sync_all().map_err(WriteError::at(&path))?;
        }
        for name in names {
            match temporary.persist_noclobber(&name) {
                Ok(_file) if durability == Durability::Cached => return Ok(Some(name)),
                Ok(_file) => return sync_folder(folder_of(&name)).map(|()| Some(name)).map_err(WriteError::at(&path)),
                Err(error) if error.error.kind() == io::ErrorKind::AlreadyExists => temporary = error.file,
                Err(error) => return Err(WriteError::at(&name)(error.error)),
            }
        }
        Ok(None)
    }

    /// The same as a synced [`AtomicFile::commit`], where other threads write into the same folder, which is `shared`.
    pub fn commit_shared(self, shared: &SharedFolder) -> Result<(), WriteError> {
        let path = self.name(Durability::Synced)?;
        shared.sync(folder_of(&path)).map_err(WriteError::at(&path))
    }

    /// Takes the name, which the folder does not yet keep for good.
    fn name(self, durability: Durability) -> Result<Utf8PathBuf, WriteError> {
        let path = self.path;
        let temporary = self.temporary.into_inner().map_err(|error| WriteError::at(&path)(error.into_error()))?;
        name(temporary, &path, durability)?;
        Ok(path)
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

fn temporary_for(path: &Utf8Path) -> Result<NamedTempFile, WriteError> {
    let mut builder = tempfile::Builder::new();
    builder.prefix(TEMPORARY_PREFIX);
    // The crate makes private files; artifacts are for everyone whom the umask lets read them.
    #[cfg(unix)]
    builder.permissions(std::os::unix::fs::PermissionsExt::from_mode(0o666));
    builder.tempfile_in(folder_of(path)).map_err(WriteError::at(path))
}

fn name(temporary: NamedTempFile, path: &Utf8Path, durability: Durability) -> Result<(), WriteError> {
    if durability == Durability::Synced {
        temporary.as_file().sync_all().map_err(WriteError::at(path))?;
    }
    temporary.persist(path).map(drop).map_err(|error| WriteError::at(path)(error.error))
}

/// Writes `bytes` to `path`, whose folder is there already.
pub fn write(path: &Utf8Path, bytes: &[u8], durability: Durability) -> Result<(), WriteError> {
    // Without the buffer of a file that grows: what is written is whole.
    let mut temporary = temporary_for(path)?;
    temporary.write_all(bytes).map_err(WriteError::at(path))?;
    name(temporary, path, durability)?;
    if durability == Durability::Synced {
        sync_folder(folder_of(path)).map_err(WriteError::at(path))?;
    }
    Ok(())
}

/// Writes a document as indented JSON with a final newline.
pub fn write_json(path: &Utf8Path, document: &impl Serialize, durability: Durability) -> Result<(), WriteError> {
    json(path, document)?.commit(durability)
}

/// The same, synced, where other threads write into the same folder, which is `shared`.
pub fn write_json_shared(path: &Utf8Path, document: &impl Serialize, shared: &SharedFolder) -> Result<(), WriteError> {
    json(path, document)?.commit_shared(shared)
}

fn json(path: &Utf8Path, document: &impl Serialize) -> Result<AtomicFile, WriteError> {
    let mut file = AtomicFile::create(path)?;
    serde_json::to_writer_pretty(&mut file, document).map_err(|error| WriteError::at(path)(error.into()))?;
    file.write_all(b"\n").map_err(WriteError::at(path))?;
    Ok(file)
}

/// Adds bytes at the end of a file that is there for everyone to add to, such as a log. It is made where it is not there; a
/// crash may leave a part of the bytes.
pub fn append(path: &Utf8Path, bytes: &[u8]) -> Result<(), WriteError> {
    #[expect(clippy::disallowed_methods, reason = "what others wrote into it stays")]
    let file = fs::OpenOptions::new().append(true).create(true).open(path);
    file.and_then(|mut file| file.write_all(bytes)).map_err(WriteError::at(path))
}

/// Opens a file for writing that is not there yet, and is written as it comes: not whole before it is all there.
pub fn create_new(path: &Utf8Path) -> Result<File, WriteError> {
    #[expect(clippy::disallowed_methods, reason = "for what is read while it is written")]
    File::create_new(path).map_err(WriteError::at(path))
}

/// Copies a file of any size.
pub fn copy(from: &Utf8Path, to: &Utf8Path, durability: Durability) -> Result<(), WriteError> {
    let mut source = File::open(from).map_err(WriteError::at(from))?;
    let mut file = AtomicFile::create(to)?;
    let mut buffer = vec![0; 64 * 1024];
    loop {
        let read = source.read(&mut buffer).map_err(WriteError::at(from))?;
        if read == 0 {
            return file.commit(durability);
        }
        file.write_all(&buffer[..read]).map_err(WriteError::at(to))?;
    }
}

/// Makes a folder and those above it. What is new is on disk when this returns, so that what is written into it later is
/// found again.
pub fn create_folder(path: &Utf8Path) -> Result<(), WriteError> {
    let is_new = |folder: &&Utf8Path| !folder.as_str().is_empty() && !folder.is_dir();
    let new: Vec<&Utf8Path> = path.ancestors().take_while(is_new).collect();
    fs::create_dir_all(path).map_err(WriteError::at(path))?;
    new.iter().rev().try_for_each(|folder| sync_folder(folder_of(folder)).map_err(WriteError::at(folder)))
}

/// Makes a folder that is not there yet, within one that is, and its entry on disk.
pub fn create_new_folder(path: &Utf8Path) -> Result<(), WriteError> {
    fs::create_dir(path).map_err(WriteError::at(path))?;
    sync_folder(folder_of(path)).map_err(WriteError::at(path))
}

/// Gives a finished folder its name, which nothing else has yet, for good.
pub fn publish_folder(from: &Utf8Path, to: &Utf8Path) -> Result<(), WriteError> {
    #[expect(clippy::disallowed_methods, reason = "the folder that lists it is synced below")]
    fs::rename(from, to).map_err(WriteError::at(to))?;
    sync(folder_of(to))
}

/// Puts a folder's list of files on disk.
pub fn sync(folder: &Utf8Path) -> Result<(), WriteError> {
    sync_folder(folder).map_err(WriteError::at(folder))
}

/// Puts a file on disk that was written before.
pub(crate) fn sync_file(path: &Utf8Path) -> Result<(), WriteError> {
    #[expect(
        clippy::disallowed_methods,
        reason = "nothing is written; some systems sync only what is open for writing"
    )]
    fs::OpenOptions::new().write(true).open(path).and_then(|file| file.sync_all()).map_err(WriteError::at(path))
}

/// Puts on disk all that is written in the file system of a folder, at once; false where the system has no such call.
#[cfg(target_os = "linux")]
pub(crate) fn sync_file_system(folder: &Utf8Path) -> Result<bool, WriteError> {
    let open = File::open(folder).map_err(WriteError::at(folder))?;
    rustix::fs::syncfs(open).map(|()| true).map_err(|error| WriteError::at(folder)(error.into()))
}

/// Puts on disk all that is written in the file system of a folder, at once; false where the system has no such call.
#[cfg(not(target_os = "linux"))]
pub(crate) fn sync_file_system(_folder: &Utf8Path) -> Result<bool, WriteError> {
    Ok(false)
}

/// Makes a file that grows at its end, and is read up to where it is whole.
pub(crate) fn create_log(path: &Utf8Path) -> Result<File, WriteError> {
    #[expect(clippy::disallowed_methods, reason = "its reader expects a torn end")]
    fs::OpenOptions::new().append(true).create_new(true).open(path).map_err(WriteError::at(path))
}

/// Removes a file; one that is not there is no error.
pub(crate) fn remove(path: &Utf8Path) -> Result<(), WriteError> {
    match fs::remove_file(path) {
        Err(source) if source.kind() != io::ErrorKind::NotFound => Err(WriteError { path: path.to_owned(), source }),
        _ => Ok(()),
    }
}

fn folder_of(path: &Utf8Path) -> &Utf8Path {
    match path.parent() {
        Some(folder) if !folder.as_str().is_empty() => folder,
        _ => Utf8Path::new("."),
    }
}

/// A rename is safe only once the folder that lists it is.
#[cfg(unix)]
fn sync_folder(folder: &Utf8Path) -> io::Result<()> {
    File::open(folder)?.sync_all()
}

/// Windows cannot sync a folder; its file systems log renames.
#[cfg(not(unix))]
fn sync_folder(_folder: &Utf8Path) -> io::Result<()> {
    Ok(())
}
