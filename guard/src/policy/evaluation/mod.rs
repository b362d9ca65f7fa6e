//! The evaluation of a policy: facts about a call in, a decision out. No clock, no input, no output.
//!
//! The rules are evaluated in order. Counters belong to one [`Engine`], thus to one run of one server.

mod breaker;
mod counters;
mod engine;
mod evaluate;
mod names;
mod reasons;
mod record;
mod scope;
mod state;
mod steps;
mod window;

pub use engine::Engine;
pub(in crate::policy) use record::{POLICY_ERROR, refusal};
pub use steps::{Matching, RuleStep, Treatment};
