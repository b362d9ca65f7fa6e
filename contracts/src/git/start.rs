//! A repository when an execution begins.

use camino::{Utf8Path, Utf8PathBuf};
use serde::{Deserialize, Serialize};

use super::repository::{Repository, Status};
use super::{Changes, GitError};

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct GitStart {
    /// The top folder of the work tree.
    pub root: Utf8PathBuf,
    pub commit: String,
    /// The full name of the branch that was checked out. `None` if there was none.
    pub branch: Option<String>,
    pub changed: Vec<String>,
    /// The files that were not tracked, without ignored ones.
    pub untracked: Vec<String>,
}

impl GitStart {
    pub fn record(folder: &Utf8Path) -> Result<Result<Self, Refusal>, GitError> {
        let Some(repository) = Repository::of(folder)? else { return Ok(Err(Refusal::NoRepository)) };
        let Some(commit) = repository.head()? else { return Ok(Err(Refusal::NoCommit)) };
        let branch = repository.branch()?;
        let Status { mut changed, untracked, submodules } = Status::read(&repository)?;
        // A reset cannot restore what a submodule contains, so it counts as a change.
        changed.extend(submodules);
        Ok(Ok(Self { root: repository.root, commit, branch, changed, untracked }))
    }

    pub fn changed_without(&self, protected: &Protected) -> Vec<String> {
        let protected = protected.within(&self.root);
        self.changed.iter().filter(|path| !is_protected(path, &protected)).cloned().collect()
    }

    pub fn is_same_state(&self, other: &Self, protected: &Protected) -> bool {
        let within = protected.within(&self.root);
        let files = |paths: &[String]| -> Vec<String> {
            paths.iter().filter(|path| !is_protected(path, &within)).cloned().collect()
        };
        (&self.root, &self.commit, &self.branch) == (&other.root, &other.commit, &other.branch)
            && files(&self.changed) == files(&other.changed)
            && files(&self.untracked) == files(&other.untracked)
    }

    pub fn changes(&self, folder: &Utf8Path) -> Result<Changes, GitError> {
        let Some(repository) = Repository::of(folder)? else { return Ok(Changes::default()) };
        let untracked = Status::read(&repository)?.untracked;
        // Files that were there before are not work of the execution.
        let new = untracked.iter().filter(|path| !self.untracked.contains(path)).count();
        Changes::count(&repository, &self.commit, new)
    }
}

/// Paths that a reset neither changes nor removes.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Protected {
    rules: Vec<Rule>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Rule {
    File(Utf8PathBuf),
    /// A store and the files that the program writes next to it.
    Store(Utf8PathBuf),
    Folder(Utf8PathBuf),
}

impl Protected {
    pub fn file(&mut self, path: &Utf8Path) {
        self.rules.extend(absolute(path).map(Rule::File));
    }

    /// Protects a store, and what the program writes next to it: the evidence, torn lines, and copies before a compaction.
    pub fn store(&mut self, path: &Utf8Path) {
        self.rules.extend(absolute(path).map(Rule::Store));
    }

    pub fn folder(&mut self, path: &Utf8Path) {
        self.rules.extend(absolute(path).map(Rule::Folder));
    }

    /// Returns a protected folder that contains a whole repository, in which a reset could restore nothing.
    pub(super) fn folder_around(&self, root: &Utf8Path) -> Option<&Utf8Path> {
        self.rules.iter().find_map(|rule| match rule {
            Rule::Folder(folder) if root.starts_with(folder) => Some(folder.as_path()),
            _ => None,
        })
    }

    pub(super) fn within(&self, root: &Utf8Path) -> Vec<Rule> {
        self.rules.iter().filter_map(|rule| rule.within(root)).collect()
    }
}

impl Rule {
    fn within(&self, root: &Utf8Path) -> Option<Self> {
        let relative = |path: &Utf8PathBuf| {
            path.strip_prefix(root).ok().filter(|path| !path.as_str().is_empty()).map(Utf8Path::to_owned)
        };
        match self {
            Rule::File(path) => relative(path).map(Rule::File),
            Rule::Store(path) => relative(path).map(Rule::Store),
            Rule::Folder(path) => relative(path).map(Rule::Folder),
        }
    }

    fn includes(&self, path: &str) -> bool {
        match self {
            Rule::File(file) => path == file.as_str(),
            Rule::Store(store) => path.strip_prefix(store.as_str()).is_some_and(is_end_of_store),
            Rule::Folder(folder) => path.strip_prefix(folder.as_str()).is_some_and(|rest| rest.starts_with('/')),
        }
    }
}

