//! GitHub over its REST interface.

use std::fmt;
use std::time::Duration;

use counterproof_contracts::process::Cancellation;

use super::{CiResult, Forge, ForgeError, NewPullRequest, PullRequest, Push};

/// A token of the forge. It is never printed.
#[derive(Clone)]
pub struct Token(String);

impl From<String> for Token {
    fn from(token: String) -> Self {
        Self(token)
    }
}

impl fmt::Debug for Token {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Token([redacted])")
    }
}

#[derive(Debug, Clone)]
pub struct GitHubOptions {
    pub token: Token,
    /// The base URL of the REST interface; `None` is `https://api.github.com`.
    pub api_url: Option<String>,
    /// The address of the repository: a HTTPS or SSH URL, or `git@host:owner/name`.
    pub repository: String,
}

#[derive(Debug)]
pub struct GitHubForge {
    options: GitHubOptions,
}

impl GitHubForge {
    /// Creates the forge without a request. Its methods must not be called on a thread of an async runtime.
    pub fn new(options: GitHubOptions) -> Result<Self, ForgeError> {
        Ok(Self { options })
    }
}

impl Forge for GitHubForge {
    fn push(&self, _push: &Push<'_>, _cancellation: &Cancellation) -> Result<(), ForgeError> {
        Err(ForgeError::GitHub(self.options.repository.clone()))
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
