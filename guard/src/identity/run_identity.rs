//! The identity of a run, as in the envelope of its events.

use counterproof_ledger::event::{AgentClient, WorkingEnvironment, Workload};

/// The identity of a run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RunIdentity {
    /// The id of the run.
    pub run_id: String,
    /// The agent.
    pub agent_id: String,
    /// The kind of program that the agent runs in.
    pub client: AgentClient,
    /// The environment that the agent works in.
    pub env: WorkingEnvironment,
    /// The person or service on whose behalf the agent works.
    pub principal: Option<String>,
    /// The job that the agent runs in.
    pub workload: Option<Workload>,
}
