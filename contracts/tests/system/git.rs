//! Resets of real repositories: everything of the contract is undone and saved, and nothing of others is touched.

use std::collections::BTreeMap;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::process::{Command, Stdio};
use std::time::Duration;

use camino::{Utf8Path, Utf8PathBuf};
use counterproof_contracts::git::{Changes, GitError, GitOptions, GitStart, Protected, Refusal, Reset, plan, reset};
use counterproof_store::write::{Durability, create_folder, write};
use tempfile::TempDir;

use crate::kit::worker;

/// A variable with a start, to which the test [`child`] resets.
const START: &str = "CONTRACTS_TEST_START";

pub(crate) struct Repository {
    folder: TempDir,
}

impl Repository {
    /// Creates a repository with one commit, a file that is not tracked, and an ignored one.
    pub(crate) fn new() -> Self {
        let repository = Self { folder: tempfile::tempdir().unwrap() };
        repository.git(&["init", "--quiet", "--initial-branch", "main"]);
        repository.put("kept.txt", "kept\n").put("edited.txt", "one\ntwo\n").put("gone.txt", "gone\n");
        repository.put("folder/tool.sh", "echo\n").put(".gitignore", "*.log\n").put("[odd] *.txt", "odd\n");
        symlink("kept.txt", repository.root().join("link")).unwrap();
        repository.git(&["add", "--all"]).commit("start");
        repository.put("mine.txt", "not tracked\n").put("debug.log", "ignored\n");
        repository
    }

    pub(crate) fn root(&self) -> Utf8PathBuf {
        Utf8Path::from_path(self.folder.path()).unwrap().canonicalize_utf8().unwrap()
    }

    pub(crate) fn git(&self, arguments: &[&str]) -> &Self {
        self.git_output(arguments);
        self
    }

