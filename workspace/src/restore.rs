//! Makes workspaces: new ones, and ones that are as in a snapshot again.
//!
//! ```text
//! tree ─▶ git, in a new folder of ours ─▶ renamed as a whole:    a new workspace
//!                                      └▶ file by file:          a workspace that exists, whose entries git never sees
//! ```
//!
//! A workspace that exists can have anything in it: links in the place of folders, pipes in the place of files that git reads. So
//! git writes only into new folders, and a file is moved to its place after every folder above it was found to be one.

use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::fmt::Write as _;
use std::fs;
use std::io;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};

use camino::{Utf8Component, Utf8Path};
use counterproof_store::write::{Durability, StagedFolder, create_folder, write};

use crate::files::{LeftOutReason, Rules, WorkspaceFiles, file_stat, opening};
use crate::git::Git;
use crate::publish::EXCLUDES;
use crate::repository::{StoredRepository, TreeEntry, WorkspaceError, below, display, object_name};
use crate::snapshot::{Snapshot, Workspace, file_system_time};
use crate::stat_cache::{Header, StatCache};
use crate::store::{ATTRIBUTES, NAMES};

/// The branch that the agent sees.
const BRANCH: &str = "counterproof";

impl StoredRepository {
    /// Creates a workspace in a folder that does not exist, with the files of a commit.
    pub fn create(&self, commit: &str, folder: &Utf8Path) -> Result<Workspace, WorkspaceError> {
        let snapshot = Snapshot {
            repository: self.id.clone(),
            base: commit.to_owned(),
            commit: commit.to_owned(),
            tree: self.tree_of(commit)?,
            empty_folders: Vec::new(),
            include_ignored: Vec::new(),
            left_out: Vec::new(),
        };
        self.new_workspace(&snapshot, folder)
    }

    /// Makes the folder a workspace with exactly the files of a snapshot. In a folder that exists, ignored files are kept, and the
    /// `.git` of the agent is made anew.
    pub fn restore(&self, snapshot: &Snapshot, folder: &Utf8Path) -> Result<Workspace, WorkspaceError> {
        if snapshot.repository != self.id {
            return Err(WorkspaceError::OtherRepository(snapshot.repository.clone()));
        }
        match folder.symlink_metadata() {
            Ok(found) if found.is_dir() => return self.restore_in_place(snapshot, folder),
            Ok(_) => fs::remove_file(folder).map_err(WorkspaceError::file(folder))?,
            Err(_) => {}
        }
        self.new_workspace(snapshot, folder)
    }

    fn new_workspace(&self, snapshot: &Snapshot, folder: &Utf8Path) -> Result<Workspace, WorkspaceError> {
        if folder.symlink_metadata().is_ok() {
            return Err(WorkspaceError::Exists(folder.to_owned()));
        }
        create_folder(folder.parent().unwrap_or(folder))?;
        let _ = fs::remove_file(StatCache::path(folder));
        let staged = StagedFolder::new(folder, "workspace")?;
        let git_folder = staged.path().join(".git");
        self.write_git_folder(&git_folder, &snapshot.base)?;
        let git = |arguments: &[&str]| self.git_for_agent(&git_folder, staged.path(), arguments);
        git(&["read-tree", "--reset", "-u", object_name(&snapshot.tree)?]).output()?;
        if snapshot.commit != snapshot.base {
            // The index of the base, with what git knows about the files that are the same.
            git(&["read-tree", "--reset", object_name(&snapshot.base)?]).output()?;
        }
        let mut places = Places::new(staged.path());
        for path in &snapshot.empty_folders {
            places.create_folder(checked(path)?)?;
        }
        staged.publish()?;
        let target = self.tree(&snapshot.tree)?;
        self.workspace(snapshot, folder, &target)
    }

