//! Undoes the work of a contract.
//!
//! ```text
//! start of the execution ─▶ Began ─▶ plan: what would be done, in words
//!                                └─▶ roll_back ─▶ rolled back, refused, or failed
//! ```
//!
//! [`Began`] is stored with the start of an execution, so that another process can roll back later. A rollback keeps what it
//! replaces, and refuses to start where it would change something else.

mod strategy;
pub mod snapshot;

pub use strategy::{Began, RollbackError, RollbackSettings};
pub use strategy::declared_paths;
pub use strategy::{RollbackEnd, RollbackPlan, RollbackRefusal};
