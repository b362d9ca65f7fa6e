//! The error of a run in which no attempt reached the agent.

use camino::Utf8Path;
use counterproof_artifact::{CaseId, Outcome, RunnerFailure};
use counterproof_runner::{Reason, Target};
use counterproof_store::RunReader;

use crate::command_error::CommandError;

/// What to do if the agent's certificate is not trusted.
pub(crate) const CERTIFICATE_HINT: &str = "for a certificate of your own authority, pass `--ca-file FILE`; for an agent without TLS, \
                                           use `http://` in the base URL";

/// What to do if the proxy fails.
pub(crate) const PROXY_HINT: &str =
    "check the proxy that `HTTP_PROXY`, `HTTPS_PROXY` or `ALL_PROXY` names, or add the agent's host to `NO_PROXY`";

/// Reads the failure of a case from its artifact. Returns `None` if there is no failure or the artifact is unreadable.
pub(crate) fn recorded_failure(folder: &Utf8Path, case_id: &CaseId) -> Option<RunnerFailure> {
    match RunReader::open(folder).ok()?.read_case(case_id).ok()?.outcome {
        Outcome::RunnerError(failure) => Some(failure),
        Outcome::Ok(_) => None,
    }
}

/// Builds the error of a run that never reached its agent. The cause is taken from the artifact of `case_id`, a case that
/// was attempted.
pub(crate) fn connect_error(target: &Target, folder: &Utf8Path, case_id: Option<&CaseId>) -> CommandError {
    let failure = case_id.and_then(|case_id| recorded_failure(folder, case_id));
    let (cause, name) = failure.map(|failure| (failure.error_message, failure.error_name)).unwrap_or_default();
    let is = |reason: Reason| name.as_deref() == Some(reason.name());
    let agent = target.recorded();
    CommandError::io(match (target, cause) {
        // The recorded message already says that the program could not be started.
        (Target::Command(_), Some(cause)) => format!("{agent}: {cause}"),
        (Target::Command(_), None) => format!("cannot start the agent {agent}"),
        (Target::Http(_), Some(cause)) => format!("cannot reach the agent at {agent}: {cause}"),
        (Target::Http(_), None) => format!("cannot reach the agent at {agent}"),
    })
    .hint(match target {
        Target::Command(_) => {
            "check that the first word of `--agent-cmd` is a program on the PATH or the path of an executable file"
        }
        Target::Http(_) if is(Reason::Tls) => CERTIFICATE_HINT,
        Target::Http(_) if is(Reason::ProxyFailed) => PROXY_HINT,
        Target::Http(_) => "check that the agent is running and that `--base-url` is its current address",
    })
}
