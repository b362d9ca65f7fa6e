//! Replaces a folder by a new version of it. A reader, or a crash at any time, finds the old version or the new one.
//!
//! ```text
//! parent/report                     the version that readers see
//! parent/.tmp-replace-report/       the new version, while it is written
//! parent/.tmp-replace-report.lock   held by the one process that writes it
//! ```
//!
//! At the end the two folders are exchanged by one rename (Linux), or the old one is renamed aside first (elsewhere, and on
//! file systems that cannot exchange). The next replacement removes what a killed process has left.
//!
//! Some folders cannot be renamed: a mount point, the working directory, and a folder in a parent that is not writable. Their
//! new version is written into a folder inside of them, and its entries are exchanged one by one at the end. A crash within
//! these few renames can leave entries of both versions.

use std::fs;
use std::io;

use camino::{Utf8Path, Utf8PathBuf};

use super::exchange::{can_be_renamed, exchange};
use super::folders::{create_folder, parent_of, rename_folder, sync_folder};
use super::{TEMPORARY_PREFIX, WriteError, remove};
use crate::file_lock::FileLock;
use crate::read_file;

/// Start of the name of an entry that is moved aside, where entries cannot be exchanged.
const ASIDE_PREFIX: &str = ".tmp-replaced-";

/// A folder that could not be replaced.
#[derive(Debug, thiserror::Error)]
pub enum ReplaceError {
    /// Another process is replacing the folder.
    #[error("another process is writing to `{0}`")]
    Busy(Utf8PathBuf),
    /// A file or folder could not be written.
    #[error(transparent)]
    Write(#[from] WriteError),
}

/// The new version of a folder, while it is written. Dropping it before [`FolderReplacement::publish`] removes it and leaves the
/// old version unchanged.
///
/// ```
/// use counterproof_store::write::{FolderReplacement, write_new};
///
/// let parent = tempfile::tempdir()?;
/// let target = camino::Utf8Path::from_path(parent.path()).unwrap().join("report");
/// let replacement = FolderReplacement::begin(&target, &["index.html"])?;
/// write_new(&replacement.path().join("index.html"), b"hello")?;
/// assert!(!target.exists());
/// replacement.publish()?;
/// assert!(target.join("index.html").is_file());
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct FolderReplacement {
    target: Utf8PathBuf,
    staging: Utf8PathBuf,
    own: Vec<String>,
    method: Method,
    /// Released after the staging folder is removed.
    _locks: Vec<FileLock>,
}

/// How the new version takes the place of the old one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Method {
    /// Renames the folder.
    Whole,
    /// Renames the entries of the folder.
    Entries,
}

impl FolderReplacement {
    /// Starts a new version of the folder `target`, which may not exist yet. `own` are the names of the entries that belong to
    /// the old version; any other entry of the folder is moved to the new version.
    pub fn begin(target: &Utf8Path, own: &[&str]) -> Result<Self, ReplaceError> {
        let given = target;
        let busy = || ReplaceError::Busy(given.to_owned());
        let target = real_path(given)?;
        let mut locks = Vec::new();
        // This lock is taken for both methods, since two processes may choose different ones for the same folder.
        let next_to_target = names_next_to(&target);
        let is_parent_writable = match next_to_target.as_ref().map(|names| FileLock::try_acquire(&names.lock)) {
            Some(Ok(Some(lock))) => {
                locks.push(lock);
                true
            }
            Some(Ok(None)) => return Err(busy()),
            // Other errors, such as a full disk, would meet the other method as well.
            Some(Err(error)) if !is_denied(&error) => return Err(WriteError::at(given)(error).into()),
            Some(Err(_)) | None => false,
        };
        let in_parent = next_to_target.filter(|_| is_parent_writable && can_be_renamed(&target));
        let method = if in_parent.is_some() { Method::Whole } else { Method::Entries };
        let names = if let Some(names) = in_parent {
            names
        } else {
            create_folder(&target)?;
            let names = Names::new(&target, "");
            let lock = FileLock::try_acquire(&names.lock).map_err(WriteError::at(&names.lock))?;
            locks.push(lock.ok_or_else(busy)?);
            names
        };
        let own = own.iter().map(|name| (*name).to_owned()).collect();
        let replacement = Self { target, staging: names.staging, own, method, _locks: locks };
        replacement.recover(&names.aside)?;
        fs::create_dir(&replacement.staging).map_err(WriteError::at(&replacement.staging))?;
        Ok(replacement)
    }

