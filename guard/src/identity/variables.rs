//! The names of the identity variables.

/// The run.
pub const RUN_ID: &str = "SUB_RUN_ID";
/// The agent.
pub(crate) const AGENT_ID: &str = "SUB_AGENT_ID";
/// The environment that the agent works in.
pub(crate) const ENV: &str = "SUB_ENV";
/// The kind of program that the agent runs in.
pub(crate) const CLIENT: &str = "SUB_CLIENT";
/// The person or service on whose behalf the agent works.
pub(crate) const PRINCIPAL: &str = "SUB_PRINCIPAL";
/// The job that the agent runs in, as a JSON object.
pub const WORKLOAD: &str = "SUB_WORKLOAD";

/// All variables that state an identity.
pub const VARIABLES: [&str; 6] = [RUN_ID, AGENT_ID, ENV, CLIENT, PRINCIPAL, WORKLOAD];

/// Returns a variable of this process. Bytes that are not UTF-8 are replaced. An empty variable counts as not set.
pub fn process_variable(name: &str) -> Option<String> {
    std::env::var_os(name).filter(|value| !value.is_empty()).map(|value| value.to_string_lossy().into_owned())
}
