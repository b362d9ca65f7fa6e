//! The variables by which a run is passed on to the shims below it.

use crate::identity;

/// The policy of the shims.
pub const POLICY: &str = "COUNTERPROOF_POLICY";

/// The ledger of the shims.
pub const LEDGER: &str = "COUNTERPROOF_LEDGER";

/// The pipe by which a shim ends the run.
pub const TERMINATION: &str = "COUNTERPROOF_TERMINATION";

/// All variables of a run, those of the identity included.
pub const VARIABLES: [&str; 9] = {
    let [run, agent, env, client, principal, workload] = identity::VARIABLES;
    [run, agent, env, client, principal, workload, POLICY, LEDGER, TERMINATION]
};
