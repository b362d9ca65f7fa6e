//! Restores of workspaces in hostile states.

use std::fs;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::{PermissionsExt as _, symlink};

use counterproof_workspace::{Snapshot, WorkspaceError};

use crate::kit::{Kit, listing, take};

type Change = fn(&Kit);

#[test]
fn a_restore_never_writes_through_links_and_removes_what_is_in_the_way() {
    let kit = Kit::new();
    kit.put("source/folder/a", "a\n").put("source/folder/inner/b", "b\n");
    kit.commit("source", "more");
    let (repository, mut workspace) = kit.work();
    let before = kit.files("work");
    let snapshot = take(&mut workspace, "1").unwrap();
    kit.put("outside/a", "outside\n").put("outside/inner/b", "outside\n");
    let outside = listing(&kit.path("outside"));
    let changes: [(&str, Change); 8] = [
        ("a link in the place of a folder", |kit| {
            fs::remove_dir_all(kit.path("work/folder")).unwrap();
            symlink(kit.path("outside"), kit.path("work/folder")).unwrap();
        }),
        ("a folder that was moved and linked", |kit| {
            kit.put("work/x.log/keep", "ignored");
            move_to(kit, "work/folder", "work/x.log/folder");
            symlink("x.log/folder", kit.path("work/folder")).unwrap();
        }),
        ("a link in the place of a file", |kit| {
            fs::remove_file(kit.path("work/kept.txt")).unwrap();
            symlink(kit.path("outside/a"), kit.path("work/kept.txt")).unwrap();
        }),
        ("a folder in the place of a file, and a file in that of a folder", |kit| {
            fs::remove_file(kit.path("work/kept.txt")).unwrap();
            kit.put("work/kept.txt/deep/er", "1");
            fs::remove_dir_all(kit.path("work/folder")).unwrap();
            kit.put("work/folder", "1");
        }),
        ("closed folders", |kit| {
            kit.put("work/new/inner/c", "1");
            for name in ["work/new/inner", "work/new", "work/folder/inner", "work/folder"] {
                fs::set_permissions(kit.path(name), fs::Permissions::from_mode(0o000)).unwrap();
            }
        }),
        ("a file of the state that is linked, and a broken git folder", |kit| {
            fs::remove_dir_all(kit.path("work/.git")).unwrap();
            symlink(kit.path("outside"), kit.path("work/.git")).unwrap();
        }),
        ("pipes", |kit| {
            fs::remove_file(kit.path("work/edited.txt")).unwrap();
            for name in ["work/edited.txt", "work/.gitattributes", "work/new-pipe"] {
                assert!(std::process::Command::new("mkfifo").arg(kit.path(name)).status().unwrap().success());
            }
        }),
        ("rules that ignore everything", |kit| {
            kit.put("work/.gitignore", "*\n").put("work/rest/.gitignore", "*\n").put("work/rest/a", "1");
        }),
    ];
    for (name, change) in changes {
        change(&kit);
        repository.restore(&snapshot, &kit.path("work")).unwrap_or_else(|error| panic!("{name}: {error}"));
        let mut files = kit.files("work");
        files.retain(|path, _| !path.starts_with(b"x.log/"));
        assert_eq!(files, before, "{name}");
        assert_eq!(listing(&kit.path("outside")), outside, "{name}");
        assert_eq!(kit.git("work", &["status", "--porcelain"]), "", "{name}");
    }
    // A link in the place of the whole workspace.
    move_to(&kit, "work", "elsewhere");
    symlink(kit.path("outside"), kit.path("work")).unwrap();
    repository.restore(&snapshot, &kit.path("work")).unwrap();
    assert_eq!((kit.files("work"), listing(&kit.path("outside"))), (before, outside));
}

fn move_to(kit: &Kit, from: &str, to: &str) {
    #[expect(clippy::disallowed_methods, reason = "an action of an agent")]
    fs::rename(kit.path(from), kit.path(to)).unwrap();
}

#[test]
fn names_with_any_bytes_are_saved_and_restored() {
    let kit = Kit::new();
    let (repository, mut workspace) = kit.work();
    for name in
        ["line\nend", "tab\t\"quote\"", "back\\slash", " space ", "ü", "-x", ":(top)", "A", "a", "*", "git~1", "\u{1}"]
    {
        kit.put(&format!("work/names/{name}"), name);
    }
    let odd = kit.path("work/names").as_std_path().join(std::ffi::OsStr::from_bytes(b"\xff\xfe"));
    fs::create_dir(&odd).unwrap();
    symlink(std::ffi::OsStr::from_bytes(b"target\xff\n"), odd.join(std::ffi::OsStr::from_bytes(b"\x80"))).unwrap();
    let before = kit.files("work");
    let snapshot = take(&mut workspace, "1").unwrap();
    repository.restore(&snapshot, &kit.path("fork")).unwrap();
    assert_eq!(kit.files("fork"), before);
    fs::remove_dir_all(kit.path("work/names")).unwrap();
    repository.restore(&snapshot, &kit.path("work")).unwrap();
    assert_eq!(kit.files("work"), before);
    let from = repository.changes(&kit.git("source", &["rev-parse", "HEAD^{tree}"]), &snapshot.tree).unwrap();
    assert_eq!(from.len(), 13);
    assert_eq!(repository.file_at(&snapshot.tree, "names/line\nend").unwrap(), Some(b"line\nend".to_vec()));
    assert_eq!(repository.file_at(&snapshot.tree, "names/*").unwrap(), Some(b"*".to_vec()));
    // An empty folder that a record cannot name is listed.
    fs::create_dir(kit.path("work").as_std_path().join(std::ffi::OsStr::from_bytes(b"\xff"))).unwrap();
    let mut workspace = repository.open(&kit.path("work")).unwrap();
    assert_eq!(take(&mut workspace, "2").unwrap().left_out.len(), 1);
}

