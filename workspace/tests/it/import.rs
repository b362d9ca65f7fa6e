//! Imports of repositories of every kind, and what becomes of the source afterwards.

use std::fs;
use std::net::TcpListener;

use counterproof_safe_run::Cancellation;
use counterproof_workspace::{Author, WorkspaceError};

use crate::kit::{Kit, listing, take};

#[test]
fn nothing_below_the_source_is_written_by_any_operation() {
    let kit = Kit::new();
    kit.git("source", &["worktree", "add", "--quiet", "../linked", "-b", "other"]);
    kit.put("source/edited.txt", "not committed\n").put("source/untracked.txt", "x");
    kit.git("source", &["add", "edited.txt"]);
    let before = listing(&kit.path("source"));
    let (repository, mut workspace) = kit.work();
    kit.store().import(kit.path("linked").as_str(), None).unwrap();
    kit.put("work/a", "1").put("work/edited.txt", "two\n");
    let snapshot = take(&mut workspace, "1").unwrap();
    kit.put("work/a", "2").put("work/edited.txt", "one\ntwo\n");
    take(&mut workspace, "2").unwrap();
    repository.restore(&snapshot, &kit.path("work")).unwrap();
    repository.publishable_tree(&snapshot).unwrap();
    assert_eq!(listing(&kit.path("source")), before);
}

#[test]
fn snapshots_survive_when_the_source_is_collected_changed_and_deleted() {
    let kit = Kit::new();
    let (repository, mut workspace) = kit.work();
    kit.put("work/a", "1");
    let before = kit.files("work");
    let snapshot = take(&mut workspace, "1").unwrap();
    kit.git("source", &["commit", "--quiet", "--amend", "--message", "other"]);
    kit.git("source", &["reflog", "expire", "--expire=now", "--all"]);
    kit.git("source", &["gc", "--quiet", "--prune=now"]);
    repository.restore(&snapshot, &kit.path("fork1")).unwrap();
    fs::remove_dir_all(kit.path("source")).unwrap();
    kit.git(".", &["-C", repository.path().as_str(), "gc", "--quiet", "--prune=now"]);
    repository.restore(&snapshot, &kit.path("fork2")).unwrap();
    assert_eq!((kit.files("fork1"), kit.files("fork2")), (before.clone(), before));
    kit.put("fork2/b", "1");
    let mut fork = repository.open(&kit.path("fork2")).unwrap();
    take(&mut fork, "2").unwrap();
    assert_eq!(kit.git(".", &["-C", repository.path().as_str(), "fsck", "--full", "--strict"]), "");
}

#[test]
fn the_start_has_the_branch_the_author_and_the_origin() {
    let kit = Kit::new();
    let source = kit.path("source");
    kit.git("source", &["branch", "topic/a"]);
    kit.git("source", &["config", "user.name", "Ada"]);
    kit.git("source", &["config", "user.email", "ada@example.org"]);
    kit.git("source", &["remote", "add", "origin", "https://user:token@example.org/a.git"]);
    let start = kit.store().import(source.as_str(), None).unwrap();
    assert_eq!(start.branch.as_deref(), Some("main"));
    assert_eq!(start.author, Author { name: "Ada".to_owned(), email: "ada@example.org".to_owned() });
    assert_eq!(start.origin.as_deref(), Some("https://example.org/a.git"));
    let commit = kit.commit_on("topic/a");
    let start = kit.store().import(source.as_str(), Some("topic/a")).unwrap();
    assert_eq!((start.commit.as_str(), start.branch.as_deref()), (commit.as_str(), Some("topic/a")));
    kit.git("source", &["checkout", "--quiet", "--detach", "topic/a"]);
    let start = kit.store().import(source.as_str(), None).unwrap();
    assert_eq!((start.commit, start.branch), (commit, None));
    for branch in ["none", "--help", "main..topic/a", "main^"] {
        let error = kit.store().import(source.as_str(), Some(branch)).unwrap_err();
        assert!(matches!(error, WorkspaceError::NoBranch { .. }), "{branch}: {error}");
    }
}

impl Kit {
    fn commit_on(&self, branch: &str) -> String {
        self.git("source", &["checkout", "--quiet", branch]);
        self.put("source/new.txt", "new\n");
        let commit = self.commit("source", "new");
        self.git("source", &["checkout", "--quiet", "main"]);
        commit
    }
}

#[test]
fn a_second_import_copies_only_what_is_new() {
    let kit = Kit::new();
    let (repository, _) = kit.work();
    let before = listing(&repository.path().join("objects"));
    let start = kit.store().import(kit.path("source").as_str(), None).unwrap();
    assert_eq!(listing(&repository.path().join("objects")), before);
    kit.put("source/new.txt", "new\n");
    let commit = kit.commit("source", "new");
    let next = kit.store().import(kit.path("source").as_str(), None).unwrap();
    assert_eq!((next.repository, next.commit.as_str()), (start.repository, commit.as_str()));
    let count = kit.git(".", &["-C", repository.path().as_str(), "count-objects", "-v"]);
    assert!(count.contains("packs: 2\n") && count.contains("count: 0\n"), "{count}");
}

