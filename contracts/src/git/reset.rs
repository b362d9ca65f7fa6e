//! Resets a repository to the start of an execution, after saving everything that the reset discards.

use std::collections::BTreeSet;
use std::thread::sleep;
use std::{fs, io};

use camino::{Utf8Path, Utf8PathBuf};
use counterproof_store::read_file;
use counterproof_store::write::{self, Durability};

use super::differences::Differences;
use super::manifest::Manifest;
use super::private::{Entries, Objects, PrivateGit};
use super::refusal::list;
use super::{GitError, GitOptions, GitStart, Protected, Refusal};
use counterproof_workspace::git::{ATTEMPTS, PAUSE};

const LISTED_COMMITS: &str = "20";

/// Maximum size of an index, in bytes.
const MAX_INDEX_BYTES: u64 = 4 << 30;

#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Discarded {
    /// The commits since the start, newest first: a short hash and the subject. At most 20.
    pub commits: Vec<String>,
    pub changed: Vec<String>,
    pub removed: Vec<String>,
    /// Those of `removed` that a commit cannot save: pipes, sockets and devices.
    pub not_saved: Vec<String>,
}

/// A reset that is possible.
#[derive(Debug)]
pub struct ResetPlan {
    private: PrivateGit,
    manifest: Manifest,
    differences: Differences,
    head: String,
    pub discarded: Discarded,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Reset {
    pub discarded: Discarded,
    /// The reference that has all of it. `None` if nothing was discarded.
    pub saved: Option<String>,
    /// The settings and hooks of the repository that the work has changed. A reset leaves them.
    pub settings: Vec<String>,
}

impl Reset {
    /// Returns the command that gets everything back as a new branch. `root` is the top folder of the repository.
    pub fn way_back(&self, root: &Utf8Path) -> Option<String> {
        let saved = self.saved.as_deref()?;
        let root = shell_words::quote(root.as_str());
        Some(format!("git -C {root} switch --create {} {saved}", branch_name(saved)))
    }
}

impl Discarded {
    pub fn is_empty(&self) -> bool {
        self.commits.is_empty() && self.changed.is_empty() && self.removed.is_empty()
    }