    fn restore_in_place(&self, snapshot: &Snapshot, folder: &Utf8Path) -> Result<Workspace, WorkspaceError> {
        let cache = StatCache::read(folder).filter(|cache| cache.header.repository == self.id);
        // Until the end, the folder is not a workspace: this may be interrupted.
        match fs::remove_file(StatCache::path(folder)) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(WorkspaceError::file(folder)(error)),
            _ => {}
        }
        let target = self.tree(&snapshot.tree)?;
        let mut places = Places::new(folder);
        let wanted = self.wanted(cache.as_ref(), snapshot, &target, &mut places)?;
        let staged = StagedFolder::new(folder, "restore")?;
        let files = staged.path().join("files");
        let git_folder = staged.path().join("git");
        create_folder(&files)?;
        self.check_out(&snapshot.tree, &wanted, staged.path(), &files)?;
        for path in &wanted {
            places.place(&below(&files, path), path)?;
        }
        self.remove_others(snapshot, folder, &target)?;
        // After the removals, which may have closed or removed folders.
        let mut places = Places::new(folder);
        for (path, _) in target.iter().filter(|(_, entry)| entry.is_submodule()) {
            places.create_folder(path)?;
        }
        for path in &snapshot.empty_folders {
            places.create_folder(checked(path)?)?;
        }
        self.write_git_folder(&git_folder, &snapshot.base)?;
        self.git_for_agent(&git_folder, &files, &["read-tree", object_name(&snapshot.base)?]).output()?;
        let in_place = folder.join(".git");
        remove_tree(in_place.as_std_path())?;
        rename(git_folder.as_std_path(), in_place.as_std_path())?;
        self.workspace(snapshot, folder, &target)
    }

    /// Returns the files of the target that are not as they have to be.
    fn wanted(
        &self,
        cache: Option<&StatCache>,
        snapshot: &Snapshot,
        target: &[(Vec<u8>, TreeEntry)],
        places: &mut Places<'_>,
    ) -> Result<Vec<Vec<u8>>, WorkspaceError> {
        let files = target.iter().filter(|(_, entry)| !entry.is_submodule()).map(|(path, _)| path);
        let Some(cache) = cache else { return Ok(files.cloned().collect()) };
        let known = object_name(&cache.header.tree)?;
        let arguments = ["diff-tree", "-r", "-z", "--name-only", "--no-renames", known, object_name(&snapshot.tree)?];
        // The snapshot that the folder was made from may be removed.
        let Ok(changed) = self.git(&arguments).output() else { return Ok(files.cloned().collect()) };
        let changed: HashSet<&[u8]> = changed.split(|byte| *byte == 0).collect();
        let mut wanted = Vec::new();
        for path in files {
            let is_same = !changed.contains(path.as_slice())
                && places.has_real_parents(path)
                && below(places.root, path)
                    .symlink_metadata()
                    .ok()
                    .and_then(|metadata| file_stat(&metadata))
                    .is_some_and(|stat| cache.is_unchanged(path, &stat));
            if !is_same {
                wanted.push(path.clone());
            }
        }
        Ok(wanted)
    }

    /// Writes files of a tree into an empty folder.
    fn check_out(
        &self,
        tree: &str,
        paths: &[Vec<u8>],
        temporary: &Utf8Path,
        folder: &Utf8Path,
    ) -> Result<(), WorkspaceError> {
        let git = |arguments: &[&str]| {
            self.git(arguments)
                .with("GIT_WORK_TREE", folder.as_str())
                .with("GIT_INDEX_FILE", temporary.join("index").as_str())
        };
        git(&["read-tree", object_name(tree)?]).output()?;
        let listed: Vec<u8> = paths.iter().flat_map(|path| [path.as_slice(), b"\0"].concat()).collect();
        let prefix = format!("--prefix={folder}/");
        git(&["checkout-index", "--force", "-z", "--stdin", &prefix]).with_input(listed).output()?;
        Ok(())
    }

    /// Removes everything that is neither in the target nor ignored by its rules.
    fn remove_others(
        &self,
        snapshot: &Snapshot,
        folder: &Utf8Path,
        target: &[(Vec<u8>, TreeEntry)],
    ) -> Result<(), WorkspaceError> {
        let wanted: BTreeSet<Vec<u8>> = target.iter().map(|(path, _)| path.clone()).collect();
        let found = self.read_files(snapshot, folder, target)?;
        let kept_git: BTreeSet<&str> = snapshot.left_out.iter().map(|left_out| left_out.path.as_str()).collect();
        let is_kept = |path: &[u8], reason: &LeftOutReason| {
            *reason == LeftOutReason::NestedGit && std::str::from_utf8(path).is_ok_and(|path| kept_git.contains(path))
        };
        let others = found.files.keys().filter(|path| !wanted.contains(*path));
        let left_out = found.left_out.iter().filter(|(path, reason)| !is_kept(path, reason)).map(|(path, _)| path);
        for path in others.chain(left_out).chain(&found.empty_folders) {
            let full = below(folder, path);
            if found.empty_folders.contains(path) {
                // It may have ignored files.
                let _ = fs::remove_dir(&full);
            } else {
                remove_tree(&full)?;
            }
            for parent in full.ancestors().skip(1).take_while(|parent| *parent != folder.as_std_path()) {
                if fs::remove_dir(parent).is_err() {
                    break;
                }
            }
        }
        Ok(())
    }

    fn read_files(
        &self,
        snapshot: &Snapshot,
        folder: &Utf8Path,
        target: &[(Vec<u8>, TreeEntry)],
    ) -> Result<WorkspaceFiles, WorkspaceError> {
        let base = self.tree(&snapshot.base)?;
        let wanted: HashSet<&[u8]> = target.iter().map(|(path, _)| path.as_slice()).collect();
        // What the target has despite the rules, such as what the options of the snapshot name, is not looked at as ignored.
        let tracked: BTreeSet<Vec<u8>> = base.iter().chain(target).map(|(path, _)| path.clone()).collect();
        let tracked = Arc::new(tracked);
        let header = self.header(snapshot, &base);
        let rules = Rules {
            excludes: &self.excludes(),
            tracked: &|| Ok(Arc::clone(&tracked)),
            include_ignored: &snapshot.include_ignored,
            submodules: &header.submodules,
            applies: &|path| wanted.contains(path),
        };
        WorkspaceFiles::read(folder, &rules)
    }

    fn header(&self, snapshot: &Snapshot, base: &[(Vec<u8>, TreeEntry)]) -> Header {
        let Snapshot { base: commit, commit: saved, tree, .. } = snapshot;
        Header::new(self.id.clone(), commit.clone(), saved.clone(), tree.clone()).with_submodules(base)
    }

    /// Checks that the folder is as in the snapshot, and writes what later snapshots compare with.
    fn workspace(
        &self,
        snapshot: &Snapshot,
        folder: &Utf8Path,
        target: &[(Vec<u8>, TreeEntry)],
    ) -> Result<Workspace, WorkspaceError> {
        let read_at = file_system_time(folder)?;
        let found = self.read_files(snapshot, folder, target)?;
        let expected: BTreeMap<&[u8], &str> =
            target.iter().map(|(path, entry)| (path.as_slice(), entry.mode.as_str())).collect();
        let is_known = |path: &[u8], mode: &str| match expected.get(path) {
            // Old repositories have other permissions of the group.
            Some(expected) => *expected == mode || (*expected == "100664" && mode == "100644"),
            None => false,
        };
        let other =
            found.files.iter().find(|(path, stat)| !is_known(path, stat.kind.mode())).map(|(path, _)| path.as_slice());
        let missing = || expected.keys().find(|path| !found.files.contains_key(**path)).copied();
        if let Some(path) = other.or_else(missing) {
            return Err(WorkspaceError::NotRestored(display(path)));
        }
        let mut header = self.header(snapshot, &self.tree(&snapshot.base)?);
        header.read_at = read_at;
        let cache = StatCache { header, files: found.files };
        cache.write(folder)?;
        Ok(Workspace { store: self.clone(), folder: folder.to_owned(), cache, tracked: OnceLock::new() })
    }

    /// Writes the `.git` of a workspace. It finds all objects in the store, and what it adds stays in it.
    fn write_git_folder(&self, folder: &Utf8Path, base: &str) -> Result<(), WorkspaceError> {
        for name in ["objects/info", "objects/pack", "refs/heads", "refs/tags", "info"] {
            create_folder(&folder.join(name))?;
        }
        let put = |name: &str, text: &[u8]| write(&folder.join(name), text, Durability::Cached);
        let format = if base.len() == 64 { "1\n[extensions]\n\tobjectFormat = sha256\n" } else { "0\n" };
        put(
            "config",
            format!("[core]\n\tbare = false\n\tlogAllRefUpdates = true\n{NAMES}\trepositoryFormatVersion = {format}")
                .as_bytes(),
        )?;
        put("HEAD", format!("ref: refs/heads/{BRANCH}\n").as_bytes())?;
        put(&format!("refs/heads/{BRANCH}"), format!("{base}\n").as_bytes())?;
        put("objects/info/alternates", format!("{}\n", self.path.join("objects")).as_bytes())?;
        put("info/attributes", ATTRIBUTES.as_bytes())?;
        put(EXCLUDES, &self.excludes())?;
        // Tools that compute a version read the tags.
        let tags = self.git(&["for-each-ref", "--format=%(objectname) %(refname)", "refs/tags"]).output()?;
        let mut packed = b"# pack-refs with: sorted \n".to_vec();
        packed.extend(tags);
        put("packed-refs", &packed)?;
        if let Ok(shallow) = fs::read(self.path.join("shallow")) {
            put("shallow", &shallow)?;
        }
        Ok(())
    }

    /// Creates a command on the `.git` of a workspace, which no agent has seen yet.
    fn git_for_agent(&self, git_folder: &Utf8Path, work_tree: &Utf8Path, arguments: &[&str]) -> Git {
        self.git(arguments).with("GIT_DIR", git_folder.as_str()).with("GIT_WORK_TREE", work_tree.as_str())
    }
}