pub(super) fn is_protected(path: &str, rules: &[Rule]) -> bool {
    rules.iter().any(|rule| rule.includes(path))
}

/// True for what may follow the path of a store: nothing, or the end of the name of a file that belongs to it.
fn is_end_of_store(rest: &str) -> bool {
    // `.index`: an older version of the program may still be in use, or have left its index.
    let is_sibling = || [".index", ".torn-", ".before-"].iter().any(|end| rest.starts_with(end)) && !rest.contains('/');
    rest.is_empty() || rest.starts_with(".files/") || is_sibling()
}

/// Returns the absolute path without symbolic links. Its last part need not exist.
fn absolute(path: &Utf8Path) -> Option<Utf8PathBuf> {
    if let Ok(path) = path.canonicalize_utf8() {
        return Some(path);
    }
    let name = path.file_name()?;
    let parent = path.parent().filter(|parent| !parent.as_str().is_empty()).unwrap_or(Utf8Path::new("."));
    // A folder that does not exist contains nothing to protect yet; its parent may be a link.
    absolute(parent).map(|parent| parent.join(name))
}

/// Number of paths that a reason lists.
const LISTED: usize = 5;

/// Why a reset is refused. Nothing was changed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Refusal {
    #[error("the working directory is not in a git repository")]
    NoRepository,
    #[error("the repository has no commit to return to")]
    NoCommit,
    #[error("the working directory is in another repository than at the start")]
    OtherRepository,
    #[error("these files had changes that were not committed before the execution began: {}", list(.0))]
    ChangedBefore(Vec<String>),
    #[error("these files existed before the execution began and were committed since: {}", list(.0))]
    TrackedSince(Vec<String>),
    #[error("{} was checked out at the start, and {} is now", branch_title(.before.as_deref()), branch_title(.now.as_deref()))]
    OtherBranch { before: Option<String>, now: Option<String> },
    #[error("history was rewritten: start commit {commit} is not an ancestor of HEAD")]
    NotADescendant { commit: String },
    /// An operation such as a merge.
    #[error("{0} is in progress")]
    InProgress(&'static str),
    #[error("files outside of the working directory have changed: {}", list(.0))]
    OutsideChanges(Vec<String>),
    /// A reset does not restore the changes of submodules.
    #[error("submodules have changes: {}", list(.0))]
    Submodules(Vec<String>),
    /// A commit of the outer repository cannot save the files of an inner one.
    #[error("new folders are repositories of their own: {}", list(.0))]
    NestedRepositories(Vec<String>),
    #[error(
        "the ignore rules have changed, and new files cannot be distinguished from ignored ones; review the changes \
         and undo them by hand: {}",
        list(.0)
    )]
    IgnoreRulesChanged(Vec<String>),
    #[error("the folder `{0}` is protected and contains the whole repository; use another folder")]
    AllProtected(Utf8PathBuf),
    #[error("another process made a commit or switched the branch during the reset; try again")]
    ChangedMeanwhile,
    #[error("the repository has a sparse checkout")]
    Sparse,
}

impl Refusal {
    pub const fn code(&self) -> &'static str {
        match self {
            Refusal::NoRepository => "no_repository",
            Refusal::NoCommit => "no_commit",
            Refusal::OtherRepository => "other_repository",
            Refusal::ChangedBefore(_) => "changed_before",
            Refusal::TrackedSince(_) => "tracked_since",
            Refusal::OtherBranch { .. } => "other_branch",
            Refusal::NotADescendant { .. } => "not_a_descendant",
            Refusal::InProgress(_) => "in_progress",
            Refusal::OutsideChanges(_) => "outside_changes",
            Refusal::Submodules(_) => "submodules",
            Refusal::NestedRepositories(_) => "nested_repositories",
            Refusal::IgnoreRulesChanged(_) => "ignore_rules_changed",
            Refusal::AllProtected(_) => "all_protected",
            Refusal::ChangedMeanwhile => "changed_meanwhile",
            Refusal::Sparse => "sparse_checkout",
        }
    }
}

fn branch_title(branch: Option<&str>) -> String {
    match branch {
        Some(branch) => format!("`{}`", branch.strip_prefix("refs/heads/").unwrap_or(branch)),
        None => "no branch".to_owned(),
    }
}

fn list(paths: &[String]) -> String {
    let listed = paths.iter().take(LISTED).map(|path| format!("`{path}`")).collect::<Vec<_>>().join(", ");
    match paths.len().saturating_sub(LISTED) {
        0 => listed,
        more => format!("{listed} and {more} more"),
    }
}
