//! Files and folders that only their owner can access.

use std::fs::File;

use camino::Utf8Path;
use counterproof_store::write::{AtomicFile, WriteError, create_folder};

use super::SecretStoreError;

/// Makes a new file private. Called before its content is written: no other user may open it before.
#[cfg(unix)]
pub(super) fn make_file_private(file: &mut AtomicFile) -> Result<(), WriteError> {
    file.set_permissions(std::os::unix::fs::PermissionsExt::from_mode(0o600))
}

/// Does nothing: the folder of a user's profile is private on Windows.
#[cfg(not(unix))]
#[expect(clippy::unnecessary_wraps, reason = "it fails on other systems")]
pub(super) fn make_file_private(_file: &mut AtomicFile) -> Result<(), WriteError> {
    Ok(())
}

/// Fails if other users can access an open file, or if it belongs to another user than this one and root.
#[cfg(unix)]
pub(super) fn check_private(file: &File, path: &Utf8Path) -> Result<(), SecretStoreError> {
    use std::os::unix::fs::MetadataExt as _;

    let read_error = |source| SecretStoreError::Read { path: path.to_owned(), source };
    let metadata = file.metadata().map_err(read_error)?;
    let (mode, owner) = (metadata.mode() & 0o7777, metadata.uid());
    let user = rustix::process::geteuid().as_raw();
    if mode & 0o077 != 0 {
        return Err(not_private(path, format!("the mode {mode:04o} lets other users access it"), ["chmod", "600"]));
    }
    if ![0, user].contains(&owner) {
        let remedy = ["chown".to_owned(), user.to_string()];
        return Err(not_private(path, format!("it belongs to the user with the id {owner}"), remedy));
    }
    Ok(())
}

/// Does nothing: the folder of a user's profile is private on Windows.
#[cfg(not(unix))]
#[expect(clippy::unnecessary_wraps, reason = "it fails on other systems")]
pub(super) fn check_private(_file: &File, _path: &Utf8Path) -> Result<(), SecretStoreError> {
    Ok(())
}

/// Creates the folder of a file, private. Fails if others can write to a folder that exists: they could replace the file.
pub(super) fn create_private_folder(path: &Utf8Path) -> Result<(), SecretStoreError> {
    let folder = path.parent().filter(|folder| !folder.as_str().is_empty()).unwrap_or(Utf8Path::new("."));
    if folder.is_dir() {
        return check_folder(folder);
    }
    create_folder(folder)?;
    make_private(folder).map_err(|source| WriteError { path: folder.to_owned(), source }.into())
}

#[cfg(unix)]
fn make_private(folder: &Utf8Path) -> std::io::Result<()> {
    std::fs::set_permissions(folder, std::os::unix::fs::PermissionsExt::from_mode(0o700))
}

#[cfg(not(unix))]
#[expect(clippy::unnecessary_wraps, reason = "it fails on other systems")]
fn make_private(_folder: &Utf8Path) -> std::io::Result<()> {
    Ok(())
}

#[cfg(unix)]
fn check_folder(folder: &Utf8Path) -> Result<(), SecretStoreError> {
    use std::os::unix::fs::MetadataExt as _;

    let read_error = |source| SecretStoreError::Read { path: folder.to_owned(), source };
    let mode = std::fs::metadata(folder).map_err(read_error)?.mode() & 0o7777;
    if mode & 0o022 != 0 {
        let reason = format!("the mode {mode:04o} of the folder lets other users replace its files");
        return Err(not_private(folder, reason, ["chmod", "go-w"]));
    }
    Ok(())
}

#[cfg(not(unix))]
#[expect(clippy::unnecessary_wraps, reason = "it fails on other systems")]
fn check_folder(_folder: &Utf8Path) -> Result<(), SecretStoreError> {
    Ok(())
}

#[cfg(unix)]
fn not_private(path: &Utf8Path, reason: String, command: [impl Into<String>; 2]) -> SecretStoreError {
    let remedy = command.into_iter().map(Into::into).chain([path.to_string()]).collect();
    SecretStoreError::NotPrivate { path: path.to_owned(), reason, remedy }
}
