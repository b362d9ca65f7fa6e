//! Why a reset is refused: it would throw away work that is not the contract's, or it could not restore everything.

use std::fmt;

use camino::Utf8PathBuf;

/// Number of paths that a reason lists.
const LISTED: usize = 5;

/// Why a reset is refused. Nothing was changed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Refusal {
    /// The working directory is in no repository.
    NoRepository,
    /// The repository has no commit to return to.
    NoCommit,
    /// The repository is another one than at the start.
    OtherRepository,
    /// Files had changes before the execution began.
    ChangedBefore(Vec<String>),
    /// Files were not tracked before the execution began, and are tracked now.
    TrackedSince(Vec<String>),
    /// Another branch is checked out.
    OtherBranch {
        /// The branch at the start.
        before: Option<String>,
        now: Option<String>,
    },
    /// The history was rewritten: the commit of the start is no ancestor.
    NotADescendant {
        /// The commit of the start.
        commit: String,
    },
    /// An operation such as a merge is in progress.
    InProgress(&'static str),
    /// Files outside of the working directory have changed.
    OutsideChanges(Vec<String>),
    /// Submodules have changes, which a reset does not restore.
    Submodules(Vec<String>),
    /// New folders are repositories of their own, which cannot be saved.
    NestedRepositories(Vec<String>),
    /// Files with ignore rules have changed: new files cannot be distinguished from files that were ignored at the start.
    IgnoreRulesChanged(Vec<String>),
    /// A protected folder contains the whole repository.
    AllProtected(Utf8PathBuf),
    /// Another process made a commit or switched the branch during the reset.
    ChangedMeanwhile,
    /// Only a part of the files is checked out.
    Sparse,
}

impl Refusal {
    /// Returns the stable code.
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

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Refusal::NoRepository => f.write_str("the working directory is in no git repository"),
            Refusal::NoCommit => f.write_str("the repository has no commit to return to"),
            Refusal::OtherRepository => f.write_str("the working directory is in another repository than at the start"),
            Refusal::ChangedBefore(paths) => {
                write!(f, "these files had changes that were not committed before the execution began: {}", list(paths))
            }
            Refusal::TrackedSince(paths) => {
                write!(f, "these files existed before the execution began and were committed since: {}", list(paths))
            }
            Refusal::OtherBranch { before, now } => {
                let name = |branch: &Option<String>| match branch {
                    Some(branch) => format!("`{}`", branch.strip_prefix("refs/heads/").unwrap_or(branch)),
                    None => "no branch".to_owned(),
                };
                write!(f, "{} was checked out at the start, and {} is now", name(before), name(now))
            }
            Refusal::NotADescendant { commit } => {
                write!(
                    f,
                    "the history was rewritten: the commit {commit} of the start is no ancestor of the current one"
                )
            }
            Refusal::InProgress(operation) => write!(f, "{operation} is in progress"),
            Refusal::OutsideChanges(paths) => {
                write!(f, "files outside of the working directory have changed: {}", list(paths))
            }
            Refusal::Submodules(paths) => write!(f, "submodules have changes: {}", list(paths)),
            Refusal::NestedRepositories(paths) => {
                write!(f, "new folders are repositories of their own: {}", list(paths))
            }
            Refusal::IgnoreRulesChanged(paths) => write!(
                f,
                "the ignore rules have changed, and new files cannot be distinguished from ignored ones; review the \
                 changes and undo them by hand: {}",
                list(paths)
            ),
            Refusal::AllProtected(folder) => {
                write!(f, "the folder `{folder}` is protected and contains the whole repository; use another folder")
            }
            Refusal::ChangedMeanwhile => {
                f.write_str("another process made a commit or switched the branch during the reset; try again")
            }
            Refusal::Sparse => f.write_str("the repository has a sparse checkout"),
        }
    }
}

fn list(paths: &[String]) -> String {
    let listed = paths.iter().take(LISTED).map(|path| format!("`{path}`")).collect::<Vec<_>>().join(", ");
    match paths.len().saturating_sub(LISTED) {
        0 => listed,
        more => format!("{listed} and {more} more"),
    }
}
