//! The option that names the policy of a guard.

use camino::Utf8PathBuf;
use counterproof_guard::policy::Policy;

use super::policy_file;
use crate::command_error::CommandError;

/// The policy of a guard.
#[derive(Debug, clap::Args)]
pub(super) struct PolicyArgs {
    /// Policy file, in JSON or YAML
    #[arg(long, env = "COUNTERPROOF_POLICY", value_name = "FILE")]
    policy: Option<Utf8PathBuf>,
}

impl PolicyArgs {
    /// Loads the policy. Without one, every call is allowed and recorded.
    pub(super) fn load(&self) -> Result<Policy, CommandError> {
        match &self.policy {
            None => Ok(Policy::observe_only()),
            Some(path) => policy_file::load(path),
        }
    }
}
