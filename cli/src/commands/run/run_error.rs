//! Maps the errors of the runner to exit codes and hints.

use counterproof_store::{CreateError, LockError, ReopenError};

use counterproof_runner::{ResumeError, RunError};

use crate::command_error::CommandError;

/// Maps an error of a run. `resume_command` is the command line that continues it.
pub(super) fn run_error(error: RunError, resume_command: &str) -> CommandError {
    match error {
        RunError::Create(CreateError::Exists(_)) => CommandError::usage(error)
            .hint("choose another `--run-id`; runs are never overwritten")
            .hint("to continue a stopped run, replace `--run-id` with `--resume`"),
        RunError::Create(CreateError::Lock(LockError::Busy(_)))
        | RunError::Resume(ResumeError::Reopen(ReopenError::Lock(LockError::Busy(_)))) => {
            CommandError::usage(error).hint("wait until the other process ends, or stop it")
        }
        RunError::SecretRunId | RunError::SecretCaseId { .. } => {
            CommandError::usage(error).hint("file names cannot be redacted: choose another id or another secret")
        }
        RunError::Resume(ResumeError::Changed { .. }) => CommandError::usage(error)
            .hint("resume with the cases and settings that the run was started with, or start a new run"),
        RunError::Resume(ResumeError::Reopen(ReopenError::Missing(_))) => {
            CommandError::usage(error).hint("to start the run, replace `--resume` with `--run-id`")
        }
        // Completed cases stay on disk, so a full disk costs only the cases in flight.
        RunError::Write(_) => {
            CommandError::io(error).hint(format!("completed cases are saved; resume with: {resume_command}"))
        }
        _ => CommandError::io(error),
    }
}
