//! Tests of staged folders: publication, leftovers of killed processes, and concurrent writers.

use super::*;
use crate::write::{Durability, write, write_new};

fn own() -> Vec<String> {
    ["first", "second"].map(str::to_owned).to_vec()
}

struct Parent(tempfile::TempDir);

impl Parent {
    fn new() -> Self {
        Self(tempfile::tempdir().unwrap())
    }

    fn join(&self, name: &str) -> Utf8PathBuf {
        Utf8Path::from_path(self.0.path()).unwrap().canonicalize_utf8().unwrap().join(name)
    }

    /// Replaces the folder by one with a single file.
    fn replace(&self, name: &str) -> Result<(), SiteError> {
        let replacement = StagedFolder::replacing(&self.join("report"), &["first", "second"])?;
        write_new(&replacement.path().join(name), b"").unwrap();
        Ok(replacement.publish()?)
    }

    fn report(&self) -> Vec<String> {
        let mut names = names_in(&self.join("report")).unwrap();
        names.sort();
        names
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
    let staged = StagedFolder::new(&parent.target(), "test").unwrap();
    write(&staged.path().join("a"), b"a", Durability::Cached).unwrap();
    assert!(staged.path().file_name().unwrap().starts_with(".tmp-counterproof-test-run-1-"));
    drop(staged);
    assert_eq!(parent.entries(), 0);
}

#[test]
fn a_published_folder_stays_and_can_be_withdrawn() {
    let parent = Parent::new();
    let staged = StagedFolder::new(&parent.target(), "test").unwrap();
    write(&staged.path().join("a"), b"a", Durability::Cached).unwrap();
    staged.place().unwrap();
    assert!(parent.target().join("a").is_file() && !staged.path().exists());
    staged.withdraw().unwrap();
    assert!(!parent.target().exists());
    drop(staged);
    assert_eq!(parent.entries(), 0);
}

#[test]
fn a_target_with_content_is_not_replaced() {
    let parent = Parent::new();
    let staged = StagedFolder::new(&parent.target(), "test").unwrap();
    fs::create_dir_all(parent.target().join("theirs")).unwrap();
    assert!(staged.publish().is_err());
    assert!(parent.target().join("theirs").is_dir() && parent.entries() == 1);
}

#[test]
fn owners_of_one_process_with_the_same_target_have_folders_of_their_own() {
    let parent = Parent::new();
    let first = StagedFolder::new(&parent.target(), "test").unwrap();
    let second = StagedFolder::new(&parent.target(), "test").unwrap();
    assert!(first.path() != second.path() && first.path().is_dir() && second.path().is_dir());
    drop((first, second));
    assert_eq!(parent.entries(), 0);
}

#[test]
fn the_folder_of_a_dead_owner_is_removed_and_that_of_a_living_one_stays() {
    let parent = Parent::new();
    let living = StagedFolder::new(&parent.target(), "test").unwrap();
    // With a lock file, without one, and a lock file alone: an owner can be killed between any two steps.
    for name in ["test-run-1-7", "test-run-2-aB3dE6", "other-run-1-aB3dE6"] {
        create_new_folder(&parent.target().with_file_name(format!(".tmp-counterproof-{name}"))).unwrap();
    }
    for name in ["test-run-2-aB3dE6.lock", "test-run-3-aB3dE6.lock", "test-file"] {
        let name = format!(".tmp-counterproof-{name}");
        write(&parent.target().with_file_name(name), b"", Durability::Cached).unwrap();
    }
    drop(StagedFolder::new(&parent.target(), "test").unwrap());
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
    drop(StagedFolder::new(&parent.target(), "test").unwrap());
    for name in [".tmp-test-run-1-aB3dE6/file", ".tmp-test-mine/file", ".tmp-test-mine.lock"] {
        assert!(parent.target().with_file_name(name).is_file(), "{name}");
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
fn a_version_that_is_not_published_changes_nothing() {
    let parent = Parent::new();
    parent.replace("first").unwrap();
    drop(StagedFolder::replacing(&parent.join("report"), &["first"]).unwrap());
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
fn a_failed_publication_keeps_the_files_of_the_user() {
    let parent = Parent::new();
    parent.replace("first").unwrap();
    write_new(&parent.join("report/notes.txt"), b"mine").unwrap();
    let replacement = StagedFolder::replacing(&parent.join("report"), &["first", "second"]).unwrap();
    write_new(&replacement.path().join("second"), b"").unwrap();
    replacement.exchange_folders().unwrap();
    // What failed may succeed when the folder is dropped.
    drop(replacement);
    assert_eq!((parent.report(), parent.entries()), (vec!["notes.txt".to_owned(), "second".to_owned()], 1));

    let replacement = StagedFolder::replacing(&parent.join("report"), &["first", "second"]).unwrap();
    replacement.exchange_folders().unwrap();
    fs::remove_dir_all(parent.join("report")).unwrap();
    drop(replacement);
    assert!(parent.join(".tmp-replace-report/notes.txt").is_file(), "the target is gone, so nothing can be moved");
    fs::create_dir(parent.join("report")).unwrap();
    parent.replace("second").unwrap();
    assert_eq!((parent.report(), parent.entries()), (vec!["notes.txt".to_owned(), "second".to_owned()], 1));
}

#[test]
fn files_of_the_user_in_an_old_version_that_is_aside_stay() {
    let parent = Parent::new();
    parent.replace("second").unwrap();
    fs::create_dir(parent.join(".tmp-replaced-report")).unwrap();
    write_new(&parent.join(".tmp-replaced-report/first"), b"").unwrap();
    write_new(&parent.join(".tmp-replaced-report/notes.txt"), b"mine").unwrap();
    parent.replace("second").unwrap();
    assert_eq!((parent.report(), parent.entries()), (vec!["notes.txt".to_owned(), "second".to_owned()], 1));
}

#[cfg(target_os = "linux")]
#[test]
fn files_whose_names_are_not_utf_8_stay() {
    use std::os::unix::ffi::OsStrExt as _;

    let parent = Parent::new();
    parent.replace("first").unwrap();
    let mine = parent.join("report").as_std_path().join(std::ffi::OsStr::from_bytes(b"mine-\xff"));
    fs::create_dir(&mine).unwrap();
    parent.replace("second").unwrap();
    assert!(mine.is_dir());
}

#[test]
fn a_second_writer_is_refused_while_the_first_one_is_active() {
    let parent = Parent::new();
    let first = StagedFolder::replacing(&parent.join("report"), &[]).unwrap();
    assert!(matches!(parent.replace("second"), Err(SiteError::Busy(_))));
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
    let replacement = StagedFolder::replacing(&parent.join("report"), &["first", "second", "cases"]).unwrap();
    write_new(&replacement.path().join("second"), b"").unwrap();
    replacement.publish().unwrap();
    assert_eq!((parent.report(), parent.entries()), (vec!["notes.txt".to_owned(), "second".to_owned()], 1));
}

#[test]
fn an_old_version_that_was_only_moved_aside_comes_back() {
    let parent = Parent::new();
    fs::create_dir(parent.join(".tmp-replaced-report")).unwrap();
    write_new(&parent.join(".tmp-replaced-report/first"), b"").unwrap();
    drop(StagedFolder::replacing(&parent.join("report"), &["first"]).unwrap());
    assert_eq!((parent.report(), parent.entries()), (vec!["first".to_owned()], 1));
}

#[test]
fn entries_of_an_old_version_that_were_only_moved_aside_come_back() {
    let parent = Parent::new();
    for name in [".tmp-replaced-first", ".tmp-replaced-second"] {
        fs::create_dir_all(parent.join("report").join(name)).unwrap();
    }
    write_new(&parent.join("report/second"), b"new").unwrap();
    let mut replacement = StagedFolder::replacing(&parent.join("report"), &["first", "second"]).unwrap();
    replacement.publication = Publication::ExchangeEntries { own: own() };
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
    let mut replacement = StagedFolder::replacing(&parent.join("report"), &["first", "second"]).unwrap();
    // The superuser may write everywhere, so the method is chosen here.
    replacement.publication = Publication::ExchangeEntries { own: own() };
    let inside = parent.join("report/.tmp-replace");
    fs::remove_dir(&replacement.path).unwrap();
    fs::create_dir(&inside).unwrap();
    replacement.path = inside;
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
    let replacement = StagedFolder::replacing(&parent.join("link"), &["first"]).unwrap();
    write_new(&replacement.path().join("second"), b"").unwrap();
    replacement.publish().unwrap();
    assert!(parent.join("link").is_symlink());
    assert_eq!(parent.report(), ["second"]);
}