/// The places of files in a folder that may have anything in it.
struct Places<'a> {
    root: &'a Utf8Path,
    /// Folders that were found to be folders and not links.
    real: HashSet<PathBuf>,
}

impl<'a> Places<'a> {
    fn new(root: &'a Utf8Path) -> Self {
        Self { root, real: HashSet::new() }
    }

    fn has_real_parents(&mut self, path: &[u8]) -> bool {
        let full = below(self.root, path);
        self.parents(&full).iter().all(|parent| self.is_real(parent))
    }

    /// Returns the folders above a path and below the root, the outermost first.
    fn parents(&self, full: &Path) -> Vec<PathBuf> {
        let above = full.ancestors().skip(1).take_while(|parent| *parent != self.root.as_std_path());
        let mut parents: Vec<PathBuf> = above.map(Path::to_owned).collect();
        parents.reverse();
        parents
    }

    fn is_real(&mut self, folder: &Path) -> bool {
        let is_real = self.real.contains(folder) || folder.symlink_metadata().is_ok_and(|found| found.is_dir());
        if is_real && !self.real.contains(folder) {
            self.real.insert(folder.to_owned());
        }
        is_real
    }

    /// Moves a file to its place, and removes what is there.
    fn place(&mut self, from: &Path, path: &[u8]) -> Result<(), WorkspaceError> {
        let full = below(self.root, path);
        for parent in self.parents(&full) {
            self.make_real(&parent)?;
        }
        if full.symlink_metadata().is_ok_and(|found| found.is_dir()) {
            remove_tree(&full)?;
        }
        let folder = full.parent().unwrap_or(&full);
        opening(folder, || move_file(from, &full)).map_err(WorkspaceError::file(&full))
    }

