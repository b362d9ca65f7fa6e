//! Snapshots: random trees and changes, names of any bytes, and interruptions.

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::fs::{self, Permissions};
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _, symlink};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::thread;
use std::time::Duration;

use counterproof_contracts::rollback::snapshot::{
    SnapshotError, SnapshotLimits, SnapshotRefusal, SnapshotStart, plan, restore, take,
};
use counterproof_store::write::put_file;
use proptest::prelude::*;

use crate::kit::{Folder, worker};

/// Everything of a tree that a snapshot restores: kind, mode, time, and content or target.
type Tree = BTreeMap<PathBuf, (char, u32, (i64, i64), Vec<u8>)>;

fn tree(root: &Path) -> Tree {
    let (mut tree, mut open) = (Tree::new(), vec![root.to_owned()]);
    while let Some(path) = open.pop() {
        let metadata = fs::symlink_metadata(&path).unwrap();
        let time = (metadata.mtime(), metadata.mtime_nsec());
        let (kind, mode, content) = if metadata.is_symlink() {
            ('l', 0, fs::read_link(&path).unwrap().as_os_str().as_bytes().to_vec())
        } else if metadata.is_dir() {
            open.extend(fs::read_dir(&path).unwrap().map(|entry| entry.unwrap().path()));
            ('d', metadata.mode(), Vec::new())
        } else {
            ('f', metadata.mode(), fs::read(&path).unwrap_or_default())
        };
        tree.insert(path.strip_prefix(root).unwrap().to_owned(), (kind, mode, time, content));
    }
    tree
}

fn put(path: &Path, content: &[u8]) {
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    put_file(path, 0o644, &mut &*content).unwrap();
}

struct Kit {
    work: Folder,
    snapshots: Folder,
}

impl Kit {
    fn new() -> Self {
        Self { work: Folder::new(), snapshots: Folder::new() }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.work.path().join(name).into_std_path_buf()
    }

    fn take(&self, declared: &[&str]) -> Result<SnapshotStart, SnapshotError> {
        let declared: Vec<String> = declared.iter().map(|&path| path.to_owned()).collect();
        take(&self.work.path(), &declared, &self.snapshots.path().join("a/start"), SnapshotLimits::default())
    }
}

fn restored(start: &SnapshotStart) -> counterproof_contracts::rollback::snapshot::Restored {
    restore(start, SnapshotLimits::default()).unwrap().unwrap()
}

#[test]
fn files_folders_and_links_are_restored_and_what_was_there_is_kept() {
    let kit = Kit::new();
    put(&kit.path("src/lib.rs"), b"before");
    put(&kit.path("src/deleted.rs"), b"deleted");
    put(&kit.path("run.sh"), b"#!/bin/sh");
    fs::set_permissions(kit.path("run.sh"), Permissions::from_mode(0o750)).unwrap();
    symlink("lib.rs", kit.path("src/link")).unwrap();
    put(&kit.path("other.txt"), b"other");
    let start = kit.take(&["src", "run.sh", "new/made.txt"]).unwrap();
    assert_eq!((start.entries, start.bytes), (5, 22));
    let before = tree(kit.work.path().as_std_path());

    put(&kit.path("src/lib.rs"), b"after");
    put(&kit.path("src/added/deep.rs"), b"added");
    fs::remove_file(kit.path("src/deleted.rs")).unwrap();
    fs::remove_file(kit.path("src/link")).unwrap();
    symlink("/etc", kit.path("src/link")).unwrap();
    fs::set_permissions(kit.path("run.sh"), Permissions::from_mode(0o600)).unwrap();
    put(&kit.path("new/made.txt"), b"made");
    put(&kit.path("other.txt"), b"changed by others");
    let planned = plan(&start, SnapshotLimits::default()).unwrap().unwrap();
    assert_eq!(planned.removed, ["new/made.txt", "src/added", "src/added/deep.rs"]);
    assert_eq!(planned.restored, ["src/deleted.rs", "src/lib.rs", "src/link"]);
    assert_eq!(fs::read(kit.path("src/lib.rs")).unwrap(), b"after", "a plan changes nothing");

    let done = restored(&start);
    assert_eq!((&done.removed, &done.restored), (&planned.removed, &planned.restored));
    let mut after = tree(kit.work.path().as_std_path());
    assert_eq!(after.remove(Path::new("other.txt")).unwrap().3, b"changed by others");
    let mut expected = before;
    expected.remove(Path::new("other.txt"));
    // The working directory itself is not declared.
    for tree in [&mut after, &mut expected] {
        tree.remove(Path::new(""));
    }
    assert_eq!(after, expected);
    let saved = done.saved.unwrap();
    assert_eq!(fs::read(saved.join("files/src/lib.rs")).unwrap(), b"after");
    assert_eq!(fs::read(saved.join("files/new/made.txt")).unwrap(), b"made");
    assert_eq!(saved.parent().unwrap().metadata().unwrap().mode() & 0o777, 0o700, "copies are private");
    assert_eq!(
        restored(&start),
        counterproof_contracts::rollback::snapshot::Restored::default(),
        "nothing is left to do"
    );
}

