//! Commits, differences and bundles.

use counterproof_workspace::{Author, ChangeKind, FileStat, Snapshot, WorkspaceStore};
use std::fs;
use std::os::unix::fs::{PermissionsExt as _, symlink};

use crate::kit::{Kit, options, take};

fn author() -> Author {
    Author { name: "Ada".to_owned(), email: "ada@example.org".to_owned() }
}

#[test]
fn a_commit_is_the_same_each_time_and_has_no_outputs_of_builds() {
    let kit = Kit::new();
    let (repository, mut workspace) = kit.work();
    kit.put("work/edited.txt", "one\n2\n").put("work/__pycache__/a.pyc", "x").put("work/b.pyc", "x");
    kit.put("work/rust/Cargo.toml", "").put("work/rust/target/out", "x").put("work/target/kept", "x");
    let snapshot = take(&mut workspace, "1").unwrap();
    let tree = repository.publishable_tree(&snapshot).unwrap();
    let at = "2026-01-02T03:04:05.6Z".parse().unwrap();
    let commit = || repository.commit(&tree, &[&snapshot.base], "Fix it\n\nBody\n", &author(), at).unwrap();
    let head = commit();
    assert_eq!(commit(), head);
    assert_eq!(
        kit.git("work", &["show", "--no-patch", "--format=%an <%ae> %cn %aI %P%n%B", &head]),
        format!("Ada <ada@example.org> Ada 2026-01-02T03:04:05Z {}\nFix it\n\nBody", snapshot.base)
    );
    let names = kit.git("work", &["diff", "--name-only", &snapshot.base, &head]);
    assert_eq!(names, "edited.txt\nrust/Cargo.toml\ntarget/kept");
}

#[test]
fn numstat_equals_that_of_git() {
    let kit = Kit::new();
    kit.put("source/.gitattributes", "*.lock -diff\n").put("source/a.lock", "1\n").put("source/moved.txt", "a\nb\nc\n");
    kit.commit("source", "more");
    let (repository, mut workspace) = kit.work();
    kit.put("work/edited.txt", "one\n2\n3\n").put("work/a.lock", "2\n").put("work/new\tname\n.txt", "no line end");
    kit.put("work/binary", "\0\0").put("work/deep/moved.txt", "a\nb\nc\n");
    fs::remove_file(kit.path("work/moved.txt")).unwrap();
    fs::remove_file(kit.path("work/kept.txt")).unwrap();
    symlink("x", kit.path("work/kept.txt")).unwrap();
    fs::set_permissions(kit.path("work/gone.txt"), fs::Permissions::from_mode(0o755)).unwrap();
    let snapshot = take(&mut workspace, "1").unwrap();
    let stats = repository.numstat(&snapshot.base, &snapshot.commit).unwrap();
    let number = |count: Option<u64>| count.map_or("-".to_owned(), |count| count.to_string());
    let line = |stat: &FileStat| format!("{}\t{}\t{}\0", number(stat.added), number(stat.removed), stat.path);
    let ours = stats.iter().map(line).collect::<Vec<_>>().concat();
    kit.git("work", &["checkout", "--quiet", "--force", &snapshot.commit]);
    let theirs = kit.git("work", &["diff", "--numstat", "--no-renames", "-z", &snapshot.base, &snapshot.commit]);
    assert_eq!(ours, theirs);
    let status = |path: &str| stats.iter().find(|stat| stat.path == path).map(|stat| stat.status);
    assert_eq!(status("moved.txt"), Some(ChangeKind::Deleted));
    assert_eq!(status("deep/moved.txt"), Some(ChangeKind::Created));
    assert_eq!(status("kept.txt"), Some(ChangeKind::Modified));
}

#[test]
fn changes_have_the_digests_of_the_bytes_and_patches_that_apply() {
    use ChangeKind as K;

    let kit = Kit::new();
    let (repository, mut workspace) = kit.work();
    let before = take(&mut workspace, "1").unwrap();
    assert_eq!(repository.changes(&before.tree, &before.tree).unwrap(), []);
    kit.put("work/edited.txt", "one\ndiff --git a/x b/x\n")
        .put("work/binary", "\0\0")
        .put("work/folder/new.txt", "new\n");
    kit.put("work/large.txt", &"line\n".repeat(100_000));
    fs::remove_file(kit.path("work/gone.txt")).unwrap();
    fs::remove_file(kit.path("work/kept.txt")).unwrap();
    symlink("x", kit.path("work/kept.txt")).unwrap();
    let after = take(&mut workspace, "2").unwrap();
    let changes = repository.changes(&before.tree, &after.tree).unwrap();
    let paths: Vec<&str> = changes.iter().map(|change| change.path.as_str()).collect();
    assert_eq!(paths, ["binary", "edited.txt", "folder/new.txt", "gone.txt", "kept.txt", "large.txt"]);
    let kinds: Vec<ChangeKind> = changes.iter().map(|change| change.change).collect();
    assert_eq!(kinds, [K::Created, K::Modified, K::Created, K::Deleted, K::Modified, K::Created]);
    // `printf 'one\ntwo\n' | sha256sum`
    let edited = &changes[1];
    assert_eq!(
        edited.before_sha256.as_deref(),
        Some("c3f9c8c283a2b1f2f1896f27a01cbe3cddc0c9d93f752e4639035a0f5b36f6e8")
    );
    let has_patch: Vec<bool> = changes.iter().map(|change| change.patch.is_some()).collect();
    assert_eq!(has_patch, [false, true, true, true, true, false]);
    let patches: String = changes.iter().filter_map(|change| change.patch.clone()).collect();
    kit.put("all.patch", &patches);
    repository.restore(&before, &kit.path("fork")).unwrap();
    kit.git("fork", &["apply", kit.path("all.patch").as_str()]);
    let (mut work, fork) = (kit.files("work"), kit.files("fork"));
    work.retain(|path, _| path != b"binary" && path != b"large.txt");
    assert_eq!(fork, work);
}

