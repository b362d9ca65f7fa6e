//! A rollback by a command of the contract.

use super::{RollbackEnd, RollbackError, RollbackSettings};
use crate::process::{Cancellation, ShellCommand, run};

/// Returns the command, which must not be blank.
pub(super) fn command(command: Option<&str>) -> Result<&str, RollbackError> {
    command.filter(|command| !command.trim().is_empty()).ok_or(RollbackError::NoCommand)
}

/// Runs the command. Only exit code 0 means that the work is undone.
pub(super) fn roll_back(
    settings: &RollbackSettings<'_>,
    cancellation: &Cancellation,
) -> Result<RollbackEnd, RollbackError> {
    let line = command(settings.command)?;
    let command = ShellCommand {
        environment: settings.environment.clone(),
        timeout: settings.timeout,
        grace: settings.grace,
        supervisor: settings.supervisor.clone(),
        ..ShellCommand::new(line, settings.folder)
    };
    let finished = run(&command, cancellation)?;
    let failure = match (finished.stopped, finished.ending) {
        (Some(reason), _) => Some(reason.to_string()),
        (None, ending) if !ending.is_success() => Some(format!("the command ended with {ending}")),
        _ => None,
    };
    let evidence = settings.evidence.store(settings.evidence_name, finished)?;
    if let Some(reason) = failure {
        return Ok(RollbackEnd::Failed { reason, evidence });
    }
    let done = vec![format!("ran `{}`", settings.evidence.redact(line))];
    Ok(RollbackEnd::RolledBack { done, way_back: None, evidence: Some(evidence) })
}
