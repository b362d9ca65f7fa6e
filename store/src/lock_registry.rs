//! A folder of records that living processes hold, shared by all users of a machine.
//!
//! Each record is a file that its holder keeps locked. The system releases the lock when the holder ends for any reason, so a
//! record of a killed process is recognised and removed at once. Changes and looks happen under one lock, that of the folder
//! itself, so that a process can look at all records and add its own without another one in between.
//!
//! The folder may belong to another user, and so may the files in it. Symbolic links are never followed, and only regular files
//! are read. Another user can claim a record that is not true; the module does not judge the content.

use std::fs::{self, File, OpenOptions, Permissions, TryLockError};
use std::io::{self, Write as _};
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};

use camino::{Utf8Path, Utf8PathBuf};

use crate::file_lock::{LockAttempt, try_lock};
use crate::read_file::{self, read_to_limit};
use crate::write::{WriteError, create_public_folder};

/// Start and end of the name of a record.
const NAME: (&str, &str) = ("holder-", ".json");

/// Maximum size of a record.
const MAX_RECORD_BYTES: u64 = 1 << 20;

/// Everyone may read a record, and only its owner may change it.
const RECORD_MODE: u32 = 0o644;

/// The bits of a mode that let other users write.
const OTHERS_WRITE: u32 = 0o022;

/// The bit of a mode that lets only the owner of a file remove it.
const STICKY: u32 = 0o1000;

/// A registry that cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum RegistryError {
    /// The folder or a record could not be read, created or locked.
    #[error("cannot use the registry `{path}`")]
    Io {
        /// The folder or file.
        path: Utf8PathBuf,
        /// The error of the operating system.
        source: io::Error,
    },
    /// The folder could not be created.
    #[error(transparent)]
    Create(#[from] WriteError),
    /// Other users could replace the records in it.
    #[error("the registry `{path}` is not safe: {reason}")]
    Unsafe {
        /// The folder.
        path: Utf8PathBuf,
        reason: &'static str,
    },
}

impl RegistryError {
    fn at(path: &Utf8Path) -> impl FnOnce(io::Error) -> Self {
        let path = path.to_owned();
        move |source| RegistryError::Io { path, source }
    }
}

/// A folder of records.
#[derive(Debug, Clone)]
pub struct LockRegistry {
    folder: Utf8PathBuf,
}

/// A registry that no other process looks at or changes.
#[derive(Debug)]
pub struct RegistryLock<'a> {
    registry: &'a LockRegistry,
    /// The open folder, whose lock is held until it is closed.
    _lock: File,
}

/// The record of a living process.
#[derive(Debug)]
pub struct Record {
    /// The file.
    pub path: Utf8PathBuf,
    /// The content, or the reason why it cannot be read.
    pub content: io::Result<Vec<u8>>,
}

/// A record of this process. Dropping it removes the record.
#[derive(Debug)]
pub struct RecordLock {
    path: Utf8PathBuf,
    /// The open file, whose lock is held until it is closed.
    _lock: File,
}

impl LockRegistry {
    /// Opens the registry in a folder, which is created if it does not exist: every user may add files to it, and only the owner
    /// of a file may remove it.
    pub fn open(folder: &Utf8Path) -> Result<Self, RegistryError> {
        let found = match folder.symlink_metadata() {
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                create_public_folder(folder)?;
                folder.symlink_metadata()
            }
            found => found,
        };
        let found = found.map_err(RegistryError::at(folder))?;
        let refused = |reason| Err(RegistryError::Unsafe { path: folder.to_owned(), reason });
        if found.is_symlink() {
            return refused("it is a symbolic link; remove it, or choose another folder");
        }
        if !found.is_dir() {
            return refused("it is not a folder; remove it, or choose another folder");
        }
        if found.mode() & OTHERS_WRITE != 0 && found.mode() & STICKY == 0 {
            return refused(
                "other users can remove its files; make it sticky with `chmod +t`, or choose another folder",
            );
        }
        Ok(Self { folder: folder.to_owned() })
    }

    pub fn folder(&self) -> &Utf8Path {
        &self.folder
    }

    /// Locks the registry. Returns `None` at once if another process has the lock.
    pub fn try_lock(&self) -> Result<Option<RegistryLock<'_>>, RegistryError> {
        #[expect(clippy::disallowed_methods, reason = "opens a folder, to lock it; nothing is written")]
        let folder = OpenOptions::new().read(true).open(&self.folder).map_err(RegistryError::at(&self.folder))?;
        match folder.try_lock() {
            Ok(()) => Ok(Some(RegistryLock { registry: self, _lock: folder })),
            Err(TryLockError::WouldBlock) => Ok(None),
            Err(TryLockError::Error(source)) => Err(RegistryError::at(&self.folder)(source)),
        }
    }
}

