//! Undoes the work of a contract.
//!
//! ```text
//! start of the execution ─▶ Began ─▶ plan: what would be done, in words
//!                                └─▶ roll_back ─▶ rolled back, refused, or failed
//! ```
//!
//! [`Began`] is stored with the start of an execution, so that another process can roll back later. A rollback keeps what it
//! replaces, and refuses to start where it would change something else.

mod began;
mod custom;
mod declared;
mod outcome;
pub mod snapshot;

pub use began::{Began, RollbackError, RollbackSettings};
pub use declared::declared_paths;
pub use outcome::{RollbackEnd, RollbackPlan, RollbackRefusal};