#[test]
fn a_declared_link_to_a_folder_or_a_file_is_refused() {
    let kit = Kit::new();
    put(&kit.path("real/file"), b"before");
    symlink("real", kit.path("folder")).unwrap();
    symlink("real/file", kit.path("file")).unwrap();
    symlink("missing", kit.path("broken")).unwrap();
    for declared in ["folder", "file"] {
        let error = kit.take(&[declared]).unwrap_err();
        assert_eq!(error.code(), "invalid_path");
        let message = error.to_string();
        assert!(message.contains(declared) && message.contains("declare the real path"), "{message}");
    }
    assert_eq!(kit.take(&["broken", "real"]).unwrap().entries, 3);
}

#[test]
fn names_of_any_bytes_and_files_without_access_are_restored() {
    let kit = Kit::new();
    let odd = kit.path("d").join(OsStr::from_bytes(b"\xff\n\"name"));
    put(&odd, b"odd");
    put(&kit.path("d/secret"), b"secret");
    fs::set_permissions(kit.path("d"), Permissions::from_mode(0o555)).unwrap();
    let (start, before) = (kit.take(&["d"]).unwrap(), tree(&kit.path("d")));
    fs::set_permissions(kit.path("d"), Permissions::from_mode(0o755)).unwrap();
    put(&odd, b"changed");
    put(&kit.path("d").join(OsStr::from_bytes(b"\xfe")), b"added");
    fs::set_permissions(kit.path("d/secret"), Permissions::from_mode(0o000)).unwrap();
    fs::set_permissions(kit.path("d"), Permissions::from_mode(0o000)).unwrap();
    let done = restored(&start);
    assert_eq!(done.removed, ["d/\\xfe"]);
    assert_eq!(tree(&kit.path("d")), before);
    fs::set_permissions(kit.path("d"), Permissions::from_mode(0o755)).unwrap();
}

#[test]
fn special_files_are_refused_at_the_start_and_removed_at_the_end() {
    let kit = Kit::new();
    put(&kit.path("d/file"), b"x");
    let start = kit.take(&["d"]).unwrap();
    assert!(Command::new("mkfifo").arg(kit.path("d/pipe")).status().unwrap().success());
    let done = restored(&start);
    assert_eq!((done.removed, done.not_saved), (vec!["d/pipe".to_owned()], vec!["d/pipe".to_owned()]));
    assert!(Command::new("mkfifo").arg(kit.path("d/pipe")).status().unwrap().success());
    let error = take(&kit.work.path(), &["d".to_owned()], &kit.snapshots.path().join("b"), SnapshotLimits::default());
    assert_eq!(error.unwrap_err().code(), "special_file");
    assert!(!kit.snapshots.path().join("b").exists());
}

