//! What a snapshot holds and leaves out, and what it costs.

use std::fs;
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::os::unix::net::UnixListener;

use counterproof_workspace::{CHECKPOINTS, SnapshotOptions, WorkspaceError};

use crate::kit::{Entry, Kit, snapshot_options, take};

#[test]
fn a_snapshot_holds_staged_unstaged_and_untracked_files_links_modes_and_empty_folders() {
    let kit = Kit::new();
    let (repository, mut workspace) = kit.work();
    assert_eq!(kit.files("work"), kit.files("source"));
    kit.put("work/staged.txt", "staged\n");
    kit.git("work", &["add", "staged.txt"]);
    kit.put("work/staged.txt", "staged, then changed\n")
        .put("work/new/deep/file", "new\n")
        .put("work/edited.txt", "1\n");
    fs::remove_file(kit.path("work/gone.txt")).unwrap();
    fs::remove_file(kit.path("work/link")).unwrap();
    symlink("/nowhere", kit.path("work/link")).unwrap();
    fs::set_permissions(kit.path("work/kept.txt"), fs::Permissions::from_mode(0o755)).unwrap();
    fs::create_dir_all(kit.path("work/empty/inner")).unwrap();
    let before = kit.files("work");
    let snapshot = take(&mut workspace, "s/1").unwrap();
    assert_eq!(
        (snapshot.empty_folders.as_slice(), snapshot.left_out.as_slice()),
        (&["empty/inner".to_owned()][..], &[][..])
    );
    repository.restore(&snapshot, &kit.path("fork")).unwrap();
    assert_eq!(kit.files("fork"), before);
    // The agent's index has the staged file still: a snapshot changes nothing.
    assert_eq!(kit.git("work", &["diff", "--name-only", "--cached"]), "staged.txt");
    assert_eq!(repository.file_at(&snapshot.commit, "edited.txt").unwrap(), Some(b"1\n".to_vec()));
    assert_eq!(repository.file_at(&snapshot.tree, "link").unwrap(), Some(b"/nowhere".to_vec()));
    assert_eq!(repository.file_at(&snapshot.tree, "new").unwrap(), None);
    assert_eq!(repository.file_at(&snapshot.tree, "gone.txt").unwrap(), None);
}

#[test]
fn changes_since_a_snapshot_are_found_and_not_stored() {
    let kit = Kit::new();
    let (repository, mut workspace) = kit.work();
    kit.put("work/mine.txt", "mine\n");
    let snapshot = take(&mut workspace, "s/1").unwrap();
    assert!(!workspace.has_changed_since(&snapshot).unwrap());
    let before = crate::kit::files(repository.path());
    for name in ["work/output.txt", "work/mine.txt"] {
        kit.put(name, "output\n");
        assert!(workspace.has_changed_since(&snapshot).unwrap(), "{name}");
        workspace = repository.restore(&snapshot, &kit.path("work")).unwrap();
        assert!(!workspace.has_changed_since(&snapshot).unwrap(), "{name}");
    }
    fs::create_dir(kit.path("work/empty")).unwrap();
    assert!(workspace.has_changed_since(&snapshot).unwrap());
    assert!(crate::kit::files(repository.path()) == before);
}

#[test]
fn git_works_in_a_workspace_and_adds_nothing_to_the_store() {
    let kit = Kit::new();
    kit.git("source", &["tag", "v1"]);
    let (repository, _) = kit.work();
    assert_eq!(kit.git("work", &["status", "--porcelain"]), "");
    assert_eq!(kit.git("work", &["describe", "--tags"]), "v1");
    // Not the times: git sets those of a pack that has an object already.
    let names = || crate::kit::files(repository.path());
    let before = names();
    kit.put("work/new.txt", "new\n");
    kit.commit("work", "mine");
    assert_eq!(kit.git("work", &["log", "--format=%s"]), "mine\nstart");
    assert!(names() == before);
}

