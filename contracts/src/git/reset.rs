//! Resets a repository to the start of an execution, after saving everything that the reset discards.

use std::collections::HashSet;
use std::{fs, io};

use camino::{Utf8Path, Utf8PathBuf};

use super::repository::{Repository, Status};
use super::start::{Rule, is_protected};
use super::{GitError, GitStart, Protected, Refusal};

const IGNORE_RULES: &str = ".gitignore";

const LISTED_COMMITS: &str = "20";

#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Discarded {
    /// The commits since the start, newest first: a short hash and the subject. At most 20.
    pub commits: Vec<String>,
    pub changed: Vec<String>,
    pub removed: Vec<String>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ResetPlan {
    repository: Repository,
    head: String,
    /// The paths that differ from that commit, without protected ones and those that were not tracked at the start.
    uncommitted: Vec<String>,
    pub discarded: Discarded,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Reset {
    pub discarded: Discarded,
    /// The reference that has all of it. `None` if nothing was discarded.
    pub saved: Option<String>,
}

impl Reset {
    /// Returns the command that gets everything back as a new branch. `root` is the top folder of the repository.
    pub fn way_back(&self, root: &Utf8Path) -> Option<String> {
        let saved = self.saved.as_deref()?;
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
        if parts.is_empty() { "nothing".to_owned() } else { parts.join(", ") }
    }
}

/// Checks whether a folder can be reset to a start, and what that would discard. Changes nothing.
pub fn plan(
    start: &GitStart,
    folder: &Utf8Path,
    protected: &Protected,
) -> Result<Result<ResetPlan, Refusal>, GitError> {
    let Some(repository) = Repository::of(folder)? else { return Ok(Err(Refusal::NoRepository)) };
    // A repository that was created inside the folder since has other commits.
    if repository.root != start.root {
        return Ok(Err(Refusal::OtherRepository));
    }
    // A reset in the middle of a merge would lose the resolution of conflicts.
    if let Some(operation) = repository.operation()? {
        return Ok(Err(Refusal::InProgress(operation)));
    }
    if let Some(folder) = protected.folder_around(&repository.root) {
        return Ok(Err(Refusal::AllProtected(folder.to_owned())));
    }
    // In a sparse checkout, a missing file may be one that was never checked out, or one that the work has removed.
    if repository.is_sparse()? {
        return Ok(Err(Refusal::Sparse));
    }
    let changed = start.changed_without(protected);
    let protected = protected.within(&repository.root);
    if !changed.is_empty() {
        return Ok(Err(Refusal::ChangedBefore(changed)));
    }
    // Resetting another branch would move commits of someone else.
    let now = repository.branch()?;
    if now != start.branch {
        return Ok(Err(Refusal::OtherBranch { before: start.branch.clone(), now }));
    }
    let commit = start.commit.as_str();
    let is_descendant = |head: &String| {
        // A commit that no longer exists is not an ancestor either.
        matches!(repository.git(&["merge-base", "--is-ancestor", commit, head]).answer(), Ok(true))
    };
    let Some(head) = repository.head()?.filter(is_descendant) else {
        return Ok(Err(Refusal::NotADescendant { commit: commit.to_owned() }));
    };
    let status = Status::read(&repository)?;
    if !status.submodules.is_empty() {
        return Ok(Err(Refusal::Submodules(status.submodules)));
    }
    let mut uncommitted = status.changed.clone();
    uncommitted.retain(|path| !is_protected(path, &protected));
    let discarded = discarded(&repository, start, status, &protected)?;
    uncommitted.extend_from_slice(&discarded.removed);
    let refusal = check_discarded(&repository, start, &discarded);
    Ok(refusal.map_or(Ok(ResetPlan { repository, head, uncommitted, discarded }), Err))
}

fn discarded(
    repository: &Repository,
    start: &GitStart,
    status: Status,
    protected: &[Rule],
) -> Result<Discarded, GitError> {
    let commit = start.commit.as_str();
    // Everything after the start counts as work of the execution, which had the folder for itself.
    let range = format!("{commit}..HEAD");
    let commits = repository.git(&["log", "-n", LISTED_COMMITS, "--format=%h %s", &range]).text()?;
    // The differences between the commit of the start and the work tree, committed ones included.
    let changed =
        repository.git(&["diff", "--name-only", "-z", "--no-renames", "--no-ext-diff", commit, "--"]).paths()?;
    // A file that was added to the index only is in neither.
    let staged =
        repository.git(&["diff", "--cached", "--name-only", "-z", "--no-renames", "--no-ext-diff", commit, "--"]);
    let mut changed: Vec<String> = changed.into_iter().chain(staged.paths()?).collect();
    changed.sort();
    changed.dedup();
    changed.retain(|path| !is_protected(path, protected));
    let before: HashSet<&String> = start.untracked.iter().collect();
    let is_new = |path: &String| !before.contains(path) && !is_protected(path, protected);
    Ok(Discarded {
        commits: commits.lines().map(str::to_owned).collect(),
        changed,
        removed: status.untracked.into_iter().filter(is_new).collect(),
    })
}

fn check_discarded(repository: &Repository, start: &GitStart, discarded: &Discarded) -> Option<Refusal> {
    // git lists a repository within the work tree as one path with a slash at its end.
    let nested: Vec<String> = discarded.removed.iter().filter(|path| path.ends_with('/')).cloned().collect();
    if !nested.is_empty() {
        return Some(Refusal::NestedRepositories(nested));
    }
    let untracked: HashSet<&String> = start.untracked.iter().collect();
    let tracked: Vec<String> = discarded.changed.iter().filter(|path| untracked.contains(path)).cloned().collect();
    if !tracked.is_empty() {
        return Some(Refusal::TrackedSince(tracked));
    }
    let all = || discarded.changed.iter().chain(&discarded.removed);
    let outside: Vec<String> = all().filter(|path| !path.starts_with(&repository.prefix)).cloned().collect();
    if !outside.is_empty() {
        return Some(Refusal::OutsideChanges(outside));
    }
    // With other rules, a file that was ignored at the start looks new, and a new file looks ignored.
    let has_rules = |path: &&String| Utf8Path::new(path).file_name() == Some(IGNORE_RULES);
    let rules: Vec<String> = all().filter(has_rules).cloned().collect();
    (!rules.is_empty()).then_some(Refusal::IgnoreRulesChanged(rules))
}

/// Resets a folder to a start, if nothing of others would be lost. Saves the discarded work under `name` first.
///
/// After a crash in between, a second call ends in the same state.
pub fn reset(
    start: &GitStart,
    folder: &Utf8Path,
    protected: &Protected,
    name: &str,
) -> Result<Result<Reset, Refusal>, GitError> {
    let ResetPlan { repository, head, uncommitted, discarded } = match plan(start, folder, protected)? {
        Ok(plan) => plan,
        Err(refusal) => return Ok(Err(refusal)),
    };
    if discarded.is_empty() {
        return Ok(Ok(Reset { discarded, saved: None }));
    }
    // Saved before anything is discarded. The reference keeps the commit from being collected as garbage.
    let saved = save(&repository, &head, &uncommitted, name)?;
    // Other commits are not in what was saved.
    if repository.head()?.as_ref() != Some(&head) || repository.branch()? != start.branch {
        return Ok(Err(Refusal::ChangedMeanwhile));
    }
    // Not `--hard`, which would also change protected files.
    repository.git(&["reset", "--mixed", "--quiet", &start.commit]).output()?;
    // What has changed since the plan is not saved, and stays.
    let saved_paths: HashSet<&String> = discarded.changed.iter().chain(&discarded.removed).collect();
    // New files first: one may be in the place of a folder that is restored then.
    for path in Status::read(&repository)?.untracked.iter().filter(|path| saved_paths.contains(path)) {
        remove(&repository.root, path)?;
    }
    let changed = repository.git(&["diff", "--name-only", "-z", "--no-renames", "--no-ext-diff"]).paths()?;
    let restored: Vec<String> = changed.into_iter().filter(|path| saved_paths.contains(path)).collect();
    // git refuses an empty list of paths.
    if !restored.is_empty() {
        let arguments = ["restore", "--worktree", "--pathspec-from-file=-", "--pathspec-file-nul"];
        repository.git(&arguments).literal().with_paths(&restored).output()?;
    }
    Ok(Ok(Reset { discarded, saved: Some(saved) }))
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

/// Saves the commit `head` and these paths of the work tree on top of it as a commit. Returns its reference.
pub(super) fn save(repository: &Repository, head: &str, paths: &[String], name: &str) -> Result<String, GitError> {
    // An index file of its own: what the user has staged stays as it is, also if this is killed.
    let folder = tempfile::Builder::new().prefix("counterproof-index-").tempdir().map_err(GitError::Start)?;
    let index = folder.path().join("index");
    let git = |arguments: &[&str]| repository.git(arguments).with_index(&index).with_author();
    git(&["read-tree", head]).output()?;
    git(&["update-index", "--add", "--remove", "--replace", "-z", "--stdin"]).with_paths(paths).output()?;
    let tree = git(&["write-tree"]).text()?;
    let message = format!("Work of `{name}` before its rollback");
    let commit = git(&["commit-tree", &tree, "-p", head, "-m", &message]).text()?;
    let encoded = encode(name);
    // A reference is never moved: an earlier saved state must stay reachable.
    for number in 1..=MAX_SAVED {
        let reference = format!("{REFS}/{encoded}/{number}");
        if repository.git(&["show-ref", "--verify", "--quiet", &reference]).answer()? {
            continue;
        }
        // The empty old value: the reference must not exist.
        repository.git(&["update-ref", &reference, &commit, ""]).output()?;
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