impl RegistryLock<'_> {
    pub fn folder(&self) -> &Utf8Path {
        &self.registry.folder
    }

    /// Returns the records of all living processes, and removes those of ended ones.
    pub fn living(&self) -> Result<Vec<Record>, RegistryError> {
        let folder = &self.registry.folder;
        let mut records = Vec::new();
        for entry in folder.read_dir_utf8().map_err(RegistryError::at(folder))? {
            let entry = entry.map_err(RegistryError::at(folder))?;
            if entry.file_name().starts_with(NAME.0) && entry.file_name().ends_with(NAME.1) {
                records.extend(read_living(entry.path())?);
            }
        }
        records.sort_by(|a, b| a.path.cmp(&b.path));
        Ok(records)
    }

    /// Adds a record, which other processes see from now on.
    pub fn add(&self, content: &[u8]) -> Result<RecordLock, RegistryError> {
        let folder = &self.registry.folder;
        let prefix = format!("{}{}-", NAME.0, std::process::id());
        let mut builder = tempfile::Builder::new();
        builder.prefix(&prefix).suffix(NAME.1);
        let create = |path: &std::path::Path| {
            #[expect(clippy::disallowed_methods, reason = "no one reads the file before the folder is unlocked")]
            let file = OpenOptions::new().create_new(true).read(true).write(true).open(path)?;
            Ok(file)
        };
        let created = builder.make_in(folder, create).map_err(RegistryError::at(folder))?;
        // Dropping `created` removes the file again, so an error leaves no record.
        let path = Utf8PathBuf::from_path_buf(created.path().to_owned()).unwrap_or_default();
        let write = |mut file: &File| {
            file.try_lock().map_err(io::Error::from)?;
            file.set_permissions(Permissions::from_mode(RECORD_MODE))?;
            file.write_all(content)
        };
        write(created.as_file()).map_err(RegistryError::at(&path))?;
        let (file, _) = created.keep().map_err(|error| RegistryError::at(&path)(error.error))?;
        Ok(RecordLock { path, _lock: file })
    }
}

impl RecordLock {
    /// The file.
    pub fn path(&self) -> &Utf8Path {
        &self.path
    }
}

impl Drop for RecordLock {
    fn drop(&mut self) {
        // A file that remains is not locked, so the next look removes it.
        let _ = fs::remove_file(&self.path);
    }
}

