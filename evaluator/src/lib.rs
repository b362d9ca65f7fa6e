//! Two runs in, a comparison out: what moved, whether it matters, and whether the new version may go out.
//!
//! The line is `load` → `pair` → `evidence` → `diff` → `grounding` → `findings` → `verdict` → `cause` → `severity` → `gate`,
//! each a function from values to values; then [`report`] writes what came of it. One case pair flows through the whole line
//! on one worker, so memory grows with the number of cases, not with their size.
//!
//! This crate never asks an agent: it reads what any producer wrote to the contract.

pub mod again;
pub mod alignment;
mod alike;
pub mod asked;
pub mod cause;
pub mod comparison;
pub mod counterparts;
pub mod diff;
pub mod differences;
pub mod divergence;
pub mod evidence;
pub mod expectations;
pub mod findings;
pub mod gate;
pub mod grounding;
mod hashed;
pub mod index;
pub mod load;
mod outcomes;
pub mod payload;
pub mod repeats;
pub mod report;
pub mod rules;
pub mod runs;
pub mod sentences;
pub mod severity;
pub mod statistics;
mod tools;
pub mod trail;
pub mod verdict;
pub mod words;
