//! A repository of a user, a store, and the state of folders to compare.

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _, symlink};
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::time::Duration;

use camino::{Utf8Path, Utf8PathBuf};
use counterproof_store::write::{Durability, create_folder, write};
use counterproof_workspace::git::GitOptions;
use counterproof_workspace::{Snapshot, SnapshotOptions, StoredRepository, Workspace, WorkspaceError, WorkspaceStore};
use tempfile::TempDir;

pub(crate) struct Kit {
    folder: TempDir,
}

impl Kit {
    /// Creates a repository `source` with one commit.
    pub(crate) fn new() -> Self {
        let kit = Self { folder: tempfile::tempdir().unwrap() };
        kit.git(".", &["init", "--quiet", "--initial-branch", "main", "source"]);
        kit.put("source/kept.txt", "kept\n").put("source/edited.txt", "one\ntwo\n").put("source/gone.txt", "gone\n");
        kit.put("source/folder/tool.sh", "echo\n").put("source/folder/.gitignore", "*.tmp\n!kept.tmp\n");
        kit.put("source/.gitignore", "*.log\n/build/\n");
        fs::set_permissions(kit.path("source/folder/tool.sh"), fs::Permissions::from_mode(0o755)).unwrap();
        symlink("kept.txt", kit.path("source/link")).unwrap();
        kit.commit("source", "start");
        kit
    }

    pub(crate) fn path(&self, name: &str) -> Utf8PathBuf {
        Utf8Path::from_path(self.folder.path()).unwrap().canonicalize_utf8().unwrap().join(name)
    }

    pub(crate) fn put(&self, name: &str, text: &str) -> &Self {
        let path = self.path(name);
        create_folder(path.parent().unwrap()).unwrap();
        write(&path, text.as_bytes(), Durability::Cached).unwrap();
        self
    }

    pub(crate) fn git(&self, folder: &str, arguments: &[&str]) -> String {
        let output = run_git(&self.path(folder), arguments);
        assert!(output.status.success(), "{arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8_lossy(&output.stdout).trim_end().to_owned()
    }

    pub(crate) fn commit(&self, folder: &str, message: &str) -> String {
        self.git(folder, &["add", "--all"]);
        self.git(folder, &["commit", "--quiet", "--message", message]);
        self.git(folder, &["rev-parse", "HEAD"])
    }

    pub(crate) fn store(&self) -> WorkspaceStore {
        WorkspaceStore::new(self.path("store"), options())
    }

    /// Imports the source, and creates the workspace `work` from it.
    pub(crate) fn work(&self) -> (StoredRepository, Workspace) {
        let start = self.store().import(self.path("source").as_str(), None).unwrap();
        let repository = self.store().open(&start.repository).unwrap();
        let workspace = repository.create(&start.commit, &self.path("work")).unwrap();
        (repository, workspace)
    }

    pub(crate) fn files(&self, name: &str) -> Files {
        files(&self.path(name))
    }
}

pub(crate) fn run_git(folder: &Utf8Path, arguments: &[&str]) -> Output {
    let mut command = Command::new("git");
    command.current_dir(folder).args(["-c", "protocol.file.allow=always"]).args(arguments);
    command.env("GIT_CONFIG_GLOBAL", "/dev/null").env("GIT_CONFIG_NOSYSTEM", "1");
    for role in ["AUTHOR", "COMMITTER"] {
        command.env(format!("GIT_{role}_NAME"), "Test").env(format!("GIT_{role}_EMAIL"), "test@localhost");
    }
    command.output().unwrap()
}

pub(crate) fn options() -> GitOptions {
    // Tests are in `<target>/<profile>/deps/`, examples in `<target>/<profile>/examples/`.
    let test = std::env::current_exe().unwrap();
    let supervisor = test.parent().and_then(Path::parent).unwrap().join("examples/large_workspace");
    GitOptions { supervisor: Some(supervisor), timeout: Duration::from_mins(1) }
}

pub(crate) fn snapshot_options(name: &str) -> SnapshotOptions {
    let reference = format!("{}{name}", counterproof_workspace::CHECKPOINTS);
    SnapshotOptions { reference, include_ignored: Vec::new(), max_bytes: 1 << 30 }
}

pub(crate) fn take(workspace: &mut Workspace, name: &str) -> Result<Snapshot, WorkspaceError> {
    workspace.snapshot(&snapshot_options(name))
}

/// An entry of a folder: its content or target, and whether it is executable.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Entry {
    File { content: Vec<u8>, is_executable: bool },
    Link(PathBuf),
    EmptyFolder,
    Other,
}

pub(crate) type Files = BTreeMap<Vec<u8>, Entry>;

/// Everything below a folder but its `.git`.
pub(crate) fn files(root: &Utf8Path) -> Files {
    let mut files = Files::new();
    let mut folders = vec![Vec::new()];
    while let Some(folder) = folders.pop() {
        let full = root.as_std_path().join(OsStr::from_bytes(&folder));
        let mut is_empty = true;
        for entry in fs::read_dir(&full).unwrap() {
            let entry = entry.unwrap();
            let name = entry.file_name();
            is_empty = false;
            if folder.is_empty() && name == ".git" {
                continue;
            }
            let path = if folder.is_empty() {
                name.as_bytes().to_vec()
            } else {
                [&folder, b"/" as &[u8], name.as_bytes()].concat()
            };
            let found = entry.path().symlink_metadata().unwrap();
            let value = match found.file_type() {
                kind if kind.is_dir() => {
                    folders.push(path);
                    continue;
                }
                kind if kind.is_symlink() => Entry::Link(fs::read_link(entry.path()).unwrap()),
                kind if kind.is_file() => {
                    let content = fs::read(entry.path()).unwrap();
                    Entry::File { content, is_executable: found.mode() & 0o100 != 0 }
                }
                _ => Entry::Other,
            };
            files.insert(path, value);
        }
        if is_empty && !folder.is_empty() {
            files.insert(folder, Entry::EmptyFolder);
        }
    }
    files
}

/// Every file and folder with its size, times, inode and mode: any write to one of them changes the list.
pub(crate) fn listing(root: &Utf8Path) -> Vec<String> {
    let mut lines = Vec::new();
    let mut folders = vec![root.as_std_path().to_owned()];
    while let Some(folder) = folders.pop() {
        for path in fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()) {
            let found = path.symlink_metadata().unwrap();
            let times = (found.mtime(), found.mtime_nsec(), found.ctime(), found.ctime_nsec());
            lines.push(format!("{} {} {:?} {} {:o}", path.display(), found.len(), times, found.ino(), found.mode()));
            if found.is_dir() {
                folders.push(path);
            }
        }
    }
    lines.sort();
    lines
}