#[test]
fn ignored_files_are_left_out_unless_they_are_tracked_or_named() {
    let kit = Kit::new();
    kit.put("source/build/tracked.txt", "tracked\n");
    kit.git("source", &["add", "--force", "build/tracked.txt"]);
    kit.commit("source", "tracked");
    kit.put("source/.git/info/exclude", "*.secret\n");
    let (repository, mut workspace) = kit.work();
    kit.put("work/build/tracked.txt", "changed\n")
        .put("work/build/out.bin", "1")
        .put("work/a.log", "1")
        .put("work/b.secret", "1");
    kit.put("work/folder/x.tmp", "1").put("work/folder/kept.tmp", "1").put("work/c.tmp", "1").put("work/d.log/e", "1");
    let paths = |tree: &str| {
        let listed = kit.git("work", &["ls-tree", "-r", "--name-only", tree]);
        listed.lines().map(str::to_owned).collect::<Vec<_>>()
    };
    let tracked = [".gitignore", "build/tracked.txt", "edited.txt", "folder/.gitignore"];
    let rest = ["folder/tool.sh", "gone.txt", "kept.txt", "link"];
    let snapshot = take(&mut workspace, "1").unwrap();
    let mut expected = [&tracked[..], &rest, &["c.tmp", "folder/kept.tmp"]].concat();
    expected.sort_unstable();
    assert_eq!(paths(&snapshot.tree), expected);
    assert_eq!(repository.file_at(&snapshot.tree, "build/tracked.txt").unwrap(), Some(b"changed\n".to_vec()));
    let include_ignored = vec!["build/".to_owned(), "./d.log".to_owned(), "b.secret".to_owned()];
    let options = SnapshotOptions { include_ignored, ..snapshot_options("2") };
    let snapshot = workspace.snapshot(&options).unwrap();
    expected.extend(["build/out.bin", "d.log/e", "b.secret"]);
    expected.sort_unstable();
    assert_eq!(paths(&snapshot.tree), expected);
    // Ignored files are kept, and the named ones are as in the snapshot.
    fs::remove_file(kit.path("work/build/out.bin")).unwrap();
    kit.put("work/build/later.bin", "1").put("work/a.log", "2");
    let before = kit.files("work");
    repository.restore(&snapshot, &kit.path("work")).unwrap();
    let mut expected = before;
    expected.remove(b"build/later.bin".as_slice());
    expected.insert(b"build/out.bin".to_vec(), Entry::File { content: b"1".to_vec(), is_executable: false });
    assert_eq!(kit.files("work"), expected);
}

#[test]
fn nested_repositories_are_saved_as_files_and_their_git_folders_and_special_files_are_listed() {
    let kit = Kit::new();
    let (repository, mut workspace) = kit.work();
    kit.git("work", &["init", "--quiet", "nested"]);
    kit.put("work/nested/a.txt", "a\n");
    kit.commit("work/nested", "inner");
    let _socket = UnixListener::bind(kit.path("work/socket")).unwrap();
    assert!(std::process::Command::new("mkfifo").arg(kit.path("work/pipe")).status().unwrap().success());
    // Pipes in the place of files that git reads would make it wait.
    fs::remove_file(kit.path("work/folder/.gitignore")).unwrap();
    for name in ["work/.gitattributes", "work/folder/.gitignore"] {
        assert!(std::process::Command::new("mkfifo").arg(kit.path(name)).status().unwrap().success());
    }
    let snapshot = take(&mut workspace, "1").unwrap();
    let left_out: Vec<&str> = snapshot.left_out.iter().map(|left_out| left_out.path.as_str()).collect();
    assert_eq!(left_out, [".gitattributes", "folder/.gitignore", "nested/.git", "pipe", "socket"]);
    assert_eq!(repository.file_at(&snapshot.tree, "nested/a.txt").unwrap(), Some(b"a\n".to_vec()));
    repository.restore(&snapshot, &kit.path("work")).unwrap();
    // The git folder that the snapshot lists is kept.
    assert_eq!(kit.git("work/nested", &["log", "--format=%s"]), "inner");
    repository.restore(&snapshot, &kit.path("fork")).unwrap();
    let mut files = kit.files("work");
    files.retain(|path, _| !path.starts_with(b"nested/.git/"));
    assert_eq!(kit.files("fork"), files);
}