#[test]
fn a_bundle_restores_a_snapshot_on_another_machine() {
    for is_shallow in [false, true] {
        let kit = Kit::new();
        kit.put("source/second.txt", "2\n");
        kit.commit("source", "second");
        if is_shallow {
            let url = format!("file://{}", kit.path("source"));
            kit.git(".", &["clone", "--quiet", "--depth=1", &url, "shallow"]);
            fs::remove_dir_all(kit.path("source")).unwrap();
            kit.git(".", &["clone", "--quiet", "--depth=1", &format!("file://{}", kit.path("shallow")), "source"]);
        }
        kit.put("source/.git/info/exclude", "*.secret\n");
        let (repository, mut workspace) = kit.work();
        kit.put("work/a", "1\n").put("work/b.secret", "secret");
        let snapshot = take(&mut workspace, "1").unwrap();
        let before = kit.files("work");
        let file = kit.path("snapshot.bundle");
        repository.bundle(std::slice::from_ref(&snapshot.commit), &file).unwrap();
        let listed = kit.git(".", &["-C", repository.path().as_str(), "for-each-ref", "refs/counterproof/bundle/"]);
        assert_eq!(listed, "");
        fs::remove_dir_all(kit.path("source")).unwrap();
        fs::remove_dir_all(kit.path("store")).unwrap();
        let store = WorkspaceStore::new(kit.path("other"), options());
        let record = serde_json::to_string(&snapshot).unwrap();
        let snapshot: Snapshot = serde_json::from_str(&record).unwrap();
        for _ in 0..2 {
            store.unbundle(&snapshot.repository, &file).unwrap();
        }
        let repository = store.open(&snapshot.repository).unwrap();
        let mut fork = repository.restore(&snapshot, &kit.path("fork")).unwrap();
        let mut expected = before;
        expected.remove(b"b.secret".as_slice());
        assert_eq!(kit.files("fork"), expected);
        kit.put("fork/c.secret", "1").put("fork/d", "1");
        let next = take(&mut fork, "2").unwrap();
        assert_eq!(repository.file_at(&next.tree, "c.secret").unwrap(), None);
        kit.git(".", &["-C", repository.path().as_str(), "gc", "--quiet", "--prune=now"]);
        assert_eq!(repository.file_at(&next.tree, "a").unwrap(), Some(b"1\n".to_vec()));
        let commits = kit.git("fork", &["rev-list", "--count", "HEAD"]);
        assert_eq!(commits, if is_shallow { "1" } else { "2" });
    }
}

#[test]
fn a_bundle_changes_nothing_in_a_repository_that_exists() {
    let kit = Kit::new();
    kit.put("source/second.txt", "2\n");
    let head = kit.commit("source", "second");
    kit.put("source/.git/info/exclude", "*.secret\n");
    let (repository, _) = kit.work();
    let git = |arguments: &[&str]| kit.git(&format!("store/{}.git", repository.id()), arguments);
    let excludes = || fs::read_to_string(repository.path().join("info/exclude")).unwrap();
    let before = excludes();
    // The bundle would cut the history, and make secrets a part of snapshots.
    kit.git(".", &["clone", "--quiet", "--bare", "source", "hostile.git"]);
    let hostile = |arguments: &[&str]| kit.git("hostile.git", arguments);
    let pack = |shallow: &str| {
        for (name, text) in [("shallow", shallow), ("info/exclude", "nothing\n")] {
            kit.put("text", text);
            let object = hostile(&["hash-object", "-w", kit.path("text").as_str()]);
            hostile(&["update-ref", &format!("refs/counterproof/bundle/x/{name}"), &object]);
        }
        hostile(&["update-ref", "refs/counterproof/bundle/x/commits/0", &head]);
        hostile(&["bundle", "create", "--quiet", "../hostile.bundle", "--glob=refs/counterproof/bundle/*"]);
        kit.path("hostile.bundle")
    };
    let file = pack(&format!("{head}\n"));
    kit.store().unbundle(repository.id(), &file).unwrap();
    assert_eq!(excludes(), before);
    assert!(!repository.path().join("shallow").exists());
    assert_eq!(git(&["rev-list", "--count", &head]), "2");
    // Git reads no repository with a line like this.
    let file = pack("x\n");
    kit.store().unbundle(repository.id(), &file).unwrap_err();
    assert_eq!(git(&["rev-list", "--count", &head]), "2");
    // References of another name could take the place of others.
    hostile(&["update-ref", "refs/heads/main", &head]);
    hostile(&["bundle", "create", "--quiet", "../hostile.bundle", "refs/heads/main"]);
    kit.store().unbundle(repository.id(), &file).unwrap_err();
}
