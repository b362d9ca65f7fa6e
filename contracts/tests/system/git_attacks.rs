//! Work that changes what steers git, so that a reset would leave it in place or destroy files of the user.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::process::Command;
use std::time::Duration;

use camino::Utf8Path;
use counterproof_contracts::git::{GitError, GitStart, Protected, reset};

use crate::git::{Repository, options, try_undo};

/// Runs a shell script in the repository, as an agent would.
fn sh(repository: &Repository, script: &str) {
    let mut command = Command::new("sh");
    command.current_dir(repository.root()).args(["-ec", script]).env("GIT_CONFIG_GLOBAL", "/dev/null");
    for role in ["AUTHOR", "COMMITTER"] {
        command.env(format!("GIT_{role}_NAME"), "Agent").env(format!("GIT_{role}_EMAIL"), "agent@localhost");
    }
    let output = command.output().unwrap();
    assert!(output.status.success(), "{script}: {}", String::from_utf8_lossy(&output.stderr));
}

/// What an agent may do, and a script that does it together with some work.
const UNDONE: [(&str, &str); 22] = [
    ("assume-unchanged", "git update-index --assume-unchanged edited.txt; echo evil >edited.txt"),
    ("skip-worktree", "git update-index --skip-worktree edited.txt gone.txt; rm gone.txt; echo evil >edited.txt"),
    ("a replaced blob", "echo evil >edited.txt; git replace HEAD:edited.txt $(git hash-object -w edited.txt)"),
    ("a replaced commit", "echo evil >edited.txt; git add edited.txt; git commit -qm evil; git replace HEAD~ HEAD"),
    (
        "a clean filter that hides the change",
        "git config filter.x.clean 'git show HEAD:edited.txt'; echo 'edited.txt filter=x' >.git/info/attributes
         echo evil >edited.txt; git add edited.txt",
    ),
    (
        "a smudge filter that brings it back",
        "git config filter.x.smudge 'touch .git/ran; echo evil'; git config filter.x.clean cat
         echo '* filter=x' >.gitattributes; echo evil >edited.txt",
    ),
    (
        "filters that never end",
        "for kind in clean smudge process; do git config filter.x.$kind 'sleep 100000'; done
         echo '* filter=x' >.gitattributes; echo '* filter=x' >.git/info/attributes; echo evil >edited.txt",
    ),
    (
        "a change that looks like none",
        "git config core.checkStat minimal; git config core.trustctime false; cp -p edited.txt .git/was
         printf 'two\\none\\n' >edited.txt; touch -r .git/was edited.txt",
    ),
    ("info/exclude", "echo '*' >.git/info/exclude; echo evil >new.txt; mkdir d; echo evil >d/new.txt"),
    ("core.excludesFile", "echo '*' >.git/x; git config core.excludesFile $PWD/.git/x; echo evil >new.txt"),
    ("a folder that ignores itself", "mkdir d; echo '*' >d/.gitignore; echo evil >d/new.txt"),
    ("more ignore rules", "echo '*.txt' >>.gitignore; echo evil >new.txt"),
    ("committed ignore rules", "echo '*.x' >folder/.gitignore; touch folder/a.x; git add folder; git commit -qm rules"),
    (
        "conversion of line ends and encodings",
        "git config core.autocrlf true; git config core.eol crlf; echo '*.txt text eol=crlf' >.gitattributes
         echo '* working-tree-encoding=UTF-16' >folder/.gitattributes; echo evil >edited.txt",
    ),
    ("another work tree", "git config core.worktree /; echo evil >edited.txt"),
    (
        "modes and links that git does not see",
        "git config core.fileMode false; git config core.symlinks false; chmod +x edited.txt; rm link; cp kept.txt link",
    ),
    (
        "a sparse checkout",
        "git config core.sparseCheckout true; echo /kept.txt >.git/info/sparse-checkout; rm gone.txt",
    ),
    ("pipes", "mkfifo new.fifo .gitattributes .mailmap; rm edited.txt; mkfifo edited.txt"),
    ("ignored files in the place of a file", "rm edited.txt; mkdir edited.txt; echo evil >edited.txt/new.log"),
    ("a folder that became a link", "mv folder elsewhere; ln -s elsewhere folder; echo evil >elsewhere/tool.sh"),
    (
        "a link out of the repository",
        "rm -r folder; mkdir .git/out; echo x >.git/out/tool.sh; ln -s $PWD/.git/out folder",
    ),
    (
        "programs that settings name",
        "printf '#!/bin/sh\\ntouch .git/ran; exit 1\\n' >.git/evil; chmod +x .git/evil; echo evil >edited.txt
         for hook in reference-transaction post-checkout post-index-change; do cp .git/evil .git/hooks/$hook; done
         git config core.fsmonitor $PWD/.git/evil; git config diff.external $PWD/.git/evil",
    ),
];

