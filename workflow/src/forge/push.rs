//! The push of a commit to a branch, which can be repeated.

use camino::Utf8Path;
use counterproof_contracts::process::Cancellation;
use counterproof_workspace::git::{Git, GitError, GitOptions};

use super::{ForgeError, Push};

/// Where a commit is pushed to, and how git reaches it.
pub(super) struct Remote<'a> {
    /// A path or a URL without a secret.
    pub address: &'a str,
    /// The protocol of git that the address has.
    pub protocol: &'static str,
    /// Variables of git, such as those with a token.
    pub environment: &'a [(String, String)],
    pub options: &'a GitOptions,
    pub cancel: &'a Cancellation,
}

impl Remote<'_> {
    fn git(&self, folder: &Utf8Path, arguments: &[&str]) -> Git {
        let git = Git::new(self.options, folder, arguments).without_user_settings().cancelled_by(self.cancel);
        let git = git.with("GIT_ALLOW_PROTOCOL", self.protocol);
        self.environment.iter().fold(git, |git, (name, value)| git.with(name, value))
    }

    pub(super) fn push(&self, push: &Push<'_>) -> Result<(), ForgeError> {
        let reference = format!("refs/heads/{}", push.branch);
        let listed = self.git(push.from, &["ls-remote", "--", self.address, &reference]).text()?;
        let found = listed.lines().find_map(|line| line.split_once('\t').filter(|(_, name)| *name == reference));
        let found = found.map(|(commit, _)| commit);
        // A push that was recorded as an intent may have happened before this process was killed.
        if found == Some(push.commit) {
            return Ok(());
        }
        if let Some(found) = found.filter(|found| !push.own.iter().any(|own| own == found)) {
            return Err(ForgeError::Moved { branch: push.branch.to_owned(), found: found.to_owned() });
        }
        // Fails if another process has pushed since.
        let lease = format!("--force-with-lease={reference}:{}", found.unwrap_or_default());
        let update = format!("{}:{reference}", push.commit);
        self.git(push.from, &["push", "--quiet", "--no-verify", &lease, "--", self.address, &update]).output()?;
        Ok(())
    }
}

impl From<GitError> for ForgeError {
    fn from(error: GitError) -> Self {
        ForgeError::Git(Box::new(error))
    }
}
