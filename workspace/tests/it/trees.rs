//! Random trees: what was saved is restored, byte for byte, in a new folder and in place.

use std::fs;
use std::os::unix::fs::{PermissionsExt as _, symlink};

use camino::Utf8Path;
use counterproof_store::write::{Durability, write};
use proptest::prelude::*;

use crate::kit::{Kit, take};

/// A change of one path. It replaces what is there.
#[derive(Debug, Clone)]
enum Change {
    File(String, Vec<u8>, bool),
    Link(String, String),
    Folder(String),
    Remove(String),
    Close(String),
}

fn path() -> impl Strategy<Value = String> {
    let name = prop::sample::select(vec!["a", "b", "c d", "ä\n", ".gitignore", "x.log"]);
    prop::collection::vec(name, 1..4).prop_map(|names| names.join("/"))
}

fn change() -> impl Strategy<Value = Change> {
    let content = prop::collection::vec(any::<u8>(), 0..20);
    prop_oneof![
        4 => (path(), content, any::<bool>()).prop_map(|(path, content, bit)| Change::File(path, content, bit)),
        1 => (path(), path()).prop_map(|(path, target)| Change::Link(path, target)),
        1 => path().prop_map(Change::Folder),
        2 => path().prop_map(Change::Remove),
        1 => path().prop_map(Change::Close),
    ]
}

fn remove(path: &Utf8Path) {
    match path.symlink_metadata() {
        Ok(found) if found.is_dir() => fs::remove_dir_all(path).unwrap(),
        Ok(_) => fs::remove_file(path).unwrap(),
        Err(_) => {}
    }
}

/// Makes room for a path: the folders above it are folders.
fn make_room(root: &Utf8Path, path: &str) -> camino::Utf8PathBuf {
    let full = root.join(path);
    let parents: Vec<_> = full.ancestors().skip(1).take_while(|parent| *parent != root).collect();
    for parent in parents.into_iter().rev() {
        if !parent.symlink_metadata().is_ok_and(|found| found.is_dir()) {
            remove(parent);
            fs::create_dir(parent).unwrap();
        }
    }
    remove(&full);
    full
}

fn apply(root: &Utf8Path, change: &Change) {
    match change {
        Change::File(path, content, is_executable) => {
            let full = make_room(root, path);
            write(&full, content, Durability::Cached).unwrap();
            let mode = if *is_executable { 0o755 } else { 0o644 };
            fs::set_permissions(&full, fs::Permissions::from_mode(mode)).unwrap();
        }
        Change::Link(path, target) => symlink(target, make_room(root, path)).unwrap(),
        Change::Folder(path) => fs::create_dir(make_room(root, path)).unwrap(),
        Change::Remove(path) => {
            let full = make_room(root, path);
            drop(full);
        }
        Change::Close(path) => {
            let full = root.join(path);
            // A mode without the executable bit of the owner for files, which a snapshot does not hold.
            if full.symlink_metadata().is_ok_and(|found| found.is_dir()) {
                fs::set_permissions(&full, fs::Permissions::from_mode(0o000)).unwrap();
            }
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { max_shrink_iters: 50, ..ProptestConfig::default() })]

    #[test]
    fn a_restored_workspace_is_equal_byte_for_byte(
        first in prop::collection::vec(change(), 0..12),
        second in prop::collection::vec(change(), 0..12),
    ) {
        // Without rules: which files are ignored is the subject of other tests.
        let is_rules = |change: &&Change| matches!(change, Change::File(path, ..) if path.ends_with(".gitignore"));
        let kit = Kit::new();
        fs::remove_file(kit.path("source/.gitignore")).unwrap();
        kit.commit("source", "no rules");
        let (repository, mut workspace) = kit.work();
        let work = kit.path("work");
        for change in first.iter().filter(|change| !is_rules(change)) {
            apply(&work, change);
        }
        let saved = take(&mut workspace, "1").unwrap();
        let before = kit.files("work");
        prop_assert!(saved.left_out.is_empty());
        for change in &second {
            apply(&work, change);
        }
        let later = take(&mut workspace, "2").unwrap();
        repository.restore(&saved, &work).unwrap();
        let mut restored = kit.files("work");
        // Files that the rules of the second state ignored are not ignored any more.
        prop_assert_eq!(&restored, &before);
        let mut workspace = repository.open(&work).unwrap();
        prop_assert_eq!(&take(&mut workspace, "3").unwrap(), &saved);
        repository.restore(&later, &kit.path("fork")).unwrap();
        let mut fork = repository.open(&kit.path("fork")).unwrap();
        prop_assert_eq!(&take(&mut fork, "4").unwrap().tree, &later.tree);
        repository.restore(&saved, &kit.path("fork")).unwrap();
        restored = kit.files("fork");
        prop_assert_eq!(&restored, &before);
    }
}