#[test]
fn bytes_are_saved_as_they_are_and_no_program_of_the_workspace_runs() {
    let kit = Kit::new();
    kit.put("source/.gitattributes", "*.txt text eol=crlf\n*.bin filter=evil ident\n");
    kit.commit("source", "attributes");
    let (repository, mut workspace) = kit.work();
    let marker = kit.path("ran");
    let evil = format!("touch {marker}; cat");
    for name in ["filter.evil.clean", "filter.evil.smudge", "core.fsmonitor", "core.sshCommand", "core.pager"] {
        kit.git("work", &["config", name, &evil]);
    }
    for hook in ["post-checkout", "reference-transaction", "post-index-change", "pre-commit"] {
        kit.put(&format!("work/.git/hooks/{hook}"), &format!("#!/bin/sh\n{evil}\n"));
        let path = kit.path(&format!("work/.git/hooks/{hook}"));
        fs::set_permissions(path, fs::Permissions::from_mode(0o755)).unwrap();
    }
    kit.put("work/a.txt", "a\r\nb\nc\r\n").put("work/b.bin", "$Id$\n").put("work/kept.txt", "x\r\n");
    let before = kit.files("work");
    let snapshot = take(&mut workspace, "1").unwrap();
    repository.restore(&snapshot, &kit.path("fork")).unwrap();
    assert_eq!(kit.files("fork"), before);
    repository.restore(&snapshot, &kit.path("work")).unwrap();
    assert!(!marker.exists());
    // The agent's own git sees the same bytes.
    assert_eq!(kit.git("fork", &["diff", "--name-only"]), "kept.txt");
    assert!(!kit.path("work/.git/hooks/post-checkout").exists(), "the git folder of the agent is new");
}

#[test]
fn unreadable_files_and_folders_are_saved() {
    let kit = Kit::new();
    let (repository, mut workspace) = kit.work();
    kit.put("work/closed/file", "1\n").put("work/private", "2\n");
    let before = kit.files("work");
    let close = |name: &str, mode| fs::set_permissions(kit.path(name), fs::Permissions::from_mode(mode)).unwrap();
    close("work/private", 0);
    close("work/closed/file", 0);
    close("work/closed", 0);
    close("work/folder", 0o500);
    let snapshot = take(&mut workspace, "1").unwrap();
    assert_eq!(snapshot.left_out, []);
    repository.restore(&snapshot, &kit.path("fork")).unwrap();
    assert_eq!(kit.files("fork"), before);
    repository.restore(&snapshot, &kit.path("work")).unwrap();
}

#[test]
fn too_much_new_content_is_refused_with_the_largest_files() {
    let kit = Kit::new();
    let (_, mut workspace) = kit.work();
    kit.put("work/data/large.bin", &"x".repeat(5000)).put("work/small", "x");
    let options = SnapshotOptions { max_bytes: 5000, ..snapshot_options("1") };
    let error = workspace.snapshot(&options).unwrap_err();
    let WorkspaceError::TooLarge { limit: 5000, largest, .. } = &error else { panic!("{error}") };
    assert!(largest.starts_with("`data/large.bin` (5000 bytes), "), "{largest}");
    // Files that the last snapshot has do not count.
    take(&mut workspace, "2").unwrap();
    kit.put("work/small", "y");
    workspace.snapshot(&options).unwrap();
}

