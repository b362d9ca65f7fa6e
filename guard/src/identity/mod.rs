//! Who acts: the run, the agent and its environment, from the variables `SUB_*`.

mod run_identity;

pub use run_identity::RunIdentity;
