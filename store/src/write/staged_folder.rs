//! A folder that appears complete or not at all.

use std::fs;

use camino::{Utf8Path, Utf8PathBuf};

use super::WriteError;
use super::folders::{create_new_folder, parent_of, rename_folder, sync};
use super::leftovers::{claim_folder, remove_leftover_folders};
use crate::file_lock::FileLock;

/// A folder under construction, next to its target.
///
/// Its temporary name starts with [`TEMPORARY_PREFIX`](super::TEMPORARY_PREFIX), which readers of run folders skip, so one that
/// remains after a crash is harmless. Dropping it before [`StagedFolder::publish`] removes it. The next folder for the same
/// purpose in the same parent removes what killed processes have left.
///
/// ```
/// use counterproof_store::write::StagedFolder;
///
/// let parent = tempfile::tempdir()?;
/// let target = camino::Utf8Path::from_path(parent.path()).unwrap().join("run-1");
/// let mut staged = StagedFolder::create(&target, "copy")?;
/// assert!(staged.path().is_dir() && !target.exists());
/// staged.publish()?;
/// assert!(target.is_dir());
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct StagedFolder {
    path: Utf8PathBuf,
    target: Utf8PathBuf,
    is_published: bool,
    /// Released after the folder is removed or has its final name.
    _lock: FileLock,
}

impl StagedFolder {
    /// Creates an empty folder next to `target`, whose parent exists. `purpose` becomes a part of the temporary name.
    pub fn create(target: &Utf8Path, purpose: &str) -> Result<Self, WriteError> {
        Self::create_with(target, purpose, create_new_folder).map(|(staged, ())| staged)
    }

    /// Creates the folder with `create`, which gets the temporary path.
    pub fn create_with<T, E: From<WriteError>>(
        target: &Utf8Path,
        purpose: &str,
        create: impl FnOnce(&Utf8Path) -> Result<T, E>,
    ) -> Result<(Self, T), E> {
        let parent = parent_of(target);
        remove_leftover_folders(parent, purpose);
        let name = target.file_name().unwrap_or_default();
        let (path, lock) = claim_folder(parent, purpose, name).map_err(WriteError::at(target))?;
        // Owned before `create` starts, so that a folder that was created only in part is removed.
        let staged = Self { path, target: target.to_owned(), is_published: false, _lock: lock };
        let created = create(&staged.path)?;
        Ok((staged, created))
    }

    /// The temporary path, for filling the folder.
    pub fn path(&self) -> &Utf8Path {
        &self.path
    }

    /// Renames the folder to its target, which must not exist, and syncs the parent.
    pub fn publish(&mut self) -> Result<(), WriteError> {
        rename_folder(&self.path, &self.target)?;
        // Set before the sync: if that fails, the folder has its name and must not be removed by `drop`.
        self.is_published = true;
        sync(parent_of(&self.target))
    }

    /// Takes a published folder back: renames it to its temporary path.
    pub fn withdraw(&mut self) -> Result<(), WriteError> {
        rename_folder(&self.target, &self.path)?;
        self.is_published = false;
        sync(parent_of(&self.target))
    }
}

impl Drop for StagedFolder {
    fn drop(&mut self) {
        if !self.is_published {
            // The caller reports why the folder was not published; a failed removal adds nothing.
            let _ = fs::remove_dir_all(&self.path);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::write::{Durability, write};

    struct Parent(tempfile::TempDir);

    impl Parent {
        fn new() -> Self {
            Self(tempfile::tempdir().unwrap())
        }

        fn target(&self) -> Utf8PathBuf {
            Utf8Path::from_path(self.0.path()).unwrap().join("run-1")
        }

        fn entries(&self) -> usize {
            self.0.path().read_dir().unwrap().count()
        }
    }

    #[test]
    fn a_folder_that_is_not_published_is_removed() {
        let parent = Parent::new();
        let staged = StagedFolder::create(&parent.target(), "test").unwrap();
        write(&staged.path().join("a"), b"a", Durability::Cached).unwrap();
        assert!(staged.path().file_name().unwrap().starts_with(".tmp-counterproof-test-run-1-"));
        drop(staged);
        assert_eq!(parent.entries(), 0);
    }

    #[test]
    fn a_published_folder_stays_and_can_be_withdrawn() {
        let parent = Parent::new();
        let mut staged = StagedFolder::create(&parent.target(), "test").unwrap();
        write(&staged.path().join("a"), b"a", Durability::Cached).unwrap();
        staged.publish().unwrap();
        assert!(parent.target().join("a").is_file() && !staged.path().exists());
        staged.withdraw().unwrap();
        assert!(!parent.target().exists());
        drop(staged);
        assert_eq!(parent.entries(), 0);
    }

    #[test]
    fn a_target_with_content_is_not_replaced() {
        let parent = Parent::new();
        let mut staged = StagedFolder::create(&parent.target(), "test").unwrap();
        fs::create_dir_all(parent.target().join("theirs")).unwrap();
        assert!(staged.publish().is_err());
        drop(staged);
        assert!(parent.target().join("theirs").is_dir() && parent.entries() == 1);
    }

    #[test]
    fn owners_of_one_process_with_the_same_target_have_folders_of_their_own() {
        let parent = Parent::new();
        let first = StagedFolder::create(&parent.target(), "test").unwrap();
        let second = StagedFolder::create(&parent.target(), "test").unwrap();
        assert!(first.path() != second.path() && first.path().is_dir() && second.path().is_dir());
        drop((first, second));
        assert_eq!(parent.entries(), 0);
    }

    #[test]
    fn the_folder_of_a_dead_owner_is_removed_and_that_of_a_living_one_stays() {
        let parent = Parent::new();
        let living = StagedFolder::create(&parent.target(), "test").unwrap();
        // With a lock file, without one, and a lock file alone: an owner can be killed between any two steps.
        for name in ["test-run-1-7", "test-run-2-aB3dE6", "other-run-1-aB3dE6"] {
            create_new_folder(&parent.target().with_file_name(format!(".tmp-counterproof-{name}"))).unwrap();
        }
        for name in ["test-run-2-aB3dE6.lock", "test-run-3-aB3dE6.lock", "test-file"] {
            let name = format!(".tmp-counterproof-{name}");
            write(&parent.target().with_file_name(name), b"", Durability::Cached).unwrap();
        }
        drop(StagedFolder::create(&parent.target(), "test").unwrap());
        let mut names = parent.0.path().read_dir().unwrap().map(|it| it.unwrap().file_name()).collect::<Vec<_>>();
        names.retain(|name| !living.path().file_name().is_some_and(|own| name.to_str().unwrap().starts_with(own)));
        names.sort();
        assert_eq!(names, [".tmp-counterproof-other-run-1-aB3dE6", ".tmp-counterproof-test-file"]);
        assert!(living.path().is_dir());
    }

    #[test]
    fn folders_of_other_programs_stay() {
        let parent = Parent::new();
        for name in [".tmp-test-run-1-aB3dE6", ".tmp-test-mine"] {
            let folder = parent.target().with_file_name(name);
            create_new_folder(&folder).unwrap();
            write(&folder.join("file"), b"mine", Durability::Cached).unwrap();
        }
        write(&parent.target().with_file_name(".tmp-test-mine.lock"), b"", Durability::Cached).unwrap();
        drop(StagedFolder::create(&parent.target(), "test").unwrap());
        for name in [".tmp-test-run-1-aB3dE6/file", ".tmp-test-mine/file", ".tmp-test-mine.lock"] {
            assert!(parent.target().with_file_name(name).is_file(), "{name}");
        }
    }
}