#[test]
fn equal_workspaces_have_equal_commits_and_an_unchanged_one_adds_no_objects() {
    let kit = Kit::new();
    let (repository, mut workspace) = kit.work();
    let mut fork = repository.create(workspace.base(), &kit.path("fork")).unwrap();
    kit.put("work/a", "1").put("fork/a", "0");
    take(&mut fork, "f/1").unwrap();
    kit.put("fork/a", "1");
    let snapshot = take(&mut workspace, "1").unwrap();
    assert_eq!(take(&mut fork, "f/2").unwrap(), snapshot);
    let objects = || kit.git("work", &["-C", repository.path().as_str(), "count-objects", "-v"]);
    let before = objects();
    for number in 2..5 {
        assert_eq!(take(&mut workspace, &number.to_string()).unwrap(), snapshot);
    }
    assert_eq!(objects(), before);
    let commit = |name: &str| kit.git("work", &["-C", repository.path().as_str(), "rev-parse", name]);
    let reference = format!("refs/counterproof/checkpoints/4/{}", snapshot.commit);
    assert_eq!(commit(&reference), snapshot.commit);
    assert_eq!(commit(&format!("{reference}^")), snapshot.base);
}

#[test]
fn a_change_that_keeps_size_and_time_is_found() {
    let kit = Kit::new();
    let (repository, mut workspace) = kit.work();
    for number in 0..20 {
        let text = format!("{number:04}");
        kit.put("work/a", &text);
        let old = std::time::SystemTime::UNIX_EPOCH;
        #[expect(clippy::disallowed_methods, reason = "sets a time")]
        let file = fs::OpenOptions::new().write(true).open(kit.path("work/a")).unwrap();
        file.set_modified(old).unwrap();
        let snapshot = take(&mut workspace, "1").unwrap();
        assert_eq!(repository.file_at(&snapshot.tree, "a").unwrap(), Some(text.into_bytes()));
    }
}

#[test]
fn many_snapshots_stay_small_and_all_can_be_restored_after_a_garbage_collection() {
    let kit = Kit::new();
    for number in 0..300 {
        kit.put(&format!("source/flat/{number:04}.txt"), "x\n");
    }
    kit.commit("source", "flat");
    let (repository, mut workspace) = kit.work();
    // The lock of another process that may be at work: it stays, and only keeps the references from being combined.
    let lock = format!("store/{}.git/packed-refs.lock", repository.id());
    kit.put(&lock, "");
    let mut snapshots = Vec::new();
    for number in 0..60 {
        kit.put("work/flat/0001.txt", &format!("{number}\n"));
        snapshots.push((number, take(&mut workspace, "session").unwrap()));
    }
    let packs = fs::read_dir(repository.path().join("objects/pack")).unwrap().count();
    assert!(packs < 60, "{packs}");
    fs::remove_file(kit.path(&lock)).unwrap();
    let last = &snapshots.last().unwrap().1;
    assert_eq!(take(&mut workspace, "session").unwrap(), *last);
    let git = |arguments: &[&str]| kit.git(&format!("store/{}.git", repository.id()), arguments);
    let references = git(&["for-each-ref", "--format=%(objectname)", "refs/counterproof/checkpoints/session/"]);
    // Those of the snapshots, and the newest.
    assert_eq!(references.lines().count(), 61);
    git(&["gc", "--quiet", "--prune=now"]);
    for (number, snapshot) in &snapshots {
        let content = repository.file_at(&snapshot.tree, "flat/0001.txt").unwrap();
        assert_eq!(content, Some(format!("{number}\n").into_bytes()));
    }
    repository.restore(&snapshots[3].1, &kit.path("work")).unwrap();
    assert_eq!(fs::read_to_string(kit.path("work/flat/0001.txt")).unwrap(), "3\n");
}

