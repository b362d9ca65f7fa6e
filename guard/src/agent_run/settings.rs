//! The identity and the settings of a run, and the variables by which they reach the shims below it.

use std::collections::BTreeMap;
use std::ffi::OsString;

use crate::identity;

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RunSettings {
    pub run_id: String,
    pub agent_id: Option<String>,
    /// The kind of program that the agent runs in; see [`AgentClient`](counterproof_ledger::event::AgentClient).
    pub client: String,
    /// The environment that the agent works in; see [`WorkingEnvironment`](counterproof_ledger::event::WorkingEnvironment).
    pub env: String,
    pub principal: Option<String>,
    /// The job, as a JSON object. `None` leaves the variable as it is.
    pub workload: Option<String>,
    pub policy: Option<String>,
    pub ledger: Option<String>,
}

impl RunSettings {
    pub fn environment(&self) -> BTreeMap<OsString, Option<OsString>> {
        // What is not stated stays as it is.
        let [run_id, agent_id, env, client, principal, workload] = identity::VARIABLES;
        let stated = [
            (run_id, Some(&self.run_id)),
            (agent_id, self.agent_id.as_ref()),
            (env, Some(&self.env)),
            (client, Some(&self.client)),
            (principal, self.principal.as_ref()),
            (workload, self.workload.as_ref()),
            (POLICY, self.policy.as_ref()),
            (LEDGER, self.ledger.as_ref()),
        ];
        let stated = stated.into_iter().filter_map(|(name, value)| Some((name.into(), Some(value?.into()))));
        stated.collect()
    }
}

pub const POLICY: &str = "COUNTERPROOF_POLICY";
pub const LEDGER: &str = "COUNTERPROOF_LEDGER";
pub const TERMINATION: &str = "COUNTERPROOF_TERMINATION";

/// All variables of a run, those of the identity included.
pub const VARIABLES: [&str; 9] = {
    let [run, agent, env, client, principal, workload] = identity::VARIABLES;
    [run, agent, env, client, principal, workload, POLICY, LEDGER, TERMINATION]
};

#[cfg(test)]
mod tests {
    use super::*;
    use crate::identity::RunIdentity;

    #[test]
    fn the_variables_give_the_identity_of_the_run() {
        let settings = RunSettings {
            run_id: "r1".to_owned(),
            agent_id: Some("coder".to_owned()),
            client: "custom".to_owned(),
            env: "dev".to_owned(),
            principal: None,
            workload: None,
            policy: Some("/p.yaml".to_owned()),
            ledger: None,
        };
        let environment = settings.environment();
        let names: Vec<_> = environment.keys().map(|name| name.to_str().unwrap()).collect();
        assert_eq!(names, ["COUNTERPROOF_POLICY", "SUB_AGENT_ID", "SUB_CLIENT", "SUB_ENV", "SUB_RUN_ID"]);
        let lookup = |name: &str| environment.get(&OsString::from(name))?.clone()?.into_string().ok();
        let (identity, warnings) = RunIdentity::from_environment(lookup);
        assert_eq!((identity.run_id.as_str(), identity.agent_id.as_str()), ("r1", "coder"));
        assert!(warnings.is_empty());
    }
}