    /// Returns the counts in one sentence part, such as `2 commits, 3 changed files, 1 new file`.
    pub fn summary(&self) -> String {
        let count = |number: usize, one: &str, many: &str| match number {
            0 => None,
            1 => Some(format!("1 {one}")),
            number => Some(format!("{number} {many}")),
        };
        let parts = [
            count(self.commits.len(), "commit", "commits"),
            count(self.changed.len(), "changed file", "changed files"),
            count(self.removed.len(), "new file", "new files"),
        ];
        let parts: Vec<String> = parts.into_iter().flatten().collect();
        let text = if parts.is_empty() { "nothing".to_owned() } else { parts.join(", ") };
        match self.not_saved.as_slice() {
            [] => text,
            special => format!("{text}; special files are not saved: {}", list(special)),
        }
    }
}

/// Checks whether a repository can be reset to a start, and what that would discard. Changes no file and no reference.
pub fn plan(
    start: &GitStart,
    protected: &Protected,
    options: &GitOptions,
) -> Result<Result<ResetPlan, Refusal>, GitError> {
    let repository = &start.repository;
    if !repository.exists() {
        return Ok(Err(Refusal::NoRepository));
    }
    if !repository.is_in_place() {
        return Ok(Err(Refusal::OtherRepository));
    }
    repository.check_files()?;
    // A reset in the middle of a merge would lose the resolution of conflicts.
    if let Some(operation) = repository.operation() {
        return Ok(Err(Refusal::InProgress(operation)));
    }
    if let Some(folder) = protected.folder_around(&repository.root) {
        return Ok(Err(Refusal::AllProtected(folder.to_owned())));
    }
    let changed = start.changed_without(protected);
    if !changed.is_empty() {
        return Ok(Err(Refusal::ChangedBefore(changed)));
    }
    // Resetting another branch would move commits of someone else.
    let now = repository.branch(options)?;
    if now != start.branch {
        return Ok(Err(Refusal::OtherBranch { before: start.branch.clone(), now }));
    }
    let (private, manifest, differences) = start.differences(protected, Objects::Repository, options)?;
    let commit = start.commit.as_str();
    let is_descendant = |head: &String| {
        // A commit that no longer exists is not an ancestor either.
        matches!(private.git(&["merge-base", "--is-ancestor", commit, head]).answer(), Ok(Some(_)))
    };
    let Some(head) = repository.head(options)?.filter(is_descendant) else {
        return Ok(Err(Refusal::NotADescendant { commit: commit.to_owned() }));
    };
    // Everything after the start counts as work of the execution, which had the folder for itself.
    let range = format!("{commit}..{head}");
    let commits = private.git(&["rev-list", "-n", LISTED_COMMITS, "--format=%h %s", &range]).text()?;
    let discarded = Discarded {
        commits: commits.lines().filter(|line| !line.starts_with("commit ")).map(str::to_owned).collect(),
        changed: differences.changed().cloned().collect(),
        removed: differences.new.iter().cloned().collect(),
        not_saved: differences.special.iter().cloned().collect(),
    };
    let refusal = refusal(start, &private, &head, &differences)?;
    Ok(refusal.map_or(Ok(ResetPlan { private, manifest, differences, head, discarded }), Err))
}

fn refusal(
    start: &GitStart,
    private: &PrivateGit,
    head: &str,
    differences: &Differences,
) -> Result<Option<Refusal>, GitError> {
    if !differences.submodules.is_empty() {
        return Ok(Some(Refusal::Submodules(differences.submodules.clone())));
    }
    if !differences.nested.is_empty() {
        return Ok(Some(Refusal::NestedRepositories(differences.nested.clone())));
    }
    if !differences.in_the_way.is_empty() {
        return Ok(Some(Refusal::InTheWay(differences.in_the_way.clone())));
    }
    let (committed, _) = private.tree(head)?;
    let tracked: Vec<String> = start.untracked.iter().filter(|path| committed.contains_key(*path)).cloned().collect();
    if !tracked.is_empty() {
        return Ok(Some(Refusal::TrackedSince(tracked)));
    }
    let outside = differences.now.keys().chain(&differences.special).filter(|path| !path.starts_with(&start.prefix));
    let outside: Vec<String> = outside.cloned().collect();
    Ok((!outside.is_empty()).then_some(Refusal::OutsideChanges(outside)))
}

/// Resets a repository to a start, if nothing of others would be lost. Saves the discarded work under `name` first, and compares
/// the files with the start at the end.
///
/// After a crash in between, a second call ends in the same state.
pub fn reset(
    start: &GitStart,
    protected: &Protected,
    name: &str,
    options: &GitOptions,
) -> Result<Result<Reset, Refusal>, GitError> {
    let plan = match plan(start, protected, options)? {
        Ok(plan) => plan,
        Err(refusal) => return Ok(Err(refusal)),
    };
    // Held all the time: a git command of a person would change the index, or find half of the files.
    let lock = start.repository.git_folder.join("index.lock");
    if !take_lock(&lock, start)? {
        return Ok(Err(Refusal::IndexLocked(lock)));
    }
    let done = perform(start, plan, protected, name, options);
    let released = fs::remove_file(&lock).map_err(GitError::file(&lock));
    let done = done?;
    released.map(|()| done)
}

fn perform(
    start: &GitStart,
    plan: ResetPlan,
    protected: &Protected,
    name: &str,
    options: &GitOptions,
) -> Result<Result<Reset, Refusal>, GitError> {
    let settings = plan.manifest.changed_settings(&start.repository);
    let saved = if plan.discarded.is_empty() {
        None
    } else {
        // Saved before anything is discarded. The reference keeps the commit from being collected as garbage.
        let saved = save(start, &plan, name, options)?;
        if !move_branch(start, &plan.head, options)? {
            return Ok(Err(Refusal::ChangedMeanwhile));
        }
        restore(start, &plan)?;
        Some(saved)
    };
    replace_index(start, &plan)?;
    let (_, _, left) = start.differences(protected, Objects::Temporary, options)?;
    let paths = left.paths();
    if !paths.is_empty() {
        return Err(GitError::NotRestored(list(&paths)));
    }
    if start.repository.head(options)?.as_ref() != Some(&start.commit) {
        return Ok(Err(Refusal::ChangedMeanwhile));
    }
    Ok(Ok(Reset { discarded: plan.discarded, saved, settings }))
}

/// Moves the branch back to the start. False if it has other commits by now, which were not saved.
fn move_branch(start: &GitStart, head: &str, options: &GitOptions) -> Result<bool, GitError> {
    let repository = &start.repository;
    if repository.branch(options)? != start.branch {
        return Ok(false);
    }
    let name = start.branch.as_deref().unwrap_or("HEAD");
    // git compares and moves in one step. `--no-deref`: the work may have made the branch an alias of another one.
    let arguments = ["update-ref", "--no-deref", "-m", "counterproof: rollback", name, &start.commit, head];
    match repository.references(options, &arguments).output() {
        Ok(_) => Ok(true),
        Err(_) if repository.head(options)?.as_deref() != Some(head) => Ok(false),
        Err(error) => Err(error),
    }
}

/// Removes the new files, and writes the files that are not as they were.
fn restore(start: &GitStart, plan: &ResetPlan) -> Result<(), GitError> {
    let (private, differences) = (&plan.private, &plan.differences);
    // First: a new file may be in the place of a folder that is restored then, and a pipe in the place of attributes that git reads.
    for path in differences.new.union(&differences.special) {
        remove(&start.repository.root, path)?;
    }
    let mut listed = Vec::new();
    for path in differences.changed() {
        listed.extend_from_slice(path.as_bytes());
        listed.push(0);
    }
    if listed.is_empty() {
        return Ok(());
    }
    private.set_index(&start.commit, plan.manifest.as_found())?;
    // `--force` replaces what is in the place of a file, or of a folder above it. It follows no links.
    private.git(&["checkout-index", "--force", "-z", "--stdin"]).with_input(listed).output()?;
    Ok(())
}

/// Makes the index of the repository that of the start, with its flags.
fn replace_index(start: &GitStart, plan: &ResetPlan) -> Result<(), GitError> {
    let private = &plan.private;
    private.set_index(&start.commit, &Entries::new())?;
    // Exit code 1 means that files differ, such as those that a filter converts.
    private.git(&["update-index", "-q", "--refresh"]).answer()?;
    for (option, paths) in
        [("--assume-unchanged", &plan.manifest.assume_unchanged), ("--skip-worktree", &plan.manifest.skip_worktree)]
    {
        let known = paths.iter().filter(|path| plan.differences.expected.contains_key(*path));
        let listed: Vec<u8> = known.flat_map(|path| path.bytes().chain([0])).collect();
        if !listed.is_empty() {
            private.git(&["update-index", option, "-z", "--stdin"]).with_input(listed).output()?;
        }
    }
    let ours = private.path("index")?;
    let bytes = read_file::read(&ours, MAX_INDEX_BYTES).map_err(GitError::file(&ours))?;
    let index = start.repository.git_folder.join("index");
    write::write(&index, &bytes, Durability::Cached)
        .map_err(|error| GitError::File { path: error.path, source: error.source })
}

/// Takes the lock of the index. Removes one that stays if it is not older than the work, whose processes have all ended. Returns
/// false for an older one: a person may be writing the message of a commit.
fn take_lock(lock: &Utf8Path, start: &GitStart) -> Result<bool, GitError> {
    let mut attempt = 1;
    loop {
        match write::create_new(lock) {
            Ok(_) => return Ok(true),
            Err(error) if error.source.kind() == io::ErrorKind::AlreadyExists && attempt <= ATTEMPTS => sleep(PAUSE),
            Err(error) if error.source.kind() == io::ErrorKind::AlreadyExists && attempt == ATTEMPTS + 1 => {
                if !is_newer(lock, start)? {
                    return Ok(false);
                }
                fs::remove_file(lock).map_err(GitError::file(lock))?;
            }
            Err(error) => return Err(GitError::File { path: error.path, source: error.source }),
        }
        attempt += 1;
    }
}

fn is_newer(lock: &Utf8Path, start: &GitStart) -> Result<bool, GitError> {
    let modified = lock.symlink_metadata().and_then(|found| found.modified()).map_err(GitError::file(lock))?;
    Ok(start.recorded_at.is_some_and(|recorded_at| modified >= recorded_at.into()))
}

/// Removes a file, and the folders above it that are empty then.
fn remove(root: &Utf8Path, path: &str) -> Result<(), GitError> {
    let full = root.join(path);
    // The file may be gone: an interrupted reset is repeated from the start.
    match fs::remove_file(&full) {
        Err(source) if source.kind() != io::ErrorKind::NotFound => return Err(GitError::File { path: full, source }),
        _ => {}
    }
    let mut parent: Option<Utf8PathBuf> = Utf8Path::new(path).parent().map(Utf8Path::to_owned);
    while let Some(folder) = parent.filter(|folder| !folder.as_str().is_empty()) {
        // A folder that is not empty has files that are ignored or protected.
        if fs::remove_dir(root.join(&folder)).is_err() {
            break;
        }
        parent = folder.parent().map(Utf8Path::to_owned);
    }
    Ok(())
}

const REFS: &str = "refs/counterproof/rollback";

const MAX_SAVED: u32 = 100_000;

/// Saves the commit `head` and the differences on top of it as a commit. Returns its reference.
fn save(start: &GitStart, plan: &ResetPlan, name: &str, options: &GitOptions) -> Result<String, GitError> {
    let ResetPlan { private, differences, head, .. } = plan;
    differences.store(start, private)?;
    let (at_start, _) = private.tree(&start.commit)?;
    let (committed, _) = private.tree(head)?;
    let mut changes = differences.now.clone();
    // What was committed and then undone or removed in the work tree.
    let others: BTreeSet<&String> = at_start.keys().chain(committed.keys()).collect();
    for path in others.into_iter().filter(|path| !differences.now.contains_key(*path)) {
        let before = at_start.get(path);
        let is_missing = || start.repository.root.join(path).symlink_metadata().is_err();
        if before != committed.get(path) && (differences.expected.contains_key(path) || is_missing()) {
            changes.insert(path.clone(), before.cloned());
        }
    }
    private.set_index(head, &changes)?;
    let tree = private.write_tree()?;
    let message = format!("Work of `{name}` before its rollback");
    let commit = private.git(&["commit-tree", &tree, "-p", head, "-m", &message]).with_author().text()?;
    let encoded = encode(name);
    let repository = &start.repository;
    // A reference is never moved: an earlier saved state must stay reachable.
    for number in 1..=MAX_SAVED {
        let reference = format!("{REFS}/{encoded}/{number}");
        if repository.references(options, &["show-ref", "--verify", "--quiet", &reference]).answer()?.is_some() {
            continue;
        }
        // The empty old value: the reference must not exist.
        repository.references(options, &["update-ref", "--no-deref", &reference, &commit, ""]).output()?;
        return Ok(reference);
    }
    Err(GitError::Output(format!("show-ref {REFS}/{name}")))
}

/// Encodes a name as one segment of a reference: letters, digits, `_` and `-`, and everything else as `%` and its byte.
fn encode(name: &str) -> String {
    // Not `/` or `~`, so that different names never have the same reference, and none is a folder of another.
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_' || byte == b'-';
    let part = |byte: u8| if plain(byte) { char::from(byte).to_string() } else { format!("%{byte:02X}") };
    name.bytes().map(part).collect()
}

/// Returns the name of a branch for a reference under which work was saved, such as `rolled-back-shop-refund-1`.
pub(super) fn branch_name(reference: &str) -> String {
    let (mut name, encoded) = ("rolled-back-".to_owned(), reference.strip_prefix(REFS).unwrap_or(reference));
    let mut characters = encoded.trim_start_matches('/').chars();
    while let Some(character) = characters.next() {
        match character {
            '%' => {
                name.push('-');
                // The two digits of the byte.
                let _ = characters.nth(1);
            }
            '/' => name.push('-'),
            other => name.push(other),
        }
    }
    name
}