/// Reads a record. Returns `None` if its holder has ended, or if it is no record.
fn read_living(path: &Utf8Path) -> Result<Option<Record>, RegistryError> {
    // A file that this process may not read is no record: this module makes all of its files readable.
    let Ok((file, length)) = read_file::open(path) else { return Ok(None) };
    let (opened, named) = (file.metadata(), path.symlink_metadata());
    let is_same =
        |opened: &fs::Metadata, named: &fs::Metadata| (opened.dev(), opened.ino()) == (named.dev(), named.ino());
    if !matches!((&opened, &named), (Ok(opened), Ok(named)) if named.is_file() && is_same(opened, named)) {
        return Ok(None);
    }
    match try_lock(&file, path).map_err(RegistryError::at(path))? {
        LockAttempt::Locked => {
            // Only its owner may remove it. For all others it stays, and does not count.
            let _ = fs::remove_file(path);
            Ok(None)
        }
        LockAttempt::Removed => Ok(None),
        LockAttempt::Busy => {
            let content = read_to_limit(file, length, MAX_RECORD_BYTES);
            Ok(Some(Record { path: path.to_owned(), content }))
        }
        LockAttempt::Failed => Err(RegistryError::at(path)(io::ErrorKind::Unsupported.into())),
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    struct Kit {
        folder: tempfile::TempDir,
        registry: LockRegistry,
    }

    fn kit() -> Kit {
        let folder = tempfile::tempdir().unwrap();
        let path = Utf8Path::from_path(folder.path()).unwrap().join("a/locks");
        Kit { registry: LockRegistry::open(&path).unwrap(), folder }
    }

    fn contents(registry: &LockRegistry) -> Vec<String> {
        let records = registry.try_lock().unwrap().unwrap().living().unwrap();
        records.into_iter().map(|record| String::from_utf8(record.content.unwrap()).unwrap()).collect()
    }

    #[test]
    fn records_are_there_while_they_are_held() {
        let Kit { folder: _folder, registry } = kit();
        assert_eq!(registry.folder().metadata().unwrap().mode() & 0o7777, 0o1777);
        let held = registry.try_lock().unwrap().unwrap().add(b"one").unwrap();
        let again = LockRegistry::open(registry.folder()).unwrap();
        assert_eq!(contents(&again), ["one"]);
        assert_eq!(held.path().metadata().unwrap().mode() & 0o777, 0o644);
        let other = again.try_lock().unwrap().unwrap().add(b"two").unwrap();
        drop(held);
        assert_eq!(contents(&registry), ["two"]);
        drop(other);
        assert!(contents(&registry).is_empty());
        let files: Vec<_> =
            registry.folder().read_dir_utf8().unwrap().map(|entry| entry.unwrap().file_name().to_owned()).collect();
        assert_eq!(files, [".keep"]);
    }

    #[test]
    fn one_process_looks_at_a_time() {
        let Kit { folder: _folder, registry } = kit();
        let locked = registry.try_lock().unwrap().unwrap();
        assert!(registry.try_lock().unwrap().is_none());
        drop(locked);
        assert!(registry.try_lock().unwrap().is_some());
    }

    #[test]
    fn files_that_are_no_records_of_living_processes_do_not_count() {
        let Kit { folder, registry } = kit();
        let put = |name: &str| {
            crate::write::write(&registry.folder().join(name), b"x", crate::write::Durability::Cached).unwrap();
        };
        put("holder-1-dead.json");
        put("notes.txt");
        symlink(folder.path(), registry.folder().join("holder-2-link.json")).unwrap();
        fs::create_dir(registry.folder().join("holder-3-folder.json")).unwrap();
        let held = registry.try_lock().unwrap().unwrap().add(b"living").unwrap();
        symlink(held.path(), registry.folder().join("holder-4-link.json")).unwrap();
        assert_eq!(contents(&registry), ["living"]);
        assert!(!registry.folder().join("holder-1-dead.json").exists(), "it is removed");
        assert!(registry.folder().join("notes.txt").exists());
    }

    #[test]
    fn a_large_record_has_a_reason_in_place_of_its_content() {
        let Kit { folder: _folder, registry } = kit();
        let content = vec![b'x'; usize::try_from(MAX_RECORD_BYTES).unwrap() + 1];
        let _held = registry.try_lock().unwrap().unwrap().add(&content).unwrap();
        let records = registry.try_lock().unwrap().unwrap().living().unwrap();
        assert_eq!(records[0].content.as_ref().unwrap_err().kind(), io::ErrorKind::FileTooLarge);
    }

    #[test]
    fn folders_that_others_can_change_are_refused() {
        let folder = tempfile::tempdir().unwrap();
        let root = Utf8Path::from_path(folder.path()).unwrap();
        symlink("elsewhere", root.join("link")).unwrap();
        crate::write::write(&root.join("file"), b"", crate::write::Durability::Cached).unwrap();
        fs::create_dir(root.join("open")).unwrap();
        fs::set_permissions(root.join("open"), Permissions::from_mode(0o777)).unwrap();
        fs::create_dir(root.join("private")).unwrap();
        fs::set_permissions(root.join("private"), Permissions::from_mode(0o700)).unwrap();
        for (name, reason) in [("link", "symbolic link"), ("file", "not a folder"), ("open", "chmod +t")] {
            let error = LockRegistry::open(&root.join(name)).unwrap_err().to_string();
            assert!(error.contains(reason), "{name}: {error}");
        }
        LockRegistry::open(&root.join("private")).unwrap();
    }
}
