//! Loads the policy of a command, and formats what is wrong with it.

use camino::Utf8Path;
use counterproof_guard::policy::{LoadPolicyError, Policy};
use counterproof_validation::Finding;

use crate::command_error::CommandError;

/// Maximum number of listed findings.
const MAX_FINDINGS_LISTED: usize = 20;

/// Loads a policy. An invalid one is an error with exit code 2.
pub(super) fn load(path: &Utf8Path) -> Result<Policy, CommandError> {
    Policy::load(path).map_err(|error| match error {
        LoadPolicyError::Read { .. } => CommandError::io(error),
        LoadPolicyError::Invalid(invalid) => {
            let lines: Vec<String> = invalid.findings.iter().take(MAX_FINDINGS_LISTED).map(line).collect();
            let hint = format!("run `counterproof guard policy lint {path}` for more details");
            CommandError::usage(format!("the policy is invalid\n{}", lines.join("\n"))).hint(hint)
        }
    })
}

fn line(finding: &Finding) -> String {
    let position = finding.position.map(|at| format!(":{}:{}", at.line, at.column)).unwrap_or_default();
    format!("  {}{position}: {} ({})", finding.file, finding.message, finding.remedy)
}
