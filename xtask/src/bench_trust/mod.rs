//! `cargo xtask bench-trust`: how far the results of the built program can be trusted. Simulations measure its error rates, and a
//! corpus of real runs measures its rankings and causes.

mod command;
mod corpus;
mod night;
mod simulations;

pub(crate) use command::{Args, run};
