//! Unfinished files and folders that killed processes have left.
//!
//! An unfinished entry has a unique name and a lock, which its owner holds for as long as it lives. The system releases the lock
//! when the owner ends for any reason. A process id could not tell a dead owner from a living one: each container numbers its
//! processes from 1.
//!
//! ```text
//! .tmp-counterproof-<random>                       an unfinished file, locked itself
//! .tmp-counterproof-<purpose>-<name>-<random>/     an unfinished folder
//! .tmp-counterproof-<purpose>-<name>-<random>.lock held by the owner of that folder, and created before it
//! ```
//!
//! Both lie in folders of users too, so only entries with the name of this program in them are removed there.

use std::fs;
use std::io;

use camino::{Utf8Path, Utf8PathBuf};

use super::TEMPORARY_PREFIX;
use super::atomic_file::OWN_PREFIX;
use super::folders::parent_of;
use crate::file_lock::{FileLock, remove_unless_locked};

/// End of the name of a lock file.
const LOCK_SUFFIX: &str = ".lock";

/// Removes the unfinished files that killed processes have left in the folder of a file. Files of living processes stay.
///
/// For a folder that may hold files of other programs: only files with the names of this crate are removed. A file that cannot be
/// removed stays, because it belongs to no document and blocks no writer.
pub fn remove_leftovers_next_to(file: &Utf8Path) {
    remove_files(parent_of(file), OWN_PREFIX);
}

/// Removes the unfinished files in a folder that holds only files of this project, also those of earlier versions.
pub(crate) fn remove_temporary_files(folder: &Utf8Path) {
    remove_files(folder, TEMPORARY_PREFIX);
}

fn remove_files(folder: &Utf8Path, prefix: &str) {
    for name in names_with(folder, prefix) {
        let path = folder.join(name);
        // Not a link or a pipe, which a writer never creates. Opening a pipe would wait for its other end.
        if path.symlink_metadata().is_ok_and(|found| found.is_file()) {
            // The error is not reported: a file that remains is harmless.
            let _ = remove_unless_locked(&path);
        }
    }
}

/// The path of a new unfinished folder next to others, and its lock. The folder does not exist yet.
pub(super) fn lock_new_folder(parent: &Utf8Path, purpose: &str, name: &str) -> io::Result<(Utf8PathBuf, FileLock)> {
    let prefix = format!("{}{name}-", prefix_of(purpose));
    let created = tempfile::Builder::new().prefix(&prefix).suffix(LOCK_SUFFIX).make_in(parent, |path| {
        let path = Utf8Path::from_path(path).ok_or(io::ErrorKind::InvalidFilename)?;
        // Another name is tried where this one exists.
        FileLock::lock_new(path)
    })?;
    let (lock, path) = created.keep().map_err(|error| error.error)?;
    let file_name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
    Ok((parent.join(file_name.strip_suffix(LOCK_SUFFIX).unwrap_or_default()), lock))
}

/// Removes the unfinished folders that killed processes have left for one purpose, with their locks.
pub(super) fn remove_leftover_folders(parent: &Utf8Path, purpose: &str) {
    let mut names = names_with(parent, &prefix_of(purpose));
    for name in &mut names {
        name.truncate(name.strip_suffix(LOCK_SUFFIX).unwrap_or(name).len());
    }
    names.sort_unstable();
    names.dedup();
    for name in names {
        let folder = parent.join(&name);
        let found = folder.symlink_metadata();
        if found.is_ok_and(|found| !found.is_dir()) {
            continue;
        }
        let lock = FileLock::try_lock(&parent.join(format!("{name}{LOCK_SUFFIX}")));
        // A living owner holds the lock from before its folder exists until the folder is renamed or removed.
        if let Ok(Some(lock)) = lock
            && lock.is_exclusive()
        {
            // The error is not reported: a folder that remains is harmless, and the next call tries it again.
            let _ = fs::remove_dir_all(&folder);
        }
    }
}

/// Start of the names of unfinished folders for one purpose.
fn prefix_of(purpose: &str) -> String {
    format!("{OWN_PREFIX}{purpose}-")
}

/// The names in a folder that start with a prefix. A folder that cannot be read has none.
fn names_with(folder: &Utf8Path, prefix: &str) -> Vec<String> {
    let entries = folder.read_dir_utf8().into_iter().flatten().flatten();
    entries.map(|entry| entry.file_name().to_owned()).filter(|name| name.starts_with(prefix)).collect()
}

#[cfg(test)]
mod tests {
    use std::io::Write as _;

    use super::*;
    use crate::write::{AtomicFile, Durability, write};

    fn put(path: &Utf8Path) {
        write(path, b"half", Durability::Cached).unwrap();
    }

    fn names(folder: &Utf8Path) -> Vec<String> {
        let mut names = names_with(folder, "");
        names.sort();
        names
    }

    #[test]
    fn files_of_dead_writers_are_removed_and_those_of_living_ones_stay() {
        let folder = tempfile::tempdir().unwrap();
        let folder = Utf8Path::from_path(folder.path()).unwrap();
        for name in [".tmp-counterproof-dead", ".tmp-of-another-program", "log"] {
            put(&folder.join(name));
        }
        fs::create_dir(folder.join(".tmp-counterproof-folder")).unwrap();
        let mut living = AtomicFile::create(&folder.join("living")).unwrap();
        living.write_all(b"whole").unwrap();
        remove_leftovers_next_to(&folder.join("log"));
        assert_eq!(names_with(folder, OWN_PREFIX).len(), 2, "the folder and the file of the living writer");
        living.commit(Durability::Cached).unwrap();
        assert_eq!(names(folder), [".tmp-counterproof-folder", ".tmp-of-another-program", "living", "log"]);
        assert_eq!(fs::read(folder.join("living")).unwrap(), b"whole");
        remove_temporary_files(folder);
        assert_eq!(names(folder), [".tmp-counterproof-folder", "living", "log"]);
        remove_leftovers_next_to(&folder.join("missing/log"));
    }

    #[test]
    fn no_writer_loses_its_file_to_one_that_removes_leftovers() {
        let folder = tempfile::tempdir().unwrap();
        let folder = Utf8Path::from_path(folder.path()).unwrap();
        std::thread::scope(|scope| {
            let writers: Vec<_> = (0..3)
                .map(|writer| {
                    scope.spawn(move || (0..300).for_each(|file| put(&folder.join(format!("{writer}-{file}")))))
                })
                .collect();
            while !writers.iter().all(std::thread::ScopedJoinHandle::is_finished) {
                remove_leftovers_next_to(&folder.join("log"));
            }
        });
        assert_eq!(names(folder).len(), 900);
    }
}