#[test]
fn a_parent_that_became_a_link_is_refused() {
    let kit = Kit::new();
    let outside = Folder::new();
    put(&kit.path("src/memory/pool.rs"), b"before");
    let start = kit.take(&["src/memory"]).unwrap();
    fs::remove_dir_all(kit.path("src")).unwrap();
    fs::create_dir(outside.path().join("memory")).unwrap();
    symlink(outside.path(), kit.path("src")).unwrap();
    let refusal = restore(&start, SnapshotLimits::default()).unwrap().unwrap_err();
    assert_eq!(refusal, SnapshotRefusal::ParentReplaced("src".to_owned()));
    assert_eq!(plan(&start, SnapshotLimits::default()).unwrap().unwrap_err().code(), "parent_replaced");
    assert!(fs::read_dir(outside.path().join("memory")).unwrap().next().is_none());
    assert!(matches!(kit.take(&["src/memory"]), Err(SnapshotError::Path { .. })));
}

#[test]
fn a_damaged_snapshot_changes_nothing() {
    for name in ["files/d/a", "manifest.json"] {
        let kit = Kit::new();
        put(&kit.path("d/a"), b"before");
        let start = kit.take(&["d"]).unwrap();
        put(&kit.path("d/a"), b"after");
        put(start.folder.join(name).as_std_path(), b"damaged");
        fs::set_permissions(kit.path("d"), Permissions::from_mode(0o500)).unwrap();
        let before = tree(&kit.path("d"));
        assert_eq!(restore(&start, SnapshotLimits::default()).unwrap_err().code(), "snapshot_damaged", "{name}");
        assert_eq!(tree(&kit.path("d")), before);
        fs::set_permissions(kit.path("d"), Permissions::from_mode(0o700)).unwrap();
    }
}

#[test]
fn limits_and_invalid_paths_are_errors() {
    let kit = Kit::new();
    put(&kit.path("d/a"), &[b'x'; 100]);
    put(&kit.path("d/b"), b"");
    let attempt = |bytes, entries| {
        let folder = kit.snapshots.path().join(format!("{bytes}-{entries}"));
        take(&kit.work.path(), &["d".to_owned()], &folder, SnapshotLimits { bytes, entries })
            .map_err(|error| error.to_string())
    };
    assert!(attempt(100, 3).is_ok());
    assert_eq!(attempt(99, 3).unwrap_err(), "the declared paths have more than 99 bytes; declare fewer paths");
    assert_eq!(
        attempt(100, 2).unwrap_err(),
        "the declared paths have more than 2 files and folders; declare fewer paths"
    );
    for path in ["../x", "/etc", "", "a//b"] {
        assert_eq!(kit.take(&[path]).unwrap_err().code(), "invalid_path", "{path}");
    }
    let inside =
        take(&kit.work.path(), &[".".to_owned()], &kit.work.path().join(".state/x"), SnapshotLimits::default());
    assert!(inside.unwrap_err().to_string().contains("holds the folder of the snapshots"));
    put(&kit.path("d/large"), &[b'x'; 1000]);
    let start = kit.take(&["d/a"]).unwrap();
    put(&kit.path("d/a"), &[b'y'; 1000]);
    fs::set_permissions(kit.path("d/a"), Permissions::from_mode(0o200)).unwrap();
    let before = tree(kit.work.path().as_std_path());
    let limits = SnapshotLimits { bytes: 500, entries: 10 };
    assert_eq!(restore(&start, limits).unwrap().unwrap_err().code(), "snapshot_too_large");
    assert!(tree(kit.work.path().as_std_path()) == before, "a refused restore changes nothing");
}

#[test]
fn a_restore_that_is_killed_is_completed_by_the_next() {
    let kit = Kit::new();
    for number in 0..150 {
        put(&kit.path(&format!("d/{}/{number}", number % 7)), format!("before {number}").as_bytes());
    }
    let (start, before) = (kit.take(&["d"]).unwrap(), tree(&kit.path("d")));
    for pause in 0..12 {
        for number in 0..150 {
            put(&kit.path(&format!("d/{}/{number}", number % 7)), format!("after {number} {pause}").as_bytes());
            put(&kit.path(&format!("d/new{}/{number}", number % 3)), b"new");
        }
        fs::remove_dir_all(kit.path("d/3")).unwrap();
        let mut process = Command::new(worker())
            .args(["restore", &serde_json::to_string(&start).unwrap()])
            .stdout(Stdio::null())
            .spawn()
            .unwrap();
        if pause == 11 {
            assert!(process.wait().unwrap().success(), "the process completes it alone");
        } else {
            thread::sleep(Duration::from_millis(4 * pause));
            process.kill().unwrap();
            process.wait().unwrap();
            restored(&start);
        }
        assert_eq!(tree(&kit.path("d")), before);
    }
}

