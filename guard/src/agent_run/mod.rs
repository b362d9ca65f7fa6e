//! Runs an agent as one run: every shim below it has the same identity, policy and ledger.
//!
//! The variables of the run ([`VARIABLES`]) are set for the agent. A shim that executes a rule with `TERMINATE_RUN` writes a line to the
//! [`TerminationPipe`] of the run, and the agent is ended.

#[cfg(unix)]
mod agent_events;
mod settings;
#[cfg(unix)]
mod supervise;
#[cfg(unix)]
mod termination_pipe;
mod variables;

#[cfg(unix)]
pub use agent_events::{agent_ended, agent_started};
pub use settings::RunSettings;
#[cfg(unix)]
pub use supervise::{AgentEnd, AgentRun, AgentRunError, run_agent};
#[cfg(unix)]
pub use termination_pipe::{TerminationPipe, request_termination};
pub use variables::{LEDGER, POLICY, TERMINATION, VARIABLES};