    /// Whether the folder, or the unfinished version of a killed process inside of it, has the file `marker` with this content.
    /// While the entries are published one by one, one of the two has it.
    pub fn has_version(target: &Utf8Path, marker: &Utf8Path, content: &str) -> bool {
        let is_marked = |folder: &Utf8Path| {
            read_file::read(&folder.join(marker), content.len() as u64).is_ok_and(|bytes| bytes == content.as_bytes())
        };
        is_marked(target) || is_marked(&Names::new(target, "").staging)
    }

    /// The folder of the new version, for writing.
    pub fn path(&self) -> &Utf8Path {
        &self.staging
    }

    /// The folder that is replaced, without symbolic links.
    pub fn target(&self) -> &Utf8Path {
        &self.target
    }

    /// Replaces the folder by its new version.
    pub fn publish(self) -> Result<(), WriteError> {
        match self.method {
            Method::Whole => self.publish_whole()?,
            Method::Entries => self.publish_entries()?,
        }
        self.move_foreign_entries()?;
        sync_folder(parent_of(&self.target)).map_err(WriteError::at(&self.target))
        // Dropping `self` removes the old version, which is in the staging folder now.
    }

    fn publish_whole(&self) -> Result<(), WriteError> {
        let Ok(old) = self.target.metadata() else { return rename_folder(&self.staging, &self.target) };
        fs::set_permissions(&self.staging, old.permissions()).map_err(WriteError::at(&self.staging))?;
        exchange(&self.staging, &self.target, &self.aside())
    }

    fn publish_entries(&self) -> Result<(), WriteError> {
        let mut names = names_in(&self.staging)?;
        // Folders first and the first page last: it links to all others.
        names.sort_by_key(|name| (!self.staging.join(name).is_dir(), name == "index.html", name.clone()));
        for name in &names {
            let (new, old) = (self.staging.join(name), self.target.join(name));
            if old.symlink_metadata().is_ok() {
                exchange(&new, &old, &self.target.join(format!("{ASIDE_PREFIX}{name}")))?;
            } else {
                rename_folder(&new, &old)?;
            }
        }
        for name in names_in(&self.target)? {
            if self.own.contains(&name) && !names.contains(&name) {
                rename_folder(&self.target.join(&name), &self.staging.join(&name))?;
            }
        }
        Ok(())
    }

    /// Moves what does not belong to the old version from the staging folder, which holds the old version, to the target.
    fn move_foreign_entries(&self) -> Result<(), WriteError> {
        let Ok(names) = names_in(&self.staging) else { return Ok(()) };
        for name in names.iter().filter(|name| !self.own.contains(name) && !name.starts_with(TEMPORARY_PREFIX)) {
            let to = self.target.join(name);
            if to.symlink_metadata().is_err() {
                rename_folder(&self.staging.join(name), &to)?;
            }
        }
        Ok(())
    }

    /// Completes or removes what a killed process has left. The caller holds the locks, so the process is dead.
    fn recover(&self, aside: &Utf8Path) -> Result<(), WriteError> {
        match self.method {
            Method::Whole => restore(aside, &self.target)?,
            Method::Entries => {
                for name in names_in(&self.target)? {
                    if let Some(entry) = name.strip_prefix(ASIDE_PREFIX) {
                        restore(&self.target.join(&name), &self.target.join(entry))?;
                    }
                }
            }
        }
        if self.staging.symlink_metadata().is_ok() {
            // The process may have been killed between the exchange and the move of foreign entries.
            if self.target.is_dir() {
                self.move_foreign_entries()?;
            }
            remove_all(&self.staging)?;
        }
        Ok(())
    }

    /// The path of the old version between two renames, where folders cannot be exchanged.
    fn aside(&self) -> Utf8PathBuf {
        names_next_to(&self.target).map_or_else(|| self.target.clone(), |names| names.aside)
    }
}

impl Drop for FolderReplacement {
    fn drop(&mut self) {
        // The old version, or a new one that was not published. The next replacement removes what remains.
        let _ = fs::remove_dir_all(&self.staging);
    }
}

/// The temporary names of a replacement.
#[derive(Debug)]
struct Names {
    staging: Utf8PathBuf,
    lock: Utf8PathBuf,
    aside: Utf8PathBuf,
}

