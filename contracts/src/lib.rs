//! Executable contracts: what an agent gets, what it must produce, how a command checks that, how it is undone, what must come
//! first, and what it needs meanwhile.
//!
//! ```text
//! contract files ─▶ contract (types) ─▶ store (JSON Lines, append-only) ◀─ lifecycle (states, who may change them)
//! ```
//!
//! [`Contract`] has the fields of the published contract schema. A [`Store`] has its versions and
//! transitions, one line each.
//!
//! The crate never prints. It takes the clock and all paths as parameters.
//!
//! ```
//! use counterproof_contracts::{Actor, State, StateChange};
//!
//! let change = StateChange { from: State::Ready, to: State::Completed };
//! assert!(change.check(&Actor::System, None).is_err(), "only verification completes a contract");
//! ```

pub mod contract;
pub mod control_room;
pub mod documents;
pub mod graph;
mod index;
mod lifecycle;
#[cfg(unix)]
pub mod process;
mod record;
#[cfg(unix)]
pub mod resources;
#[cfg(unix)]
pub mod rollback;
pub mod store;
#[cfg(unix)]
pub mod verification;
mod view;

pub use contract::{Contract, ContractId, ContractKey};
pub use lifecycle::{Actor, ActorError, Details, State, StateChange, Transition, TransitionError, UnknownState};
pub use store::{Store, StoreError};
pub use view::PageError;
