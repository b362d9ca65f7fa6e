//! Who makes a transition.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

/// Longest name of an actor, in bytes.
const MAX_BYTES: usize = 128;

/// Who makes a transition: `system`, `agent:NAME` or `human:NAME`.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub enum Actor {
    /// The program itself, after it has checked something.
    System,
    /// A program that works on contracts.
    Agent(String),
    /// A person.
    Human(String),
}

/// A text that names no actor.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is not an actor; write `agent:NAME` or `human:NAME`")]
pub struct ActorError(String);

impl Actor {
    /// Returns the name of an agent or a person.
    pub fn name(&self) -> Option<&str> {
        match self {
            Actor::System => None,
            Actor::Agent(name) | Actor::Human(name) => Some(name),
        }
    }
}

impl fmt::Display for Actor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Actor::System => f.write_str("system"),
            Actor::Agent(name) => write!(f, "agent:{name}"),
            Actor::Human(name) => write!(f, "human:{name}"),
        }
    }
}

impl FromStr for Actor {
    type Err = ActorError;

    fn from_str(text: &str) -> Result<Self, ActorError> {
        let error = || ActorError(text.chars().take(MAX_BYTES).collect());
        if text == "system" {
            return Ok(Actor::System);
        }
        let (kind, name) = text.split_once(':').ok_or_else(error)?;
        let is_name = !name.trim().is_empty() && name.len() <= MAX_BYTES && !name.chars().any(char::is_control);
        match kind {
            "agent" if is_name => Ok(Actor::Agent(name.to_owned())),
            "human" if is_name => Ok(Actor::Human(name.to_owned())),
            _ => Err(error()),
        }
    }
}

impl TryFrom<String> for Actor {
    type Error = ActorError;

    fn try_from(text: String) -> Result<Self, ActorError> {
        text.parse()
    }
}

impl From<Actor> for String {
    fn from(actor: Actor) -> String {
        actor.to_string()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_actor_has_a_kind_and_a_name() {
        for text in ["system", "agent:claude-code", "human:Ada Lovelace"] {
            assert_eq!(text.parse::<Actor>().unwrap().to_string(), text);
        }
        for text in ["", "ada", "agent:", "human: ", "robot:x", "agent:a\nb", "system:x"] {
            assert!(text.parse::<Actor>().is_err(), "{text:?}");
        }
    }
}
