//! One failure of one attempt: the reason, a message, and the contract violations of the answer.

use serde::Serialize;

use super::reason::Reason;

/// A failed attempt's reason and its details.
#[derive(Debug, Clone)]
pub(crate) struct Fault {
    pub(crate) reason: Reason,
    /// The message is the same each time the fault occurs: it names no address and no port, and quotes nothing that the
    /// agent sent. Only `violations` may quote the agent.
    pub(crate) message: String,
    pub(crate) violations: Vec<Violation>,
}

/// One contract violation in an answer.
#[derive(Debug, Clone, Serialize)]
pub(crate) struct Violation {
    /// The violated rule: a code of `counterproof validate`, or the name of the reason.
    pub(crate) code: &'static str,
    pub(crate) pointer: String,
    pub(crate) message: String,
    pub(crate) expected: String,
}

impl Fault {
    pub(crate) fn new(reason: Reason, message: impl Into<String>) -> Self {
        Self { reason, message: message.into(), violations: Vec::new() }
    }

    /// Rewords messages about a response for a program, which has standard output instead.
    #[must_use]
    pub(crate) fn in_program_output(self) -> Self {
        let message = match self.reason {
            Reason::EmptyBody => "the program printed nothing on standard output".to_owned(),
            Reason::NotJson => format!("{}; standard output must contain the answer only", self.message),
            _ => return self,
        };
        Self { message, ..self }
    }
}
