//! Files and folders that only their owner may read, such as records of what an agent did.

use std::fs;
use std::io;

use camino::Utf8Path;

use super::folders::{parent_of, sync_folder};
use super::{AtomicFile, Durability, WriteError};

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
        super::super::write(&file, b"1", Durability::Cached).unwrap();
        fs::set_permissions(&file, fs::Permissions::from_mode(0o640)).unwrap();
        create_private_file(&file).unwrap();
        assert_eq!((mode(&file), fs::read(&file).unwrap()), (0o640, b"1".to_vec()));
    }
}