#[test]
fn work_is_undone_whatever_it_changes_in_the_repository() {
    for (name, script) in UNDONE {
        let repository = Repository::new();
        let (start, before) = (repository.start(), repository.files());
        sh(&repository, script);
        assert!(start.changes(&Protected::default(), &options()).unwrap().files > 0, "{name}");
        let done = try_undo(&start);
        assert!(matches!(done, Ok(Ok(_))), "{name}: {done:?}");
        assert_eq!(repository.files(), before, "{name}");
        let head = fs::read_to_string(repository.root().join(".git/refs/heads/main")).unwrap();
        assert_eq!(head.trim(), start.commit, "{name}");
        assert!(!repository.root().join(".git/ran").exists(), "{name}");
    }
}

#[test]
fn ignored_files_in_the_place_of_a_tracked_file_are_saved_before_they_are_removed() {
    let repository = Repository::new();
    let (start, mut before) = (repository.start(), repository.files());
    sh(&repository, "rm edited.txt; mkdir -p edited.txt/deep; mv debug.log edited.txt/deep");
    let done = try_undo(&start).unwrap().unwrap();
    // It was not tracked, so it cannot be moved back.
    before.remove("debug.log");
    assert_eq!(repository.files(), before);
    let saved = repository.git_output(&["show", &format!("{}:edited.txt/deep/debug.log", done.saved.unwrap())]);
    assert_eq!(saved, "ignored\n");
}

#[test]
fn an_ignored_repository_in_the_place_of_tracked_files_is_refused() {
    for script in [
        "rm edited.txt; git init -q edited.txt; echo only >edited.txt/only",
        "rm edited.txt; mkdir edited.txt; git init -q edited.txt/x.log; echo only >edited.txt/x.log/only",
        "git init -q folder; echo only >folder/tool.sh",
    ] {
        let repository = Repository::new();
        repository.put(".gitignore", "*\n").git(&["add", "-u"]).commit("ignore everything");
        let start = repository.start();
        sh(&repository, script);
        let before = repository.files();
        assert_eq!(try_undo(&start).unwrap().unwrap_err().code(), "nested_repositories", "{script}");
        assert_eq!(repository.files(), before, "{script}");
    }
}

#[test]
fn a_protected_file_in_the_place_of_a_tracked_file_is_refused() {
    let repository = Repository::new();
    let start = repository.start();
    sh(&repository, "rm edited.txt; mkdir -p edited.txt/runs; echo evidence >edited.txt/runs/r");
    let before = repository.files();
    let mut protected = Protected::default();
    protected.folder(&repository.root().join("edited.txt/runs"));
    let refusal = reset(&start, &protected, "c", &options()).unwrap().unwrap_err();
    assert_eq!(refusal.code(), "in_the_way", "{refusal}");
    assert_eq!(repository.files(), before);
}

#[test]
fn a_changed_setting_stays_and_is_named() {
    let repository = Repository::new();
    let start = repository.start();
    sh(&repository, "git config filter.x.clean cat; touch .git/hooks/pre-commit; echo work >edited.txt");
    let done = try_undo(&start).unwrap().unwrap();
    assert_eq!(done.settings, ["config", "hooks/pre-commit"]);
}

#[test]
fn ignored_files_are_neither_removed_nor_saved_if_their_rules_are_gone() {
    let repository = Repository::new();
    sh(&repository, "printf '.env\\n/cache\\n' >.git/info/exclude; echo secret >.env; mkdir cache; echo c >cache/c");
    sh(
        &repository,
        "mkdir own; echo '*' >own/.gitignore; echo o >own/o; echo u >user-rule.tmp; echo '*.tmp' >.git/user",
    );
    sh(&repository, "git config core.excludesFile $PWD/.git/user");
    let (start, before) = (repository.start(), repository.files());
    sh(&repository, ": >.git/info/exclude; : >.gitignore; rm own/.gitignore; git config --unset core.excludesFile");
    sh(&repository, "echo evil >edited.txt; git add --all; git reset -q .env cache own");
    let done = try_undo(&start).unwrap().unwrap();
    let mut expected = before;
    // It was not tracked, so it cannot be restored.
    expected.remove("own/.gitignore");
    assert_eq!(repository.files(), expected);
    let saved = repository.git_output(&["ls-tree", "-r", "--name-only", &done.saved.unwrap()]);
    for name in [".env", "cache/c", "own/o", "user-rule.tmp", "debug.log", "mine.txt"] {
        assert!(!saved.lines().any(|line| line == name), "{name}: {saved}");
    }
}

