//! The error type of the program: a kind that decides the exit code, an error with its causes, and hints.

use std::error::Error;
use std::fmt::{Display, Write as _};

use camino::Utf8Path;
use counterproof_artifact::{CaseId, Exit, Outcome, RunnerFailure, with_causes};
use counterproof_runner::{Reason, Target};
use counterproof_store::RunReader;

use crate::streams::{OutputError, Streams};

/// The class of an error; it decides the exit code.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    /// The arguments, the configuration or the named files are wrong: exit code 2.
    Usage,
    /// Input or output could not be read or written: exit code 3.
    Io,
    /// The command did its work and rejects what it found: exit code 1.
    Findings,
}

impl Kind {
    const fn exit(self) -> Exit {
        match self {
            Self::Usage => Exit::Usage,
            Self::Io => Exit::Io,
            Self::Findings => Exit::Findings,
        }
    }
}

/// A failed command.
#[derive(Debug)]
pub(crate) struct CommandError {
    kind: Kind,
    error: Box<dyn Error + Send + Sync>,
    hints: Vec<String>,
}

impl CommandError {
    /// Creates an error with exit code 2: wrong arguments, configuration or input documents.
    pub(crate) fn usage(error: impl Into<Box<dyn Error + Send + Sync>>) -> Self {
        Self { kind: Kind::Usage, error: error.into(), hints: Vec::new() }
    }

    /// Creates an error with exit code 3: failed input or output.
    pub(crate) fn io(error: impl Into<Box<dyn Error + Send + Sync>>) -> Self {
        Self { kind: Kind::Io, error: error.into(), hints: Vec::new() }
    }

    /// Creates an error with exit code 1: the input was read and does not meet the requirements.
    pub(crate) fn findings(error: impl Into<Box<dyn Error + Send + Sync>>) -> Self {
        Self { kind: Kind::Findings, error: error.into(), hints: Vec::new() }
    }

    /// Adds a remedy.
    #[must_use]
    pub(crate) fn hint(mut self, hint: impl Display) -> Self {
        self.hints.push(hint.to_string());
        self
    }

    /// Returns the error with its causes in one line.
    pub(crate) fn message(&self) -> String {
        with_causes(&*self.error)
    }

    /// Returns the remedies.
    pub(crate) fn hints(&self) -> &[String] {
        &self.hints
    }

    /// Returns the exit code.
    pub(crate) fn exit(&self) -> Exit {
        self.kind.exit()
    }

    /// Logs the error with its causes and hints. Returns the exit code.
    pub(crate) fn report(&self, streams: &mut Streams) -> Exit {
        let mut text = format!("error: {}", self.error);
        let mut cause = self.error.source();
        while let Some(error) = cause {
            let _ = write!(text, "\n  caused by: {error}");
            cause = error.source();
        }
        for hint in &self.hints {
            let _ = write!(text, "\nhint: {hint}");
        }
        streams.log(text);
        self.kind.exit()
    }
}

impl From<OutputError> for CommandError {
    fn from(error: OutputError) -> Self {
        Self::io(error)
    }
}

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
