//! Runs one command of a contract under safe-run: in a working directory, with an environment, a time limit and a cancellation.
//! No process of the command is left when it has ended.
//!
//! ```text
//! ShellCommand ─▶ run ─▶ FinishedCommand: how it ended, the start of both streams, and the record ─▶ evidence: log, JSON Lines
//! ```
//!
//! The module does not judge an exit code and does not retry.

mod agent;
mod command;
mod evidence;
mod finished;
mod run;

pub use counterproof_safe_run::{Cancellation, StopReason};

pub use agent::{AgentError, MAX_AGENT_OUTPUT_BYTES, agent_command, agent_output, contract_variables};
pub use command::{DEFAULT_GRACE, DEFAULT_TIMEOUT, MAX_OUTPUT_BYTES, MAX_TEXT_BYTES, ShellCommand};
pub use evidence::{EvidenceError, EvidenceFiles, EvidenceFolder};
pub use finished::FinishedCommand;
pub use run::{ProcessError, run};
