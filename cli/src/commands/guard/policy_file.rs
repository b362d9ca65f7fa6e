//! Loads the policy of a command, and formats what is wrong with it.

use camino::Utf8Path;
use counterproof_guard::policy::{InvalidPolicy, LoadPolicyError, Policy, PolicyFile};
use counterproof_validation::{Code, Finding};
use serde_json::Value;

use crate::command_error::CommandError;

/// Maximum number of listed findings.
const MAX_FINDINGS_LISTED: usize = 20;

/// Loads a policy. An invalid one is an error with exit code 2.
pub(super) fn load(path: &Utf8Path) -> Result<Policy, CommandError> {
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
        Code::WrongValue | Code::WrongType | Code::UnexpectedField => format!("expected {}", finding.expected),
        _ => finding.remedy.clone(),
    };
    format!("  {}{position}: {} ({advice})", finding.file, finding.message)
}