#[test]
fn files_that_a_filter_of_the_user_converts_are_restored_as_they_were() {
    let repository = Repository::new();
    sh(&repository, "git config filter.up.clean 'tr a-z A-Z'; git config filter.up.smudge 'tr A-Z a-z'");
    sh(
        &repository,
        "echo '*.up filter=up' >.gitattributes; echo text >a.up; git add .gitattributes a.up; git commit -qm up",
    );
    sh(&repository, "git update-index --assume-unchanged kept.txt; echo 'only here' >kept.txt");
    let (start, before) = (repository.start(), repository.files());
    assert_eq!(start.changed, [""; 0]);
    sh(&repository, "git config filter.up.smudge 'echo evil'; echo work >a.up; echo work >kept.txt");
    try_undo(&start).unwrap().unwrap();
    assert_eq!(repository.files(), before);
    let flags = repository.git_output(&["ls-files", "-v", "kept.txt"]);
    assert_eq!(flags, "h kept.txt\n");
}

#[test]
fn changed_submodules_are_refused() {
    let inner = Repository::new();
    let attacks = [
        "cd sub; echo evil >edited.txt; git commit -qam evil",
        "cd sub; echo evil >edited.txt; git commit -qam evil; cd ..; git add sub; git commit -qm sub",
        "git config submodule.sub.ignore all; cd sub; git update-index --assume-unchanged kept.txt; echo x >kept.txt",
        "rm -rf sub",
    ];
    for attack in attacks {
        let repository = Repository::new();
        let add = format!("git -c protocol.file.allow=always submodule --quiet add {} sub", inner.root());
        sh(&repository, &format!("{add}; git commit -qm sub"));
        let start = repository.start();
        // A submodule without changes does not prevent the rollback.
        sh(&repository, "echo work >edited.txt");
        try_undo(&start).unwrap().unwrap();
        sh(&repository, attack);
        assert_eq!(try_undo(&start).unwrap().unwrap_err().code(), "submodules");
    }
}

#[test]
fn a_pipe_in_the_place_of_tracked_attributes_is_removed() {
    let repository = Repository::new();
    // Their names come first, so they are written first.
    repository.put(".gitattributes", "*.x text\n").put(".a", "a\n").put("folder/.gitattributes", "*.x text\n");
    repository.git(&["add", ".gitattributes", ".a", "folder"]).commit("attributes");
    let (start, before) = (repository.start(), repository.files());
    sh(&repository, "for file in .gitattributes folder/.gitattributes; do rm $file; mkfifo $file; done; echo x >.a");
    let mut options = options();
    options.timeout = Duration::from_secs(10);
    reset(&start, &Protected::default(), "c", &options).unwrap().unwrap();
    assert_eq!(repository.files(), before);
}

#[test]
fn another_repository_in_the_place_of_the_first_one_is_refused_and_stays_as_it_is() {
    let scripts = [
        "mv .git was; ln -s $other/.git .git",
        "mv $PWD $other.was; ln -s $other $OLDPWD",
        "echo $other/.git >.git/commondir",
    ];
    for script in scripts {
        let repository = Repository::new();
        let start = repository.start();
        let folder = tempfile::tempdir().unwrap();
        let other = folder.path().join("other");
        let clone =
            format!("git clone -q . {0}; cd {0}; echo mine >mine; git add mine; git commit -qm mine", other.display());
        sh(&repository, &clone);
        let head = |name: &str| fs::read_to_string(other.join(".git").join(name)).unwrap();
        let (commit, index) = (head("refs/heads/main"), fs::read(other.join(".git/index")).unwrap());
        sh(&repository, &format!("other={}; cd $PWD; {script}", other.display()));
        let refusal = try_undo(&start).unwrap().unwrap_err();
        assert_eq!(refusal.code(), "other_repository", "{script}: {refusal}");
        assert_eq!((head("refs/heads/main"), fs::read(other.join(".git/index")).unwrap()), (commit, index), "{script}");
        assert!(other.join("mine").exists(), "{script}");
    }
}

