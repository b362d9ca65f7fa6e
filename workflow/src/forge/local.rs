//! A forge in a folder: a bare repository, and a JSON record for each pull request. CI is a command in a clean clone.

use std::time::Duration;

use camino::Utf8PathBuf;
use counterproof_contracts::process::Cancellation;

use super::{CiResult, Forge, ForgeError, NewPullRequest, PullRequest, Push};
use crate::suite::Shell;

#[derive(Debug, Clone)]
pub struct LocalForge {
    /// The folder, which is created on the first push.
    pub folder: Utf8PathBuf,
    /// The command line of CI; without it, CI has no checks.
    pub ci_line: Option<String>,
    /// How CI runs. Its time limit applies where `ci` gets none.
    pub shell: Shell,
}

impl Forge for LocalForge {
    fn push(&self, push: &Push<'_>, _cancellation: &Cancellation) -> Result<(), ForgeError> {
        Err(ForgeError::Moved { branch: push.branch.to_owned(), found: String::new() })
    }

    fn find(&self, _branch: &str, _cancellation: &Cancellation) -> Result<Option<PullRequest>, ForgeError> {
        Ok(None)
    }

    fn open(&self, _request: &NewPullRequest, _cancellation: &Cancellation) -> Result<PullRequest, ForgeError> {
        Err(ForgeError::Cancelled)
    }

    fn update(
        &self,
        _pull_request: &PullRequest,
        _request: &NewPullRequest,
        _cancellation: &Cancellation,
    ) -> Result<(), ForgeError> {
        Err(ForgeError::Cancelled)
    }

    fn ci(
        &self,
        _pull_request: &PullRequest,
        _commit: &str,
        _timeout: Option<Duration>,
        _cancellation: &Cancellation,
    ) -> Result<CiResult, ForgeError> {
        Err(ForgeError::Cancelled)
    }
}