#[test]
fn a_workspace_without_files_is_saved_and_restored() {
    let kit = Kit::new();
    let (repository, mut workspace) = kit.work();
    for path in [".gitignore", "edited.txt", "gone.txt", "kept.txt", "link"] {
        fs::remove_file(kit.path("work").join(path)).unwrap();
    }
    fs::remove_dir_all(kit.path("work/folder")).unwrap();
    let empty = take(&mut workspace, "1").unwrap();
    kit.put("work/a", "1");
    let one = take(&mut workspace, "2").unwrap();
    repository.restore(&empty, &kit.path("work")).unwrap();
    assert!(kit.files("work").is_empty());
    repository.restore(&empty, &kit.path("fork")).unwrap();
    assert!(kit.files("fork").is_empty());
    repository.restore(&one, &kit.path("work")).unwrap();
    assert_eq!(kit.files("work").len(), 1);
}

#[test]
fn submodules_stay_submodules_while_they_are_empty() {
    let kit = Kit::new();
    kit.git(".", &["init", "--quiet", "library"]);
    kit.put("library/lib.txt", "lib\n");
    kit.commit("library", "library");
    kit.git("source", &["submodule", "--quiet", "add", kit.path("library").as_str(), "vendor/library"]);
    kit.commit("source", "submodule");
    let (repository, mut workspace) = kit.work();
    assert!(kit.path("work/vendor/library").is_dir());
    let base = kit.git("source", &["rev-parse", "HEAD^{tree}"]);
    let empty = take(&mut workspace, "1").unwrap();
    assert_eq!((empty.tree.as_str(), empty.empty_folders.len()), (base.as_str(), 0));
    kit.put("work/vendor/library/lib.txt", "mine\n");
    let filled = take(&mut workspace, "2").unwrap();
    assert_eq!(repository.file_at(&filled.tree, "vendor/library/lib.txt").unwrap(), Some(b"mine\n".to_vec()));
    assert_eq!(repository.publishable_tree(&filled).unwrap(), base);
    repository.restore(&empty, &kit.path("work")).unwrap();
    assert!(!kit.path("work/vendor/library/lib.txt").exists() && kit.path("work/vendor/library").is_dir());
    let mut workspace = repository.open(&kit.path("work")).unwrap();
    assert_eq!(take(&mut workspace, "3").unwrap().tree, base);
    repository.restore(&filled, &kit.path("work")).unwrap();
    fs::remove_file(kit.path("work/vendor/library/lib.txt")).unwrap();
    let mut workspace = repository.open(&kit.path("work")).unwrap();
    assert_eq!(take(&mut workspace, "4").unwrap().tree, base);
    // The submodule of a source is a source of its own.
    let start = kit.store().import(kit.path("source/vendor/library").as_str(), None).unwrap();
    assert_eq!(start.commit, kit.git("library", &["rev-parse", "HEAD"]));
}

#[test]
fn a_record_with_hostile_names_is_refused() {
    let kit = Kit::new();
    let (repository, mut workspace) = kit.work();
    let snapshot = take(&mut workspace, "1").unwrap();
    for folder in ["../x", "/tmp/x", ".git/hooks", "a/../../x", "", "a/.GIT"] {
        let hostile = Snapshot { empty_folders: vec![folder.to_owned()], ..snapshot.clone() };
        assert!(repository.restore(&hostile, &kit.path("fork")).is_err(), "{folder}");
        assert!(!kit.path("fork").exists(), "{folder}");
    }
    let hostile = Snapshot { tree: "--help".to_owned(), ..snapshot.clone() };
    assert!(matches!(repository.restore(&hostile, &kit.path("fork")), Err(WorkspaceError::InvalidObject(_))));
    assert!(
        serde_json::from_str::<Snapshot>(
            &serde_json::to_string(&snapshot).unwrap().replace(repository.id().as_str(), "../x")
        )
        .is_err()
    );
    assert!(matches!(repository.create(&snapshot.base, &kit.path("work")), Err(WorkspaceError::Exists(_))));
}