#[test]
fn released_snapshots_take_no_space_and_those_of_others_stay() {
    let kit = Kit::new();
    let (repository, mut workspace) = kit.work();
    let [released, kept] = ["session", "fork"].map(|session| {
        kit.put("work/new.txt", session);
        take(&mut workspace, session).unwrap()
    });
    kit.store().release(&format!("{CHECKPOINTS}session/")).unwrap();
    kit.store().compact().unwrap();
    assert_eq!(repository.file_at(&kept.tree, "new.txt").unwrap().as_deref(), Some(&b"fork"[..]));
    assert!(repository.file_at(&released.tree, "new.txt").is_err());
}

#[test]
fn several_processes_can_take_snapshots_at_the_same_time() {
    let kit = Kit::new();
    let (repository, _) = kit.work();
    let base = kit.git("source", &["rev-parse", "HEAD"]);
    std::thread::scope(|scope| {
        for worker in 0..4 {
            let (repository, base, kit) = (&repository, &base, &kit);
            scope.spawn(move || {
                let name = format!("fork{worker}");
                let mut workspace = repository.create(base, &kit.path(&name)).unwrap();
                for number in 0..10 {
                    kit.put(&format!("{name}/a"), &format!("{worker} {number}"));
                    let snapshot = take(&mut workspace, &format!("{worker}/{number}")).unwrap();
                    let content = repository.file_at(&snapshot.tree, "a").unwrap();
                    assert_eq!(content, Some(format!("{worker} {number}").into_bytes()));
                }
            });
        }
    });
}

#[test]
fn locks_and_files_of_killed_processes_do_not_block() {
    let kit = Kit::new();
    let (repository, mut workspace) = kit.work();
    let reference = repository.path().join("refs/counterproof/checkpoints/1/newest");
    take(&mut workspace, "1").unwrap();
    kit.put("work/a", "1");
    for lock in [
        format!("{reference}.lock"),
        format!("{}.lock", repository.path()),
        format!("{}/packs.lock", repository.path()),
    ] {
        counterproof_store::write::write(lock.as_str().into(), b"", counterproof_store::write::Durability::Cached)
            .unwrap();
    }
    kit.put(&format!("store/{}.git/objects/pack/tmp_pack_x", repository.id()), "half");
    let snapshot = take(&mut workspace, "1").unwrap();
    assert_eq!(repository.file_at(&snapshot.tree, "a").unwrap(), Some(b"1".to_vec()));
    kit.store().import(kit.path("source").as_str(), None).unwrap();
    // An interrupted restore has removed the state: the workspace has to be restored again.
    fs::remove_file(kit.path("work.state")).unwrap();
    assert!(matches!(repository.open(&kit.path("work")), Err(WorkspaceError::NotAWorkspace(_))));
    kit.put("work/a", "half");
    repository.restore(&snapshot, &kit.path("work")).unwrap();
    let mut workspace = repository.open(&kit.path("work")).unwrap();
    assert_eq!(take(&mut workspace, "2").unwrap().tree, snapshot.tree);
}

#[test]
fn references_and_objects_with_other_names_are_refused() {
    let kit = Kit::new();
    let (repository, mut workspace) = kit.work();
    let base = workspace.base().to_owned();
    for reference in
        ["refs/heads/main", "refs/counterproof/checkpoints/../../heads/main", "refs/counterproof/checkpoints/a b"]
    {
        let options = SnapshotOptions { reference: reference.to_owned(), ..snapshot_options("1") };
        assert!(matches!(workspace.snapshot(&options), Err(WorkspaceError::InvalidReference(_))), "{reference}");
    }
    assert!(matches!(repository.keep("refs/heads/x", &base), Err(WorkspaceError::InvalidReference(_))));
    assert!(matches!(repository.file_at("--help", "a"), Err(WorkspaceError::InvalidObject(_))));
    repository.keep("refs/counterproof/sessions/1", &base).unwrap();
    repository.release("refs/counterproof/sessions/1").unwrap();
    repository.release("refs/counterproof/sessions/1").unwrap();
}
