//! A git repository in a temporary folder, and the program that supervises commands.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use camino::{Utf8Path, Utf8PathBuf};
use counterproof_contracts::process::Cancellation;
use counterproof_store::write::write_new;
use counterproof_workflow::forge::CiWanted;
use counterproof_workflow::suite::Shell;
use counterproof_workspace::git::GitOptions;
use tempfile::TempDir;

pub(crate) fn supervisor() -> PathBuf {
    // Tests are in `<target>/<profile>/deps/`, examples in `<target>/<profile>/examples/`.
    let test = std::env::current_exe().unwrap();
    test.parent().and_then(Path::parent).unwrap().join("examples").join("workflow_supervisor")
}

pub(crate) fn shell() -> Shell {
    Shell { supervisor: Some(supervisor()), ..Shell::new(Duration::from_mins(2), Cancellation::default()) }
}

pub(crate) fn git_options() -> GitOptions {
    GitOptions { supervisor: Some(supervisor()), timeout: Duration::from_mins(1) }
}

pub(crate) fn wanted(commit: &str, timeout: Option<Duration>) -> CiWanted<'_> {
    CiWanted { commit, timeout, before: None }
}

pub(crate) struct Repository {
    pub(crate) folder: TempDir,
}

impl Repository {
    pub(crate) fn new() -> Self {
        let repository = Self { folder: tempfile::tempdir().unwrap() };
        repository.git(&["init", "--quiet", "--initial-branch=main", "--template="]);
        repository
    }

    pub(crate) fn path(&self) -> &Utf8Path {
        Utf8Path::from_path(self.folder.path()).unwrap()
    }

    /// The part of it that is like a bare repository.
    pub(crate) fn bare(&self) -> Utf8PathBuf {
        self.path().join(".git")
    }

    pub(crate) fn git(&self, arguments: &[&str]) -> String {
        git(self.path(), arguments)
    }

    pub(crate) fn commit(&self, name: &str, text: &str) -> String {
        let path = self.path().join(name);
        let _ = std::fs::remove_file(&path);
        write_new(&path, text.as_bytes()).unwrap();
        self.git(&["add", "--all"]);
        self.git(&["commit", "--quiet", "--message", name]);
        self.git(&["rev-parse", "HEAD"])
    }
}

pub(crate) fn git(folder: &Utf8Path, arguments: &[&str]) -> String {
    let output = Command::new("git")
        .current_dir(folder)
        .args(["-c", "user.name=a", "-c", "user.email=a@b.c"])
        .args(arguments)
        .env("GIT_CONFIG_GLOBAL", "/dev/null")
        .env("GIT_CONFIG_NOSYSTEM", "1")
        .output()
        .unwrap();
    assert!(output.status.success(), "git {arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap().trim_end().to_owned()
}
