//! Undoes the work of a contract.
//!
//! ```text
//! start of the execution ─▶ RollbackStart ─▶ plan: what would be done, in words
//!                                └─▶ roll_back ─▶ rolled back, refused, or failed
//! ```
//!
//! [`RollbackStart`] is stored with the start of an execution, so that another process can roll back later. A rollback keeps what it
//! replaces, and refuses to start where it would change something else.

pub mod snapshot;
mod strategy;

pub use strategy::{
    RollbackEnd, RollbackError, RollbackPlan, RollbackRefusal, RollbackSettings, RollbackStart, declared_paths,
};
