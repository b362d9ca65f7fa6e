//! The option that names the policy of a guard.

use camino::{Utf8Path, Utf8PathBuf};
use counterproof_guard::agent_run::POLICY;
use counterproof_guard::identity::{RunIdentity, process_variable};
use counterproof_guard::policy::Policy;

use super::policy_file;
use crate::command_error::CommandError;
use crate::streams::Streams;

/// The policy of a guard.
#[derive(Debug, clap::Args)]
pub(super) struct PolicyArgs {
    /// Policy file, in JSON or YAML
    #[arg(long, env = "COUNTERPROOF_POLICY", value_name = "FILE")]
    policy: Option<Utf8PathBuf>,
}

impl PolicyArgs {
    /// Loads the policy. Without one, every call is allowed and recorded. Warns if the variable names another policy than the option.
    pub(super) fn load(&self, streams: &mut Streams) -> Result<Policy, CommandError> {
        let Some(path) = &self.policy else { return Ok(Policy::observe_only()) };
        if let Some(other) = process_variable(POLICY).filter(|other| !is_same_file(path, Utf8Path::new(other))) {
            streams.warn(format_args!(
                "the policy `{path}` of the option `--policy` is enforced, and not `{other}` of the variable `{POLICY}`"
            ));
        }
        policy_file::load(path)
    }

    /// Warns if no rule of the policy can apply to the calls of the server.
    pub(super) fn warn_if_unused(&self, policy: &Policy, run: &RunIdentity, server_name: &str, streams: &mut Streams) {
        let (Some(path), Some(reason)) = (&self.policy, policy.never_applies(run, server_name)) else { return };
        streams.warn(format_args!("no rule of the policy `{path}` can apply to server `{server_name}`: {reason}"));
    }
}

fn is_same_file(one: &Utf8Path, other: &Utf8Path) -> bool {
    let canonical = |path: &Utf8Path| path.canonicalize_utf8().ok();
    one == other || canonical(one).is_some_and(|one| canonical(other) == Some(one))
}
