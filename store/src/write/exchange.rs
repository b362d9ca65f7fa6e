//! Exchanges two folders or files by one rename, where the system can do that.

use std::io;

use camino::Utf8Path;

use super::WriteError;
#[cfg(all(unix, not(target_os = "linux")))]
use super::folders::parent_of;
use super::folders::rename_folder;

/// Whether a rename of the folder is possible and harmless.
pub(super) fn can_be_renamed(target: &Utf8Path) -> bool {
    // A shell or a server whose working directory is renamed away would stay in the old version, which is removed.
    let is_working_directory = std::env::current_dir()
        .and_then(|current| current.canonicalize())
        .is_ok_and(|current| current.starts_with(target.as_std_path()));
    !is_working_directory && !is_mount_point(target)
}

#[cfg(target_os = "linux")]
fn is_mount_point(target: &Utf8Path) -> bool {
    use rustix::fs::{AtFlags, CWD, StatxAttributes, StatxFlags, statx};

    // The attribute also identifies a bind mount of the same file system, where the device numbers are equal.
    statx(CWD, target.as_std_path(), AtFlags::empty(), StatxFlags::BASIC_STATS)
        .is_ok_and(|found| found.stx_attributes.contains(StatxAttributes::MOUNT_ROOT))
}

#[cfg(all(unix, not(target_os = "linux")))]
fn is_mount_point(target: &Utf8Path) -> bool {
    use std::os::unix::fs::MetadataExt;

    let device = |path: &Utf8Path| path.metadata().map(|found| found.dev()).ok();
    target.is_dir() && device(target) != device(parent_of(target))
}

#[cfg(not(unix))]
fn is_mount_point(_target: &Utf8Path) -> bool {
    false
}

/// Exchanges two files or folders, or renames `new` to `old` with a stop at `aside` where the system cannot exchange them.
pub(super) fn exchange(new: &Utf8Path, old: &Utf8Path, aside: &Utf8Path) -> Result<(), WriteError> {
    if exchange_at_once(new, old).map_err(WriteError::at(old))? {
        return Ok(());
    }
    rename_folder(old, aside)?;
    if let Err(error) = rename_folder(new, old) {
        // The old version comes back. If that fails too, the next replacement tries it again.
        let _ = rename_folder(aside, old);
        return Err(error);
    }
    rename_folder(aside, new)
}

/// Returns false where the system or the file system cannot exchange two entries.
#[cfg(target_os = "linux")]
fn exchange_at_once(new: &Utf8Path, old: &Utf8Path) -> io::Result<bool> {
    use rustix::fs::{CWD, RenameFlags, renameat_with};
    use rustix::io::Errno;

    match renameat_with(CWD, new.as_std_path(), CWD, old.as_std_path(), RenameFlags::EXCHANGE) {
        Ok(()) => Ok(true),
        Err(Errno::INVAL | Errno::NOSYS | Errno::OPNOTSUPP) => Ok(false),
        Err(error) => Err(error.into()),
    }
}

#[cfg(not(target_os = "linux"))]
fn exchange_at_once(_new: &Utf8Path, _old: &Utf8Path) -> io::Result<bool> {
    Ok(false)
}
