//! The error type of the program: an error with its causes, its exit code, and hints.

use std::error::Error;
use std::fmt::{Display, Write as _};
use std::io;

use camino::Utf8Path;
use counterproof_artifact::{CaseId, Exit, Outcome, RunnerFailure, with_causes};
use counterproof_bucket::BucketError;
use counterproof_runner::{Reason, Target};
use counterproof_store::RunReader;

use crate::streams::{OutputError, Streams};

#[derive(Debug)]
pub(crate) struct CommandError {
    /// Decided where the error is made: the same cause can be a wrong argument for one command and a failed read for another.
    exit: Exit,
    error: Box<dyn Error + Send + Sync>,
    hints: Vec<String>,
}

impl CommandError {
    pub(crate) fn new(exit: Exit, error: impl Into<Box<dyn Error + Send + Sync>>) -> Self {
        Self { exit, error: error.into(), hints: Vec::new() }
    }

    /// Creates an error with exit code 2: wrong arguments, configuration or input documents.
    pub(crate) fn usage(error: impl Into<Box<dyn Error + Send + Sync>>) -> Self {
        Self::new(Exit::Usage, error)
    }

    /// Creates an error with exit code 3: failed input or output.
    pub(crate) fn io(error: impl Into<Box<dyn Error + Send + Sync>>) -> Self {
        Self::new(Exit::Io, error)
    }

    /// Creates an error with exit code 1: the input was read and does not meet the requirements.
    pub(crate) fn findings(error: impl Into<Box<dyn Error + Send + Sync>>) -> Self {
        Self::new(Exit::Findings, error)
    }

    #[must_use]
    pub(crate) fn hint(mut self, hint: impl Display) -> Self {
        self.hints.push(hint.to_string());
        self
    }

    /// Returns the error with its causes in one line.
    pub(crate) fn message(&self) -> String {
        with_causes(&*self.error)
    }

    pub(crate) fn hints(&self) -> &[String] {
        &self.hints
    }

    /// The request to a bucket that failed.
    pub(crate) fn bucket_request(&self) -> Option<&BucketError> {
        let mut next: Option<&(dyn Error + 'static)> = Some(&*self.error);
        while let Some(error) = next {
            // An I/O error is not the cause of the error that it holds, but has its causes.
            let held = error.downcast_ref::<io::Error>().and_then(io::Error::get_ref);
            let held = held.and_then(|held| held.downcast_ref::<BucketError>());
            let found = held.or(error.downcast_ref());
            if let Some(BucketError::Request { .. } | BucketError::Open { .. }) = found {
                return found;
            }
            next = error.source();
        }
        None
    }

    pub(crate) fn exit(&self) -> Exit {
        self.exit
    }

    /// Logs the error with its causes and hints. Returns the exit code.
    pub(crate) fn report(&self, streams: &mut Streams) -> Exit {
        let mut text = format!("error: {}", self.error);
        let mut cause = self.error.source();
        while let Some(error) = cause {
            let _ = write!(text, "\n  caused by: {error}");
            cause = error.source();
        }
        for hint in self.hints.iter().chain(&streams.copies.hints(self)) {
            let _ = write!(text, "\nhint: {hint}");
        }
        streams.log(text);
        self.exit
    }
}

impl From<OutputError> for CommandError {
    fn from(error: OutputError) -> Self {
        Self::io(error)
    }
}

/// What to do if another process uses the run folder. There is no other folder to choose.
pub(crate) const WAIT_OR_STOP: &str = "wait until the other process ends, or stop it";

pub(crate) const CERTIFICATE_HINT: &str = "for a certificate of your own authority, pass `--ca-file FILE`; for an agent without TLS, \
                                           use `http://` in the base URL";

pub(crate) const PROXY_HINT: &str =
    "check the proxy that `HTTP_PROXY`, `HTTPS_PROXY` or `ALL_PROXY` names, or add the agent's host to `NO_PROXY`";

/// Reads the failure of a case from its artifact. Returns `None` if there is no failure or the artifact is unreadable.
pub(crate) fn recorded_failure(folder: &Utf8Path, case_id: &CaseId) -> Option<RunnerFailure> {
    match RunReader::open(folder).ok()?.read_case(case_id).ok()?.outcome {
        Outcome::RunnerError(failure) => Some(failure),
        Outcome::Ok(_) => None,
    }
}

/// Builds the error of a run that never reached its agent.
pub(crate) fn connect_error(target: &Target, folder: &Utf8Path, case_id: Option<&CaseId>) -> CommandError {
    // The runner returns counts only. The cause is in the artifact of any case that was attempted.
    let failure = case_id.and_then(|case_id| recorded_failure(folder, case_id));
    let (cause, name) = failure.map(|failure| (failure.error_message, failure.error_name)).unwrap_or_default();
    let is = |reason: Reason| name.as_deref() == Some(reason.name());
    let agent = target.recorded();
    CommandError::io(match (target, cause) {
        // The recorded message already states that the program could not be started.
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