#[test]
fn repositories_of_every_kind_are_imported_whole() {
    let kit = Kit::new();
    kit.put("source/second.txt", "2\n");
    kit.commit("source", "second");
    let source = kit.path("source");
    let url = format!("file://{source}");
    kit.git(".", &["clone", "--quiet", "--bare", "source", "bare.git"]);
    kit.git(".", &["clone", "--quiet", "--shared", "source", "alternates"]);
    kit.git(".", &["clone", "--quiet", "--depth=1", &url, "shallow"]);
    kit.git("source", &["worktree", "add", "--quiet", "../linked", "-b", "other"]);
    kit.git(".", &["init", "--quiet", "--object-format=sha256", "sha256"]);
    kit.put("sha256/a", "a\n");
    kit.commit("sha256", "start");
    for name in ["bare.git", "alternates", "shallow", "linked", "sha256", "source/folder"] {
        let start = kit.store().import(kit.path(name).as_str(), None).unwrap_or_else(|error| panic!("{name}: {error}"));
        let repository = kit.store().open(&start.repository).unwrap();
        assert!(!repository.path().join("objects/info/alternates").exists());
        let (work, again) = (kit.path(&format!("{name}-work")), kit.path(&format!("{name}-again")));
        let mut workspace = repository.create(&start.commit, &work).unwrap();
        kit.put(&format!("{name}-work/new"), "1\n");
        let snapshot = take(&mut workspace, &format!("{}/1", name.replace('/', "-"))).unwrap();
        repository.restore(&snapshot, &again).unwrap();
        assert_eq!(kit.files(&format!("{name}-again")), kit.files(&format!("{name}-work")), "{name}");
        kit.store().import(kit.path(name).as_str(), None).unwrap();
        let commits = if matches!(name, "shallow" | "sha256") { "1" } else { "2" };
        assert_eq!(kit.git(&format!("{name}-work"), &["rev-list", "--count", "HEAD"]), commits, "{name}");
        kit.git(".", &["-C", repository.path().as_str(), "fsck", "--full"]);
    }
    let linked = kit.store().import(kit.path("linked").as_str(), None).unwrap();
    assert_eq!(linked.branch.as_deref(), Some("other"));
    assert_eq!(linked.repository, kit.store().import(source.as_str(), None).unwrap().repository);
}

#[test]
fn a_partial_clone_is_imported_if_it_has_the_files_of_the_commit() {
    let kit = Kit::new();
    kit.put("source/kept.txt", "second\n");
    kit.commit("source", "second");
    kit.git("source", &["config", "uploadpack.allowFilter", "true"]);
    let url = format!("file://{}", kit.path("source"));
    kit.git(".", &["clone", "--quiet", "--filter=blob:none", &url, "partial"]);
    let before = listing(&kit.path("partial"));
    let start = kit.store().import(kit.path("partial").as_str(), None).unwrap();
    let repository = kit.store().open(&start.repository).unwrap();
    repository.create(&start.commit, &kit.path("partial-work")).unwrap();
    assert_eq!(kit.files("partial-work"), kit.files("source"));
    assert_eq!(listing(&kit.path("partial")), before);
    kit.git(".", &["clone", "--quiet", "--filter=blob:none", "--no-checkout", &url, "without-files"]);
    let before = listing(&kit.path("without-files"));
    let error = kit.store().import(kit.path("without-files").as_str(), None).unwrap_err();
    assert!(matches!(error, WorkspaceError::Partial(_)), "{error}");
    assert_eq!(listing(&kit.path("without-files")), before);
}

#[test]
fn sources_without_a_commit_and_other_folders_are_errors() {
    let kit = Kit::new();
    kit.git(".", &["init", "--quiet", "empty"]);
    let import = |name: &str| kit.store().import(kit.path(name).as_str(), None).unwrap_err();
    assert!(matches!(import("empty"), WorkspaceError::NoCommit(_)));
    kit.put("plain/file", "1");
    assert!(matches!(import("plain"), WorkspaceError::NotARepository(..)));
    assert!(matches!(import("missing"), WorkspaceError::File { .. }));
    let error = kit.store().import("https://user:secret@localhost:1/a.git", None).unwrap_err();
    assert!(!format!("{error}").contains("secret"), "{error}");
    assert_eq!(fs::read_dir(kit.path("store")).unwrap().count(), 0, "nothing is left");
}

#[test]
fn an_import_from_a_server_that_does_not_answer_is_cancelled() {
    let kit = Kit::new();
    let server = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("git://{}/a.git", server.local_addr().unwrap());
    let cancel = Cancellation::default();
    let on_request = cancel.clone();
    let accepted = std::thread::spawn(move || {
        let connection = server.accept().unwrap();
        on_request.cancel();
        connection
    });
    let error = kit.store().cancelled_by(&cancel).import(&url, None).unwrap_err();
    assert!(error.to_string().contains("was cancelled"), "{error}");
    drop(accepted.join().unwrap());
}

#[test]
fn a_url_is_imported_with_its_default_branch() {
    let kit = Kit::new();
    kit.git("source", &["branch", "other"]);
    let url = format!("file://{}", kit.path("source"));
    let start = kit.store().import(&url, None).unwrap();
    assert_eq!((start.branch.as_deref(), start.origin.as_deref()), (Some("main"), Some(url.as_str())));
    kit.put("source/new.txt", "new\n");
    let commit = kit.commit("source", "new");
    assert_eq!(kit.store().import(&url, Some("main")).unwrap().commit, commit);
    assert_eq!(kit.store().import(&url, Some("other")).unwrap().commit, start.commit);
    assert!(matches!(kit.store().import(&url, Some("none")), Err(WorkspaceError::NoBranch { .. })));
}
