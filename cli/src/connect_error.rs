//! Why an agent was never reached, in the words that the artifact of a case has for it.

use camino::Utf8Path;
use counterproof_artifact::{CaseId, Outcome, RunnerFailure};
use counterproof_runner::Target;
use counterproof_store::RunReader;

use crate::command_error::CommandError;

/// What the artifact of a failed case says. `None` where it cannot be read, or tells of no failure.
pub(crate) fn failure(folder: &Utf8Path, case_id: &CaseId) -> Option<RunnerFailure> {
    match RunReader::open(folder).ok()?.read_case(case_id).ok()?.outcome {
        Outcome::RunnerError(failure) => Some(failure),
        Outcome::Ok(_) => None,
    }
}

/// The error of a run that never reached its agent; `case_id` is a case that it has asked.
pub(crate) fn error(target: &Target, folder: &Utf8Path, case_id: Option<&CaseId>) -> CommandError {
    let reason = case_id.and_then(|case_id| failure(folder, case_id)).and_then(|failure| failure.error_message);
    let recorded = target.recorded();
    CommandError::io(match (target, reason) {
        // The reason says by itself that it could not be started.
        (Target::Command(_), Some(reason)) => format!("{recorded}: {reason}"),
        (Target::Command(_), None) => format!("the agent at {recorded} could not be started"),
        (Target::Http(_), Some(reason)) => format!("the agent at {recorded} could not be reached: {reason}"),
        (Target::Http(_), None) => format!("the agent at {recorded} could not be reached"),
    })
    .hint(match target {
        Target::Command(_) => {
            "the first word of `--agent-cmd` is a program on the PATH, or the path of a file that may be executed"
        }
        Target::Http(_) => "check that the agent runs, and that `--base-url` is where it is now",
    })
}
