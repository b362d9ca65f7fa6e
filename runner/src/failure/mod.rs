//! What can go wrong with an attempt: stable reasons, and faults with their details.

mod fault;
mod reason;

pub(crate) use fault::{Fault, Violation};
pub use reason::Reason;