impl Names {
    fn new(folder: &Utf8Path, suffix: &str) -> Self {
        let name = |kind: &str, end: &str| folder.join(format!("{TEMPORARY_PREFIX}{kind}{suffix}{end}"));
        Self { staging: name("replace", ""), lock: name("replace", ".lock"), aside: name("replaced", "") }
    }
}

/// The temporary names in the parent of the target; `None` for the root of the file system.
fn names_next_to(target: &Utf8Path) -> Option<Names> {
    Some(Names::new(target.parent()?, &format!("-{}", target.file_name()?)))
}

/// The absolute path of a folder without symbolic links. Creates the missing parents.
fn real_path(target: &Utf8Path) -> Result<Utf8PathBuf, WriteError> {
    match target.canonicalize_utf8() {
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            let parent = parent_of(target);
            create_folder(parent)?;
            let parent = parent.canonicalize_utf8().map_err(WriteError::at(parent))?;
            // `..` has no name; a path that ends with it exists if its parent does.
            Ok(parent.join(target.file_name().unwrap_or_default()))
        }
        path => path.map_err(WriteError::at(target)),
    }
}

fn names_in(folder: &Utf8Path) -> Result<Vec<String>, WriteError> {
    let entries = folder.read_dir_utf8().map_err(WriteError::at(folder))?;
    let names = entries.map(|entry| entry.map(|entry| entry.file_name().to_owned()));
    names.collect::<io::Result<_>>().map_err(WriteError::at(folder))
}

/// Renames an old version that was moved aside back to its name, or removes it where that name is taken by the new version.
fn restore(aside: &Utf8Path, path: &Utf8Path) -> Result<(), WriteError> {
    match aside.symlink_metadata() {
        Err(_) => Ok(()),
        Ok(_) if path.symlink_metadata().is_err() => rename_folder(aside, path),
        Ok(found) if found.is_dir() => remove_all(aside),
        Ok(_) => remove(aside),
    }
}

fn remove_all(path: &Utf8Path) -> Result<(), WriteError> {
    fs::remove_dir_all(path).map_err(WriteError::at(path))
}

