//! The option that names the policy of a guard, and the reading of policy files.

use camino::{Utf8Path, Utf8PathBuf};
use counterproof_guard::agent_run::POLICY;
use counterproof_guard::identity::{RunIdentity, process_variable};
use counterproof_guard::policy::{InvalidPolicy, LoadPolicyError, Policy, PolicyFile};
use counterproof_validation::{Code, Finding};
use serde_json::Value;

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
        load(path)
    }

    /// Warns if no rule of the policy can apply to the calls of the server.
    pub(super) fn warn_if_unused(&self, policy: &Policy, run: &RunIdentity, server_name: &str, streams: &mut Streams) {
        let (Some(path), Some(reason)) = (&self.policy, policy.never_applies(run, server_name)) else { return };
        streams.warn(format_args!("no rule of the policy `{path}` can apply to server `{server_name}`: {reason}"));
    }
}

fn is_same_file(one: &Utf8Path, other: &Utf8Path) -> bool {
    let canonical = |path: &Utf8Path| path.canonicalize_utf8().ok();
    // The text first: a path that does not exist has no canonical form.
    one == other || canonical(one).is_some_and(|one| canonical(other) == Some(one))
}

const MAX_FINDINGS_LISTED: usize = 20;

/// Loads a policy. An invalid one is an error with exit code 2.
pub(crate) fn load(path: &Utf8Path) -> Result<Policy, CommandError> {
    Ok(load_document(path)?.0)
}

/// Loads a policy with its document. An invalid one is an error with exit code 2.
pub(super) fn load_document(path: &Utf8Path) -> Result<(Policy, Value), CommandError> {
    read(path)?.parse().map_err(|error| invalid(path, &error))
}

/// Reads a policy that may be invalid.
pub(super) fn read(path: &Utf8Path) -> Result<PolicyFile, CommandError> {
    PolicyFile::read(path).map_err(|error| match error {
        LoadPolicyError::Read { .. } if path.is_dir() => {
            CommandError::io(error).hint("pass the policy file in the folder")
        }
        LoadPolicyError::Read { .. } => CommandError::io(error).hint("check that the path exists and is readable"),
        LoadPolicyError::Invalid(error) => invalid(path, &error),
    })
}

fn invalid(path: &Utf8Path, invalid: &InvalidPolicy) -> CommandError {
    let lines: Vec<String> = invalid.findings.iter().take(MAX_FINDINGS_LISTED).map(line).collect();
    let hint = format!("run `counterproof guard policy lint {path}` for more details");
    CommandError::usage(format!("the policy is invalid\n{}", lines.join("\n"))).hint(hint)
}

fn line(finding: &Finding) -> String {
    let position = finding.position.map(|at| format!(":{}:{}", at.line, at.column)).unwrap_or_default();
    let advice = match finding.code {
        // For these, the expected value explains more than the general remedy.
        Code::WrongValue | Code::WrongType | Code::UnexpectedField => format!("expected {}", finding.expected),
        _ => finding.remedy.clone(),
    };
    format!("  {}{position}: {} ({advice})", finding.file, finding.message)
}