/// A change of a tree, at a path.
#[derive(Debug, Clone)]
enum Change {
    Put(Vec<u8>),
    Link(String),
    Folder,
    Remove,
    Mode(u32),
}

fn change() -> impl Strategy<Value = (String, Change)> {
    let path =
        prop::collection::vec(prop::sample::select(vec!["a", "b", "c.rs"]), 1..4).prop_map(|names| names.join("/"));
    let change = prop_oneof![
        3 => prop::collection::vec(any::<u8>(), 0..20).prop_map(Change::Put),
        1 => prop::sample::select(vec!["a", "../b", "/nowhere", "."]).prop_map(|target| Change::Link(target.to_owned())),
        1 => Just(Change::Folder),
        2 => Just(Change::Remove),
        1 => prop::sample::select(vec![0o700, 0o755, 0o640, 0o444, 0o555]).prop_map(Change::Mode),
    ];
    (path, change)
}

/// Makes a change if the present tree allows it.
fn apply(root: &Path, path: &str, change: &Change) {
    let mut parent = root.to_owned();
    for name in Path::new(path).parent().into_iter().flat_map(Path::components) {
        parent.push(name);
        // Changes never go through a link: it leads elsewhere.
        if fs::symlink_metadata(&parent).is_ok_and(|found| !found.is_dir()) {
            return;
        }
    }
    let absolute = root.join(path);
    let found = fs::symlink_metadata(&absolute);
    let is_folder = found.as_ref().is_ok_and(fs::Metadata::is_dir);
    let _ = match change {
        Change::Mode(mode) if found.is_ok_and(|found| !found.is_symlink()) => {
            fs::set_permissions(&absolute, Permissions::from_mode(*mode))
        }
        Change::Remove if is_folder => fs::remove_dir_all(&absolute),
        Change::Remove => fs::remove_file(&absolute),
        Change::Mode(_) => Ok(()),
        _ if is_folder => Ok(()),
        Change::Folder => fs::create_dir_all(&absolute),
        Change::Put(content) => {
            fs::create_dir_all(&parent).and_then(|()| put_file(&absolute, 0o644, &mut &content[..]))
        }
        Change::Link(target) => {
            fs::create_dir_all(&parent).and_then(|()| counterproof_store::write::put_link(&absolute, target.as_ref()))
        }
    };
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn a_random_tree_is_restored_after_random_changes(
        first in prop::collection::vec(change(), 0..25),
        then in prop::collection::vec(change(), 0..25),
        declared in prop::sample::subsequence(vec!["a", "b", "c.rs", "a/b", "c.rs/a"], 1..5),
    ) {
        let kit = Kit::new();
        let root = kit.work.path();
        for (path, change) in &first {
            apply(root.as_std_path(), path, change);
        }
        // A declared path below a link is an error, and nothing to restore.
        if let Ok(start) = kit.take(&declared) {
            let kept = |tree: Tree| -> Tree {
                let is_declared = |path: &Path| declared.iter().any(|declared| path.starts_with(declared));
                tree.into_iter().filter(|(path, _)| is_declared(path)).collect()
            };
            let before = kept(tree(root.as_std_path()));
            for (path, change) in &then {
                apply(root.as_std_path(), path, change);
            }
            match restore(&start, SnapshotLimits::default()).unwrap() {
                Ok(_) => prop_assert_eq!(kept(tree(root.as_std_path())), before),
                Err(refusal) => prop_assert_eq!(refusal.code(), "parent_replaced"),
            }
        }
    }
}
