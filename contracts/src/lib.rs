//! Executable contracts: inputs, required outputs, verification, rollback, dependencies and resources.
//!
//! ```text
//! contract files ─▶ documents: validation ─▶ store: JSON Lines, append-only ◀─ lifecycle: states, who may change them
//!                                              ▲
//! run_many: order, workers ─▶ execution ───────┘
//!                                 └─▶ resources, process, verification, rollback
//! ```
//!
//! [`Contract`] has the fields of the published contract schema. A [`Store`] has its versions and transitions, one line each.
//! The crate needs Unix: its commands run under safe-run.
//!
//! The crate never prints. It takes the clock and all paths as parameters.
//!
//! ```
//! use counterproof_contracts::{Actor, State, StateChange};
//!
//! let change = StateChange { from: State::Ready, to: State::Completed };
//! assert!(change.check(&Actor::System, None).is_err(), "only verification completes a contract");
//! ```

#![cfg(unix)]

pub mod contract;
pub mod control_room;
pub mod documents;
pub mod execution;
pub mod git;
pub mod graph;
mod lifecycle;
pub mod process;
pub mod resources;
pub mod rollback;
pub mod run_many;
pub mod store;
pub mod verification;

pub use contract::{Contract, ContractId, ContractKey};
pub use lifecycle::{Actor, ActorError, Details, State, StateChange, Transition, TransitionError, UnknownState};
pub use store::{Store, StoreError};
