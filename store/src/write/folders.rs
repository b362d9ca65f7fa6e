//! Creates, renames and syncs folders, and creates files and folders that only their owner may read.

#[cfg(unix)]
use std::fs::File;
use std::{fs, io};

use camino::Utf8Path;

#[cfg(unix)]
use super::atomic_file::{OWN_PREFIX, create_new};
use super::atomic_file::{sync_file, sync_file_system};
use super::{AtomicFile, Durability, WriteError};

/// Creates a folder and its missing parents. The entries of the new folders are on disk when this returns; without that,
/// a power loss could take files that were synced inside them.
pub fn create_folder(path: &Utf8Path) -> Result<(), WriteError> {
    let is_new = |folder: &&Utf8Path| !folder.as_str().is_empty() && !folder.is_dir();
    let new: Vec<&Utf8Path> = path.ancestors().take_while(is_new).collect();
    // Which folders are new must be known before they are created.
    fs::create_dir_all(path).map_err(WriteError::at(path))?;
    // From the outermost folder inwards: an entry is reachable only once those above it are durable.
    new.iter().rev().try_for_each(|folder| sync_folder(parent_of(folder)).map_err(WriteError::at(folder)))
}

/// Creates a folder that must not exist yet, in a parent that exists, and syncs the parent.
pub fn create_new_folder(path: &Utf8Path) -> Result<(), WriteError> {
    fs::create_dir(path).map_err(WriteError::at(path))?;
    sync_folder(parent_of(path)).map_err(WriteError::at(path))
}

/// Creates a folder in which every user may create files, and only the owner of a file may remove it. A folder that exists stays
/// as it is.
#[cfg(unix)]
pub fn create_public_folder(path: &Utf8Path) -> Result<(), WriteError> {
    use std::os::unix::fs::PermissionsExt as _;

    create_folder(parent_of(path))?;
    // Under another name first: the mode of a new folder is subject to the umask, and no process may see it before it is set.
    let new = tempfile::Builder::new().prefix(OWN_PREFIX).tempdir_in(parent_of(path)).map_err(WriteError::at(path))?;
    fs::set_permissions(new.path(), fs::Permissions::from_mode(0o1777)).map_err(WriteError::at(path))?;
    let from = Utf8Path::from_path(new.path()).unwrap_or(path);
    // A rename replaces an empty folder, also one that another process has just created and locked. With a file in it from
    // the start, the folder of the first process stays.
    create_new(&from.join(".keep"))?;
    match rename_folder(from, path) {
        // Another process was first.
        Err(error) if !path.is_dir() => Err(error),
        _ => Ok(()),
    }
}

/// Renames a folder. The caller syncs the parent.
pub(super) fn rename_folder(from: &Utf8Path, to: &Utf8Path) -> Result<(), WriteError> {
    #[expect(clippy::disallowed_methods, reason = "`StagedFolder` syncs the parent afterwards")]
    fs::rename(from, to).map_err(WriteError::at(to))
}

/// Syncs the entries of a folder.
pub fn sync(folder: &Utf8Path) -> Result<(), WriteError> {
    sync_folder(folder).map_err(WriteError::at(folder))
}

/// Makes everything in a folder durable.
pub fn sync_tree(folder: &Utf8Path) -> Result<(), WriteError> {
    // One call for the whole file system where the platform has it: a tree can have many small files.
    if sync_file_system(folder)? {
        return Ok(());
    }
    for entry in folder.read_dir_utf8().map_err(WriteError::at(folder))? {
        let entry = entry.map_err(WriteError::at(folder))?;
        let kind = entry.file_type().map_err(WriteError::at(entry.path()))?;
        if kind.is_dir() {
            sync_tree(entry.path())?;
        } else if kind.is_file() {
            sync_file(entry.path())?;
        }
    }
    sync(folder)
}

/// The folder that holds `path`; the current folder for a bare name.
pub(crate) fn parent_of(path: &Utf8Path) -> &Utf8Path {
    match path.parent() {
        Some(folder) if !folder.as_str().is_empty() => folder,
        _ => Utf8Path::new("."),
    }
}

/// Syncs the entries of a folder: a rename is durable only after that.
#[cfg(unix)]
pub(crate) fn sync_folder(folder: &Utf8Path) -> io::Result<()> {
    File::open(folder)?.sync_all()
}

/// Does nothing: Windows cannot sync a folder, and its file systems journal renames.
#[cfg(not(unix))]
pub(crate) fn sync_folder(_folder: &Utf8Path) -> io::Result<()> {
    Ok(())
}

/// Creates a folder and its missing parents, which only their owner may enter (Unix). Folders that exist stay as they are.
pub fn create_private_folder(path: &Utf8Path) -> Result<(), WriteError> {
    let is_new = |folder: &&Utf8Path| !folder.as_str().is_empty() && !folder.is_dir();
    let new: Vec<&Utf8Path> = path.ancestors().take_while(is_new).collect();
    let mut builder = fs::DirBuilder::new();
    builder.recursive(true);
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    builder.create(path).map_err(WriteError::at(path))?;
    new.iter().rev().try_for_each(|folder| sync_folder(parent_of(folder)).map_err(WriteError::at(folder)))
}

/// Creates an empty file that only its owner may read (Unix). A file that exists stays as it is.
pub fn create_private_file(path: &Utf8Path) -> Result<(), WriteError> {
    match path.symlink_metadata() {
        Ok(_) => return Ok(()),
        Err(error) if error.kind() == io::ErrorKind::NotFound => {}
        Err(error) => return Err(WriteError::at(path)(error)),
    }
    // Under another name first: the mode is set before any process can find the file.
    let file = AtomicFile::create_private(path)?;
    file.commit_new([path.to_owned()], Durability::Synced).map(drop)
}

#[cfg(unix)]
#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt as _;

    use super::*;

    #[test]
    fn new_files_and_folders_are_private_and_existing_ones_stay_as_they_are() {
        let folder = tempfile::tempdir().unwrap();
        let root = Utf8Path::from_path(folder.path()).unwrap();
        let mode = |path: &Utf8Path| path.metadata().unwrap().permissions().mode() & 0o777;
        create_private_folder(&root.join("a/b")).unwrap();
        assert_eq!((mode(&root.join("a")), mode(&root.join("a/b"))), (0o700, 0o700));
        let file = root.join("a/file");
        create_private_file(&file).unwrap();
        assert_eq!(mode(&file), 0o600);
        crate::write::write(&file, b"1", Durability::Cached).unwrap();
        fs::set_permissions(&file, fs::Permissions::from_mode(0o640)).unwrap();
        create_private_file(&file).unwrap();
        assert_eq!((mode(&file), fs::read(&file).unwrap()), (0o640, b"1".to_vec()));
    }

    #[test]
    fn a_public_folder_that_another_process_has_created_is_not_replaced() {
        use std::os::unix::fs::MetadataExt as _;

        let folder = tempfile::tempdir().unwrap();
        let path = Utf8Path::from_path(folder.path()).unwrap().join("registry");
        create_public_folder(&path).unwrap();
        let created = path.metadata().unwrap();
        assert_eq!(created.permissions().mode() & 0o7777, 0o1777);
        create_public_folder(&path).unwrap();
        assert_eq!(path.metadata().unwrap().ino(), created.ino());
        assert_eq!(path.parent().unwrap().read_dir_utf8().unwrap().count(), 1, "nothing temporary is left");
    }
}
