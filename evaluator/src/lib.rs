//! Two runs in, a comparison out: what moved, whether it matters, and whether the new version may go out.
//!
//! The line is `load` → `pair` → `evidence` → `diff` → `grounding` → `findings` → `verdict` → `cause` → `severity` → `gate`,
//! each a function from values to values; then [`report`] writes what came of it. One case pair flows through the whole line
//! on one worker, so memory grows with the number of cases, not with their size.
//!
//! This crate never asks an agent: it reads what any producer wrote to the contract.

pub mod cause;
pub mod comparison;
pub mod diff;
pub mod gate;
pub mod grounding;
pub mod judge;
pub mod load;
pub mod messages;
pub mod repeats;
pub mod report;
pub mod rules;
pub mod statistics;
pub mod values;