/// Whether the system lets the user write nothing there.
fn is_denied(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::PermissionDenied | io::ErrorKind::ReadOnlyFilesystem)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::write::write_new;

    struct Parent(tempfile::TempDir);

    impl Parent {
        fn new() -> Self {
            Self(tempfile::tempdir().unwrap())
        }

        fn join(&self, name: &str) -> Utf8PathBuf {
            Utf8Path::from_path(self.0.path()).unwrap().canonicalize_utf8().unwrap().join(name)
        }

        /// Replaces the folder by one with a single file.
        fn replace(&self, name: &str) -> Result<(), ReplaceError> {
            let replacement = FolderReplacement::begin(&self.join("report"), &["first", "second"])?;
            write_new(&replacement.path().join(name), b"").unwrap();
            Ok(replacement.publish()?)
        }

        fn report(&self) -> Vec<String> {
            let mut names = names_in(&self.join("report")).unwrap();
            names.sort();
            names
        }

        fn entries(&self) -> usize {
            self.0.path().read_dir().unwrap().count()
        }
    }

    #[test]
    fn a_new_version_replaces_the_old_one_and_leaves_no_temporary_entry() {
        let parent = Parent::new();
        parent.replace("first").unwrap();
        parent.replace("second").unwrap();
        assert_eq!((parent.report(), parent.entries()), (vec!["second".to_owned()], 1));
    }

    #[test]
    fn a_version_is_known_by_the_whole_content_of_its_marker() {
        let parent = Parent::new();
        let has_version = || FolderReplacement::has_version(&parent.join("report"), Utf8Path::new("marker"), "ours");
        let staging = parent.join("report/.tmp-replace");
        fs::create_dir_all(&staging).unwrap();
        assert!(!has_version());
        for folder in [staging, parent.join("report")] {
            let marker = folder.join("marker");
            for (content, is_ours) in [("our", false), ("ours too", false), ("ours", true)] {
                write_new(&marker, content.as_bytes()).unwrap();
                assert_eq!(has_version(), is_ours, "{marker}: {content}");
                remove(&marker).unwrap();
            }
        }
    }

    #[test]
    fn a_version_that_is_not_published_changes_nothing() {
        let parent = Parent::new();
        parent.replace("first").unwrap();
        drop(FolderReplacement::begin(&parent.join("report"), &["first"]).unwrap());
        assert_eq!((parent.report(), parent.entries()), (vec!["first".to_owned()], 1));
    }

    #[test]
    fn files_that_do_not_belong_to_the_old_version_stay() {
        let parent = Parent::new();
        parent.replace("first").unwrap();
        write_new(&parent.join("report/notes.txt"), b"mine").unwrap();
        parent.replace("second").unwrap();
        assert_eq!(parent.report(), ["notes.txt", "second"]);
    }

    #[test]
    fn a_second_writer_is_refused_while_the_first_one_is_active() {
        let parent = Parent::new();
        let first = FolderReplacement::begin(&parent.join("report"), &[]).unwrap();
        assert!(matches!(parent.replace("second"), Err(ReplaceError::Busy(_))));
        first.publish().unwrap();
        parent.replace("second").unwrap();
    }

    #[test]
    fn leftovers_of_a_killed_writer_are_removed_and_foreign_files_in_them_saved() {
        let parent = Parent::new();
        parent.replace("first").unwrap();
        for name in ["", "/cases"] {
            fs::create_dir(parent.join(&format!(".tmp-replace-report{name}"))).unwrap();
        }
        write_new(&parent.join(".tmp-replace-report/notes.txt"), b"mine").unwrap();
        write_new(&parent.join(".tmp-replace-report.lock"), b"").unwrap();
        let replacement = FolderReplacement::begin(&parent.join("report"), &["first", "second", "cases"]).unwrap();
        write_new(&replacement.path().join("second"), b"").unwrap();
        replacement.publish().unwrap();
        assert_eq!((parent.report(), parent.entries()), (vec!["notes.txt".to_owned(), "second".to_owned()], 1));
    }

    #[test]
    fn an_old_version_that_was_only_moved_aside_comes_back() {
        let parent = Parent::new();
        fs::create_dir(parent.join(".tmp-replaced-report")).unwrap();
        write_new(&parent.join(".tmp-replaced-report/first"), b"").unwrap();
        drop(FolderReplacement::begin(&parent.join("report"), &["first"]).unwrap());
        assert_eq!((parent.report(), parent.entries()), (vec!["first".to_owned()], 1));
    }

    #[test]
    fn entries_of_an_old_version_that_were_only_moved_aside_come_back() {
        let parent = Parent::new();
        for name in [".tmp-replaced-first", ".tmp-replaced-second"] {
            fs::create_dir_all(parent.join("report").join(name)).unwrap();
        }
        write_new(&parent.join("report/second"), b"new").unwrap();
        let mut replacement = FolderReplacement::begin(&parent.join("report"), &["first", "second"]).unwrap();
        replacement.method = Method::Entries;
        replacement.recover(Utf8Path::new("unused")).unwrap();
        assert_eq!(parent.report(), ["first", "second"]);
        assert!(parent.join("report/first").is_dir() && parent.join("report/second").is_file());
    }

    #[cfg(unix)]
    #[test]
    fn a_folder_in_a_parent_that_is_not_writable_is_replaced_entry_by_entry() {
        let parent = Parent::new();
        parent.replace("first").unwrap();
        write_new(&parent.join("report/notes.txt"), b"mine").unwrap();
        let mut replacement = FolderReplacement::begin(&parent.join("report"), &["first", "second"]).unwrap();
        // The superuser may write everywhere, so the method is chosen here.
        replacement.method = Method::Entries;
        let inside = parent.join("report/.tmp-replace");
        fs::remove_dir(&replacement.staging).unwrap();
        fs::create_dir(&inside).unwrap();
        replacement.staging = inside;
        write_new(&replacement.path().join("second"), b"").unwrap();
        replacement.publish().unwrap();
        assert_eq!((parent.report(), parent.entries()), (vec!["notes.txt".to_owned(), "second".to_owned()], 1));
    }

    #[cfg(unix)]
    #[test]
    fn a_symbolic_link_to_the_folder_stays_a_link() {
        let parent = Parent::new();
        parent.replace("first").unwrap();
        std::os::unix::fs::symlink(parent.join("report"), parent.join("link")).unwrap();
        let replacement = FolderReplacement::begin(&parent.join("link"), &["first"]).unwrap();
        write_new(&replacement.path().join("second"), b"").unwrap();
        replacement.publish().unwrap();
        assert!(parent.join("link").is_symlink());
        assert_eq!(parent.report(), ["second"]);
    }
}
