//! Where pull requests are opened and checked: a local forge of folders and records, and GitHub.
//!
//! A forge neither decides when to push nor records what it did: the caller writes its intent before, and looks for the pull request with
//! [`Forge::find`] when it continues.

mod github;
mod local;
mod push;
mod texts;

use std::time::Duration;

use camino::Utf8Path;
use counterproof_contracts::process::Cancellation;
use counterproof_redaction::Redactor;
use serde::{Deserialize, Serialize};

use crate::suite::TestReport;

pub use github::{GitHubForge, GitHubOptions, Token};
pub use local::LocalForge;
pub use texts::{ChangeTexts, Texts};

/// A commit to push.
#[derive(Debug, Clone, Copy)]
pub struct Push<'a> {
    /// The bare repository that has the commit.
    pub from: &'a Utf8Path,
    pub commit: &'a str,
    pub branch: &'a str,
    /// The commits that the caller has published, perhaps on another machine. The branch may be at any of them, or not exist: the
    /// caller may have been killed before it recorded a push, or may have been rewound.
    pub own: &'a [String],
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewPullRequest {
    pub title: String,
    pub body: String,
    /// The branch to merge into.
    pub base: String,
    /// The branch with the change, which was pushed.
    pub head: String,
    pub base_commit: String,
    pub head_commit: String,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PullRequest {
    pub number: u64,
    pub url: String,
    /// The branch with the change.
    pub head: String,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum CiStatus {
    Pass,
    Fail,
    /// It had not ended after the time limit.
    TimedOut,
    Cancelled,
    /// The forge runs no checks on the commit.
    None,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct CiResult {
    pub status: CiStatus,
    /// The end of the log. Bounded.
    pub log: String,
    /// Where the whole log is: a path or a URL. Empty if there is none.
    pub log_place: String,
}

#[derive(Debug, thiserror::Error)]
pub enum ForgeError {
    #[error("cancelled")]
    Cancelled,
    #[error("cannot reach the repository of the forge")]
    Git(#[source] Box<counterproof_workspace::git::GitError>),
    #[error("the branch `{branch}` of the forge has a commit of others: {found}")]
    Moved { branch: String, found: String },
    #[error("the branch `{0}` is not on the forge, and the pull request could not be for it")]
    NoBase(String),
    #[error("the branch `{branch}` of the forge does not have the commit {commit}, which the push would make public")]
    UnpushedBase { branch: String, commit: String },
    #[error("cannot read or write the pull request `{path}`")]
    Record { path: camino::Utf8PathBuf, source: std::io::Error },
    #[error("{0}")]
    GitHub(String),
    #[error(transparent)]
    Write(#[from] counterproof_store::write::WriteError),
    #[error(transparent)]
    Shell(#[from] crate::suite::ShellError),
}

/// The results of the tests before a change, as a checkpoint has them.
#[derive(Debug, Clone)]
pub struct Baseline {
    pub report: TestReport,
    /// What has masked the ids of the tests.
    pub redactor: Redactor,
}

/// What CI to wait for.
#[derive(Debug, Clone, Copy)]
pub struct CiWanted<'a> {
    pub commit: &'a str,
    pub timeout: Option<Duration>,
    /// The results of the tests before the change. A local CI that runs the same tests does not fail for those that failed before.
    pub before: Option<&'a Baseline>,
}

pub trait Forge: Send {
    /// Checks that the forge has a base branch, and the commit on it that the work starts from.
    fn check_base(&self, branch: &str, commit: &str, cancellation: &Cancellation) -> Result<(), ForgeError>;

    /// Pushes a commit to a branch. Pushing what is there already does nothing, and commits of others are never replaced.
    fn push(&self, push: &Push<'_>, cancellation: &Cancellation) -> Result<(), ForgeError>;

    /// Finds the open pull request of a branch.
    fn find(&self, branch: &str, cancellation: &Cancellation) -> Result<Option<PullRequest>, ForgeError>;

    /// Opens a pull request, or returns the one that its branch has.
    fn open(&self, request: &NewPullRequest, cancellation: &Cancellation) -> Result<PullRequest, ForgeError>;

    /// Replaces title, body and head commit.
    fn update(
        &self,
        pull_request: &PullRequest,
        request: &NewPullRequest,
        cancellation: &Cancellation,
    ) -> Result<(), ForgeError>;

    /// Waits for the checks of a commit. A time limit that is over, and a cancellation, are results and not errors.
    fn ci(
        &self,
        pull_request: &PullRequest,
        wanted: &CiWanted<'_>,
        cancellation: &Cancellation,
    ) -> Result<CiResult, ForgeError>;
}
