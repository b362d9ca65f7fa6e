//! The states of a contract, the transitions between them, and who may make which.

mod actor;
mod state;
mod transition;
mod transition_rules;

pub use actor::{Actor, ActorError};
pub use state::{State, UnknownState};
pub use transition::{Details, Transition};
pub use transition_rules::{StateChange, TransitionError};
