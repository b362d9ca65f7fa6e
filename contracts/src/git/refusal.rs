//! Why a reset is refused.

use camino::Utf8PathBuf;

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
    /// A reset leaves them as they are, and cannot write the tracked files then.
    #[error("these files are kept, and are in the place of tracked files: {}; move them away", list(.0))]
    InTheWay(Vec<String>),
    #[error("the folder `{0}` is protected and contains the whole repository; use another folder")]
    AllProtected(Utf8PathBuf),
    #[error("another process made a commit or switched the branch during the reset; try again")]
    ChangedMeanwhile,
    #[error(
        "another git process holds the index: `{0}` is older than the execution; end the process, or remove the file"
    )]
    IndexLocked(Utf8PathBuf),
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
            Refusal::InTheWay(_) => "in_the_way",
            Refusal::AllProtected(_) => "all_protected",
            Refusal::ChangedMeanwhile => "changed_meanwhile",
            Refusal::IndexLocked(_) => "index_locked",
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

pub(super) fn list(paths: &[String]) -> String {
    let listed = paths.iter().take(LISTED).map(|path| format!("`{path}`")).collect::<Vec<_>>().join(", ");
    match paths.len().saturating_sub(LISTED) {
        0 => listed,
        more => format!("{listed} and {more} more"),
    }
}