#[test]
fn a_linked_work_tree_is_reset() {
    let repository = Repository::new();
    let folder = tempfile::tempdir().unwrap();
    let linked = Utf8Path::from_path(folder.path()).unwrap().join("linked");
    sh(&repository, &format!("git worktree add -q {linked}"));
    let start = GitStart::record(&linked, &options()).unwrap().unwrap();
    sh(&repository, &format!("cd {linked}; echo work >edited.txt; git commit -qam work"));
    try_undo(&start).unwrap().unwrap();
    assert_eq!(fs::read_to_string(linked.join("edited.txt")).unwrap(), "one\ntwo\n");
}

#[test]
fn a_pipe_in_the_place_of_a_file_of_the_repository_is_an_error_and_no_command_waits_for_it() {
    for file in ["config", "HEAD", "packed-refs", "refs/heads/main", "logs/HEAD", "objects/info/alternates"] {
        let repository = Repository::new();
        let start = repository.start();
        sh(&repository, &format!("rm -f .git/{file}; mkfifo .git/{file}; echo evil >edited.txt"));
        let error = try_undo(&start).unwrap_err();
        assert!(error.to_string().contains(file), "{error}");
    }
}

#[test]
fn a_lock_of_the_index_that_is_older_than_the_work_is_refused_and_nothing_is_changed() {
    let repository = Repository::new();
    let lock = repository.root().join(".git/index.lock");
    // As of a commit whose message a person is writing.
    sh(&repository, ": >.git/index.lock; touch -d '1 hour ago' .git/index.lock");
    let start = repository.start();
    sh(&repository, "echo work >edited.txt");
    let before = repository.files();
    let refusal = try_undo(&start).unwrap().unwrap_err();
    assert_eq!(refusal.code(), "index_locked", "{refusal}");
    assert_eq!(repository.files(), before);
    assert!(lock.exists());
    fs::remove_file(&lock).unwrap();
    try_undo(&start).unwrap().unwrap();
    assert!(!lock.exists());
}

#[test]
fn a_lock_of_the_index_that_the_work_left_is_removed() {
    let repository = Repository::new();
    let (start, before) = (repository.start(), repository.files());
    sh(&repository, "echo evil >edited.txt; : >.git/index.lock");
    try_undo(&start).unwrap().unwrap();
    assert_eq!(repository.files(), before);
    assert_eq!(repository.git_output(&["status", "--porcelain"]), "?? mine.txt\n");
}

#[test]
fn an_object_that_was_replaced_or_removed_fails_the_reset() {
    for script in ["rm -f $object", "chmod u+w $object; cp $other $object", "chmod u+w $object; : >$object"] {
        let repository = Repository::new();
        let start = repository.start();
        let path = "path() { name=$(git rev-parse $1); echo .git/objects/${name%${name#??}}/${name#??}; }";
        let objects = "object=$(path HEAD:edited.txt); other=$(path HEAD:kept.txt)";
        sh(&repository, &format!("{path}; {objects}; echo evil >edited.txt; {script}"));
        assert!(try_undo(&start).is_err(), "{script}");
    }
}

#[test]
fn a_git_command_that_hangs_is_ended() {
    let repository = Repository::new();
    let start = repository.start();
    let object = "name=$(git rev-parse HEAD:edited.txt); object=.git/objects/${name%${name#??}}/${name#??}";
    sh(&repository, &format!("{object}; rm -f $object; mkfifo $object; echo evil >edited.txt"));
    let mut options = options();
    options.timeout = Duration::from_millis(300);
    let error = reset(&start, &Protected::default(), "c", &options).unwrap_err();
    assert!(matches!(&error, GitError::Failed { message, .. } if message.contains("time limit")), "{error:?}");
}

#[test]
fn a_file_that_cannot_be_read_is_an_error_and_not_a_missing_file() {
    let repository = Repository::new();
    let start = repository.start();
    let folder = repository.root().join("folder");
    fs::set_permissions(&folder, fs::Permissions::from_mode(0o0)).unwrap();
    let done = try_undo(&start);
    fs::set_permissions(&folder, fs::Permissions::from_mode(0o755)).unwrap();
    // A privileged user can read it.
    assert!(done.is_err() || done.unwrap().unwrap().saved.is_none());
}
