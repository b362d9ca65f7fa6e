//! Runs an agent as one run: every shim below it has the same identity, policy and ledger.
//!
//! The variables of the run ([`VARIABLES`]) are set for the agent. A shim reads those that it lacks from the processes above it, and
//! joins the run over a [`RunConnection`]: the run decides about its calls, and counts them. A rule with `TERMINATE_RUN` ends the agent
//! over the [`TerminationPipe`].

mod ancestors;
mod run_agent;
mod settings;
mod shared_decisions;
mod termination_pipe;

pub use ancestors::missing_run_variables;
pub use run_agent::{AgentEnd, AgentRun, AgentRunError, agent_ended, agent_started, run_agent};
pub(crate) use run_agent::{failed_start, process_exit};
pub use settings::{LEDGER, POLICY, RunSettings, TERMINATION, VARIABLES};
pub(crate) use shared_decisions::{EndKind, count_end};
pub use shared_decisions::{RunConnection, StartedServer};
pub use termination_pipe::{TerminationPipe, request_termination};