    fn create_folder(&mut self, path: &[u8]) -> Result<(), WorkspaceError> {
        let full = below(self.root, path);
        for folder in self.parents(&full).into_iter().chain([full]) {
            self.make_real(&folder)?;
        }
        Ok(())
    }

    /// Makes a path a folder that can be written to.
    fn make_real(&mut self, folder: &Path) -> Result<(), WorkspaceError> {
        if self.is_real(folder) {
            return Ok(());
        }
        let parent = folder.parent().unwrap_or(folder);
        let make = || {
            match fs::remove_file(folder) {
                Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
                _ => {}
            }
            fs::create_dir(folder)
        };
        opening(parent, make).map_err(WorkspaceError::file(folder))?;
        self.real.insert(folder.to_owned());
        Ok(())
    }
}

/// Checks a path from a record, which may come from another machine.
fn checked(path: &str) -> Result<&[u8], WorkspaceError> {
    let is_name =
        |part: Utf8Component<'_>| matches!(part, Utf8Component::Normal(name) if !name.eq_ignore_ascii_case(".git"));
    if !path.is_empty() && !path.contains('\0') && Utf8Path::new(path).components().all(is_name) {
        Ok(path.as_bytes())
    } else {
        let mut text = String::new();
        let _ = write!(text, "invalid folder {path:?}");
        Err(WorkspaceError::NotRestored(text))
    }
}

/// Removes a file, a link, or a folder with all that is in it, also a folder that is closed to its owner.
fn remove_tree(path: &Path) -> Result<(), WorkspaceError> {
    let parent = path.parent().unwrap_or(path);
    let remove = || match path.symlink_metadata() {
        Ok(found) if found.is_dir() => fs::remove_dir_all(path),
        Ok(_) => fs::remove_file(path),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        Err(error) => Err(error),
    };
    let result = match opening(parent, remove) {
        Err(error) if error.kind() == io::ErrorKind::PermissionDenied => {
            open_folders(path);
            remove()
        }
        result => result,
    };
    result.map_err(WorkspaceError::file(path))
}

/// Opens a folder and those in it to their owner. What cannot be opened makes the removal fail.
fn open_folders(folder: &Path) {
    let mut folders = vec![folder.to_owned()];
    while let Some(folder) = folders.pop() {
        if !folder.symlink_metadata().is_ok_and(|found| found.is_dir()) {
            continue;
        }
        let _ = fs::set_permissions(&folder, fs::Permissions::from_mode(0o700));
        folders.extend(fs::read_dir(&folder).into_iter().flatten().filter_map(Result::ok).map(|entry| entry.path()));
    }
}

fn move_file(from: &Path, to: &Path) -> io::Result<()> {
    #[expect(clippy::disallowed_methods, reason = "a workspace need not survive a power loss: its snapshots do")]
    fs::rename(from, to)
}

fn rename(from: &Path, to: &Path) -> Result<(), WorkspaceError> {
    move_file(from, to).map_err(WorkspaceError::file(to))
}