    pub(crate) fn git_output(&self, arguments: &[&str]) -> String {
        let output = git(&self.root(), arguments);
        assert!(output.status.success(), "{arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout).unwrap()
    }

    pub(crate) fn commit(&self, message: &str) -> &Self {
        self.git(&["commit", "--quiet", "--message", message])
    }

    pub(crate) fn put(&self, name: &str, text: &str) -> &Self {
        let path = self.root().join(name);
        create_folder(path.parent().unwrap()).unwrap();
        write(&path, text.as_bytes(), Durability::Cached).unwrap();
        self
    }

    pub(crate) fn start(&self) -> GitStart {
        GitStart::record(&self.root(), &options()).unwrap().unwrap()
    }

    /// The work of a contract: commits, changes of every kind, new files.
    fn work(&self) -> &Self {
        self.put("edited.txt", "one\nTWO\nthree\n").git(&["add", "--all", ":!mine.txt"]).commit("first step");
        self.put("folder/new.txt", "new\n").put("deep/er/new.txt", "new\n").put("[odd] *.txt", "changed\n");
        self.put("staged.txt", "staged\n").git(&["add", "staged.txt"]);
        let root = self.root();
        std::fs::remove_file(root.join("gone.txt")).unwrap();
        std::fs::set_permissions(root.join("folder/tool.sh"), PermissionsExt::from_mode(0o755)).unwrap();
        std::fs::remove_file(root.join("link")).unwrap();
        symlink("edited.txt", root.join("link")).unwrap();
        self.put("debug.log", "ignored, and changed\n")
    }

    /// Every file outside of the git folder: its mode and its content, or the target of a link.
    pub(crate) fn files(&self) -> BTreeMap<String, (u32, String)> {
        let root = self.root();
        let mut files = BTreeMap::new();
        let mut folders = vec![root.clone()];
        while let Some(folder) = folders.pop() {
            for entry in folder.read_dir_utf8().unwrap() {
                let path = entry.unwrap().into_path();
                let name = path.strip_prefix(&root).unwrap().to_string();
                let found = path.symlink_metadata().unwrap();
                if found.is_dir() {
                    if path.file_name() != Some(".git") {
                        folders.push(path);
                    }
                } else if found.is_symlink() {
                    files.insert(name, (0, path.read_link_utf8().unwrap().to_string()));
                } else {
                    let mode = found.permissions().mode() & 0o111;
                    files.insert(name, (mode, std::fs::read_to_string(path).unwrap()));
                }
            }
        }
        files
    }
}

fn git(folder: &Utf8Path, arguments: &[&str]) -> std::process::Output {
    let mut command = Command::new("git");
    command.current_dir(folder).args(arguments).env("GIT_CONFIG_GLOBAL", "/dev/null").env("GIT_CONFIG_NOSYSTEM", "1");
    for role in ["AUTHOR", "COMMITTER"] {
        command.env(format!("GIT_{role}_NAME"), "Test").env(format!("GIT_{role}_EMAIL"), "test@localhost");
    }
    command.output().unwrap()
}

pub(crate) fn options() -> GitOptions {
    GitOptions { supervisor: Some(worker()), timeout: Duration::from_mins(1) }
}

pub(crate) fn try_undo(start: &GitStart) -> Result<Result<Reset, Refusal>, GitError> {
    reset(start, &Protected::default(), "shop/refund", &options())
}

fn undo(start: &GitStart) -> Result<Reset, Refusal> {
    try_undo(start).unwrap()
}

#[test]
fn a_reset_undoes_all_work_keeps_everything_else_and_saves_what_it_discards() {
    let repository = Repository::new();
    let (start, mut before) = (repository.start(), repository.files());
    repository.work();
    let after = repository.files();
    assert_eq!(
        start.changes(&Protected::default(), &options()).unwrap(),
        Changes { files: 8, insertions: 7, deletions: 4 }
    );
    let done = undo(&start).unwrap();
    assert_eq!(done.discarded.summary(), "1 commit, 5 changed files, 3 new files");
    // An ignored file is left alone.
    before.insert("debug.log".to_owned(), (0, "ignored, and changed\n".to_owned()));
    assert_eq!(repository.files(), before);
    assert_eq!(repository.git_output(&["rev-parse", "HEAD"]).trim(), start.commit);
    assert_eq!(repository.git_output(&["status", "--porcelain"]), "?? mine.txt\n");
    // The saved commit has the whole work, on top of its commits.
    let saved = done.saved.unwrap();
    assert_eq!(saved, "refs/counterproof/rollback/shop%2Frefund/1");
    assert_eq!(repository.git_output(&["log", "--format=%s", &saved]).lines().nth(1), Some("first step"));
    let mut restored: Vec<String> = repository
        .git_output(&["ls-tree", "-r", "-z", "--name-only", &saved])
        .split_terminator('\0')
        .map(str::to_owned)
        .collect();
    // Ignored files, and files that were not tracked at the start, are not the contract's.
    restored.extend(["debug.log".to_owned(), "mine.txt".to_owned()]);
    restored.sort();
    assert_eq!(restored, after.keys().cloned().collect::<Vec<_>>());
    let content = repository.git_output(&["show", &format!("{saved}:deep/er/new.txt")]);
    assert_eq!(content, "new\n");
    // A second call finds nothing to do.
    assert_eq!(undo(&start).unwrap().saved, None);
}

#[test]
fn a_folder_in_the_place_of_a_file_and_the_reverse_are_undone() {
    let repository = Repository::new();
    let (start, before) = (repository.start(), repository.files());
    let root = repository.root();
    std::fs::remove_file(root.join("gone.txt")).unwrap();
    repository.put("gone.txt/inner.txt", "x");
    std::fs::remove_dir_all(root.join("folder")).unwrap();
    repository.put("folder", "a file now");
    undo(&start).unwrap();
    assert_eq!(repository.files(), before);
}

#[test]
fn protected_files_stay_as_they_are_even_if_they_are_tracked() {
    let repository = Repository::new();
    repository.put(".store/contracts.jsonl", "one\n").git(&["add", ".store"]).commit("store");
    let start = repository.start();
    repository.put(".store/contracts.jsonl", "one\ntwo\n").put(".store/contracts.jsonl.files/a/log", "evidence");
    repository
        .put("runs/new/x.json", "{}")
        .put("edited.txt", "work\n")
        .git(&["add", "--all", ":!mine.txt"])
        .commit("all");
    let mut protected = Protected::default();
    protected.store(&repository.root().join(".store/contracts.jsonl"));
    protected.folder(&repository.root().join("runs"));
    let done = reset(&start, &protected, "c", &options()).unwrap().unwrap();
    assert_eq!(done.discarded.changed, ["edited.txt"]);
    let files = repository.files();
    assert_eq!(files[".store/contracts.jsonl"].1, "one\ntwo\n");
    assert_eq!(files[".store/contracts.jsonl.files/a/log"].1, "evidence");
    assert_eq!((files["runs/new/x.json"].1.as_str(), files["edited.txt"].1.as_str()), ("{}", "one\ntwo\n"));
}

#[test]
fn only_the_store_its_own_siblings_and_the_exact_paths_are_protected() {
    let repository = Repository::new();
    let start = repository.start();
    let own = ["c", "c.index", "c.index-wal", "c.files/a/log", "c.torn-1", "c.before-1", "out/new/x", "out/cases.json"];
    let work = ["code.rs", "c.rs", "c.files.rs", "c-new/c", "out/news/x", "out/cases.json.rs", "deep/c"];
    for name in own.iter().chain(&work) {
        repository.put(name, "new\n");
    }
    let (root, mut protected) = (repository.root(), Protected::default());
    protected.store(&root.join("c"));
    protected.folder(&root.join("out/new"));
    protected.file(&root.join("out/cases.json"));
    reset(&start, &protected, "c", &options()).unwrap().unwrap();
    let files = repository.files();
    for name in own {
        assert!(files.contains_key(name), "{name}");
    }
    for name in work {
        assert!(!files.contains_key(name), "{name}");
    }
}

#[test]
fn a_protected_folder_that_contains_the_repository_is_refused() {
    let repository = Repository::new();
    let (start, root) = (repository.start(), repository.root());
    repository.put("edited.txt", "work\n");
    for folder in [root.clone(), root.join("."), root.parent().unwrap().to_owned()] {
        let mut protected = Protected::default();
        protected.folder(&folder);
        let refusal = plan(&start, &protected, &options()).unwrap().unwrap_err();
        assert_eq!(refusal.code(), "all_protected", "{folder}");
    }
}

#[test]
fn ignored_files_that_were_committed_since_are_left_alone() {
    let repository = Repository::new();
    let start = repository.start();
    repository.git(&["add", "--force", "debug.log"]).commit("log");
    undo(&start).unwrap();
    assert_eq!(repository.files()["debug.log"].1, "ignored\n");
}

#[test]
fn the_way_back_restores_commits_new_files_and_deletions() {
    let repository = Repository::new();
    let start = repository.start();
    repository.work();
    let after = repository.files();
    let reset = undo(&start).unwrap();
    let way_back = reset.way_back(start.root()).unwrap();
    assert!(way_back.ends_with("switch --create rolled-back-shop-refund-1 refs/counterproof/rollback/shop%2Frefund/1"));
    assert!(Command::new("sh").args(["-c", &way_back]).stderr(Stdio::null()).status().unwrap().success());
    assert_eq!(repository.files(), after);
    assert_eq!(repository.git_output(&["log", "--format=%s"]).lines().nth(1), Some("first step"));
}

#[test]
fn a_reset_that_would_lose_work_of_others_is_refused_and_changes_nothing() {
    type Change = fn(&Repository);
    let before_start: [(&str, Change); 1] =
        [("changed_before", |it| drop(it.put("edited.txt", "mine, not committed\n").root()))];
    let after_start: [(&str, Change); 7] = [
        ("other_branch", |it| drop(it.git(&["switch", "--quiet", "--create", "side"]).root())),
        ("other_branch", |it| drop(it.git(&["switch", "--quiet", "--detach"]).root())),
        ("not_a_descendant", |it| {
            it.git(&["commit", "--quiet", "--amend", "--message", "rewritten"]);
        }),
        ("tracked_since", |it| drop(it.git(&["add", "mine.txt"]).commit("mine too").root())),
        ("in_progress", |it| {
            it.git(&["branch", "side"]).put("edited.txt", "ours\n").git(&["add", "edited.txt"]).commit("ours");
            it.git(&["switch", "--quiet", "side"]).put("edited.txt", "theirs\n").git(&["add", "edited.txt"]);
            it.commit("theirs").git(&["switch", "--quiet", "main"]);
            assert!(!git(&it.root(), &["merge", "--quiet", "side"]).status.success(), "the merge has a conflict");
        }),
        ("nested_repositories", |it| {
            it.put("nested/file", "x");
            assert!(git(&it.root().join("nested"), &["init", "--quiet"]).status.success());
            assert!(git(&it.root().join("nested"), &["add", "--all"]).status.success());
            assert!(git(&it.root().join("nested"), &["commit", "--quiet", "-m", "x"]).status.success());
        }),
        ("no_repository", |it| std::fs::remove_dir_all(it.root().join(".git")).unwrap()),
    ];
    let cases = before_start.map(|case| (true, case)).into_iter().chain(after_start.map(|case| (false, case)));
    for (is_before, (code, change)) in cases {
        let repository = Repository::new();
        if is_before {
            change(&repository);
        }
        let start = repository.start();
        if !is_before {
            change(&repository);
        }
        repository.put("folder/new.txt", "work\n");
        let before = repository.files();
        let refusal = undo(&start).unwrap_err();
        assert_eq!(refusal.code(), code, "{refusal}");
        assert_eq!(repository.files(), before, "{code}");
    }
}

#[test]
fn a_working_directory_below_the_root_is_reset_only_if_nothing_else_changed() {
    let repository = Repository::new();
    let folder = repository.root().join("folder");
    let start = GitStart::record(&folder, &options()).unwrap().unwrap();
    repository.put("folder/tool.sh", "changed\n").put("edited.txt", "changed outside\n");
    let refusal = plan(&start, &Protected::default(), &options()).unwrap().unwrap_err();
    assert_eq!(refusal, Refusal::OutsideChanges(vec!["edited.txt".to_owned()]));
    repository.git(&["checkout", "--quiet", "edited.txt"]);
    reset(&start, &Protected::default(), "c", &options()).unwrap().unwrap();
    assert_eq!(repository.files()["folder/tool.sh"].1, "echo\n");
}

#[test]
fn a_folder_without_a_repository_or_without_a_commit_cannot_begin() {
    let folder = tempfile::tempdir().unwrap();
    let root = Utf8Path::from_path(folder.path()).unwrap();
    assert_eq!(GitStart::record(root, &options()).unwrap(), Err(Refusal::NoRepository));
    assert!(git(root, &["init", "--quiet"]).status.success());
    assert_eq!(GitStart::record(root, &options()).unwrap(), Err(Refusal::NoCommit));
}

/// Resets the repository that another test names. Does nothing unless another test starts it.
#[test]
fn child() {
    let Ok(start) = std::env::var(START) else { return };
    let start: GitStart = serde_json::from_str(&start).unwrap();
    reset(&start, &Protected::default(), "c", &options()).unwrap().unwrap();
}

fn child_command(start: &GitStart) -> Command {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args(["--exact", "git::child", "--nocapture"]).env(START, serde_json::to_string(start).unwrap());
    command
}

/// Resets a repository in another process, in which a shell script runs right after the work is saved. Returns its output.
fn raced(repository: &Repository, start: &GitStart, script: &str) -> String {
    let programs = tempfile::tempdir().unwrap();
    let wrapper = programs.path().join("git");
    let when_saved = "*'update-ref --no-deref refs/counterproof'*";
    let text = format!(
        "#!/bin/sh\nPATH=${{PATH#*:}}\ngit \"$@\" || exit\ncase \"$*\" in {when_saved}) cd {}; unset GIT_DIR;\n{script};; esac\n",
        repository.root()
    );
    write(Utf8Path::from_path(&wrapper).unwrap(), text.as_bytes(), Durability::Cached).unwrap();
    std::fs::set_permissions(&wrapper, PermissionsExt::from_mode(0o755)).unwrap();
    let path = format!("{}:{}", programs.path().display(), std::env::var("PATH").unwrap());
    let output = child_command(start).env("PATH", path).output().unwrap();
    String::from_utf8_lossy(&output.stderr).into_owned() + &String::from_utf8_lossy(&output.stdout)
}

#[test]
fn files_that_appear_after_the_work_is_saved_are_left_alone_and_the_reset_fails() {
    let repository = Repository::new();
    let start = repository.start();
    repository.put("edited.txt", "after\n").put("new.txt", "new\n");
    let output = raced(&repository, &start, "echo late >late.txt; echo late >kept.txt");
    assert!(output.contains("NotRestored(\"`kept.txt`, `late.txt`\")"), "{output}");
    let files = repository.files();
    let text = |name: &str| files.get(name).map(|(_, text)| text.as_str());
    assert_eq!((text("edited.txt"), text("new.txt")), (Some("one\ntwo\n"), None));
    assert_eq!((text("late.txt"), text("kept.txt")), (Some("late\n"), Some("late\n")));
}

#[test]
fn a_commit_that_is_made_after_the_work_is_saved_is_not_discarded() {
    let repository = Repository::new();
    let start = repository.start();
    repository.put("edited.txt", "after\n");
    let author = "-c user.name=x -c user.email=x@localhost";
    let output = raced(
        &repository,
        &start,
        &format!("git update-ref HEAD $(git {author} commit-tree -p HEAD -m late HEAD^{{tree}})"),
    );
    assert!(output.contains("ChangedMeanwhile"), "{output}");
    assert_eq!(repository.git_output(&["log", "-n", "1", "--format=%s"]), "late\n");
    assert_eq!(repository.files()["edited.txt"].1, "after\n");
}

#[test]
fn a_reset_that_is_killed_is_completed_by_a_second_one() {
    for kill in 0..16_u32 {
        let repository = Repository::new();
        let (start, mut before) = (repository.start(), repository.files());
        repository.work();
        before.insert("debug.log".to_owned(), (0, "ignored, and changed\n".to_owned()));
        let mut command = child_command(&start);
        let mut child = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
        // The golden ratio spreads the moments without large gaps.
        std::thread::sleep(Duration::from_millis(120).mul_f64((f64::from(kill) * 0.618_033_988_75).fract()));
        child.kill().unwrap();
        child.wait().unwrap();
        undo(&start).unwrap();
        assert_eq!(repository.files(), before, "kill {kill}");
    }
}
