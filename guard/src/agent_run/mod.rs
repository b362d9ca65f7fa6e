//! Runs an agent as one run: every shim below it has the same identity, policy and ledger.
//!
//! The variables of the run ([`VARIABLES`]) are set for the agent. A shim reads those that it lacks from the processes above it. It
//! writes a line to the [`TerminationPipe`] of the run when it starts, and when it executes a rule with `TERMINATE_RUN`, which ends the
//! agent.

mod ancestors;
mod run_agent;
mod settings;
mod termination_pipe;

pub use ancestors::missing_run_variables;
pub use run_agent::{AgentEnd, AgentRun, AgentRunError, agent_ended, agent_started, run_agent};
pub(crate) use run_agent::{failed_start, process_exit};
pub use settings::{LEDGER, POLICY, RunSettings, TERMINATION, VARIABLES};
pub use termination_pipe::{StartedServer, TerminationPipe, announce_server, request_termination};
