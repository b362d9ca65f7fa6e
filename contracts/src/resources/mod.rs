//! What an execution needs for itself on the machine: ports, files, names, variables, its working directory, its contract.
//!
//! ```text
//! contract ─▶ ResourceRequest ─▶ Registry::acquire: all or nothing, under one lock ─▶ LeaseGuard: variables to export
//!                                        │
//!                          one record for each live lease, in one folder of the machine
//! ```
//!
//! An acquisition takes all of its resources at once or none, so no set of executions can wait for each other. The record of a
//! process that was killed does not count: see [`counterproof_store::lock_registry`]. The registry protects programs that use
//! it. It does not reserve a port in the system, and it does not prevent other programs from changing files.

mod lease;
mod lock;
mod path_pattern;
mod request;

pub use lease::{LOCKS_FOLDER, LOCKS_VARIABLE, LeaseError, LeaseGuard, LeaseRequest, Registry};
pub use lock::{Access, Conflict, Lease, LeaseContent, LeaseOwner, ResourceLock};
pub use request::{DEFAULT_PORT_VARIABLE, ResourceRequest, SpecError};
