//! The states of a contract, the transitions between them, and who may make which.

use std::fmt;
use std::num::NonZeroU32;
use std::str::FromStr;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::contract::ContractId;

/// Longest name of an actor, in bytes.
const MAX_BYTES: usize = 128;

/// Who makes a transition: `system`, `agent:NAME` or `human:NAME`.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub enum Actor {
    System,
    /// A program that works on contracts.
    Agent(String),
    Human(String),
}

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
        // Cut: the text may be the whole input of another program.
        let error = || ActorError(text.chars().take(MAX_BYTES).collect());
        if text == "system" {
            return Ok(Actor::System);
        }
        let (kind, name) = text.split_once(':').ok_or_else(error)?;
        // Control characters would break the one-line form in which people read a history.
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

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum State {
    /// A dependency is not completed.
    Pending,
    /// All dependencies are completed.
    Ready,
    /// An owner has taken the contract.
    Claimed,
    // Stores of earlier programs have these names; a stored line is never rewritten.
    #[serde(alias = "running")]
    Executing,
    Verifying,
    #[serde(alias = "passed")]
    Completed,
    Failed,
    #[serde(alias = "rollingback")]
    RollingBack,
    #[serde(alias = "rolledback")]
    RolledBack,
    /// A person decided against the contract.
    Cancelled,
}

impl State {
    pub const ALL: [State; 10] = [
        State::Pending,
        State::Ready,
        State::Claimed,
        State::Executing,
        State::Verifying,
        State::Completed,
        State::Failed,
        State::RollingBack,
        State::RolledBack,
        State::Cancelled,
    ];

    pub const fn as_str(self) -> &'static str {
        match self {
            State::Pending => "pending",
            State::Ready => "ready",
            State::Claimed => "claimed",
            State::Executing => "executing",
            State::Verifying => "verifying",
            State::Completed => "completed",
            State::Failed => "failed",
            State::RollingBack => "rolling_back",
            State::RolledBack => "rolled_back",
            State::Cancelled => "cancelled",
        }
    }

    /// A sign for people. Each state has another one, so that colour is never the only mark.
    pub const fn sign(self) -> &'static str {
        match self {
            State::Pending => "○",
            State::Ready => "◔",
            State::Claimed => "◑",
            State::Executing => "▸",
            State::Verifying => "◕",
            State::Completed => "✓",
            State::Failed => "✗",
            State::RollingBack => "↶",
            State::RolledBack => "↺",
            State::Cancelled => "⊘",
        }
    }

    pub const fn words(self) -> &'static str {
        match self {
            State::RollingBack => "rolling back",
            State::RolledBack => "rolled back",
            other => other.as_str(),
        }
    }

    /// True if no transition leaves the state.
    pub const fn is_terminal(self) -> bool {
        matches!(self, State::Completed | State::RolledBack | State::Cancelled)
    }

    /// True while an owner or the program works on the contract.
    pub const fn is_active(self) -> bool {
        matches!(self, State::Claimed | State::Executing | State::Verifying | State::RollingBack)
    }
}

impl fmt::Display for State {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is not a state")]
pub struct UnknownState(String);

impl FromStr for State {
    type Err = UnknownState;

    /// Parses a state. Accepts the names of earlier programs too: `running`, `passed`, `rollingback` and `rolledback`.
    fn from_str(text: &str) -> Result<Self, UnknownState> {
        Ok(match text {
            "running" => State::Executing,
            "passed" => State::Completed,
            "rollingback" => State::RollingBack,
            "rolledback" => State::RolledBack,
            _ => {
                let known = State::ALL.into_iter().find(|state| state.as_str() == text);
                known.ok_or_else(|| UnknownState(text.to_owned()))?
            }
        })
    }
}

/// Evidence of a transition, such as the outcome of the verification. Its fields depend on the transition.
pub type Details = Map<String, Value>;

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Transition {
    pub id: ContractId,
    pub version: NonZeroU32,
    pub from: State,
    pub to: State,
    pub at: Timestamp,
    pub actor: Actor,
    pub reason: String,
    /// The new owner, for transitions to [`State::Claimed`].
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub owner: Option<String>,
    #[serde(default, skip_serializing_if = "Map::is_empty")]
    pub details: Details,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct StateChange {
    pub from: State,
    pub to: State,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Permission {
    System,
    Human,
    Anyone,
    Owner,
    OwnerOrSystem,
    HumanOrSystem,
}

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum TransitionError {
    #[error("invalid transition from {from} to {to}")]
    Invalid { from: State, to: State },
    #[error("`{actor}` does not own the contract; its owner is `{owner}`")]
    NotOwner { actor: Actor, owner: String },
    #[error("`{actor}` may not move a contract from {from} to {to}: {allowed}")]
    NotAllowed { actor: Actor, from: State, to: State, allowed: &'static str },
}

impl StateChange {
    pub fn targets(from: State) -> impl Iterator<Item = State> {
        State::ALL.into_iter().filter(move |&to| StateChange { from, to }.permission().is_some())
    }

    pub fn check(self, actor: &Actor, owner: Option<&str>) -> Result<(), TransitionError> {
        let StateChange { from, to } = self;
        // Before the permission: an impossible change is reported as invalid, and not as forbidden for this actor.
        let Some(permission) = self.permission() else { return Err(TransitionError::Invalid { from, to }) };
        let owns = matches!(actor, Actor::Agent(name) if owner == Some(name));
        // A person may do everything that an owner may: an agent that hangs must not keep its contract.
        let is_allowed = match permission {
            Permission::System => *actor == Actor::System,
            Permission::Human => matches!(actor, Actor::Human(_)),
            Permission::Anyone => *actor != Actor::System,
            Permission::Owner => owns || matches!(actor, Actor::Human(_)),
            Permission::OwnerOrSystem => owns || !matches!(actor, Actor::Agent(_)),
            Permission::HumanOrSystem => !matches!(actor, Actor::Agent(_)),
        };
        if is_allowed {
            return Ok(());
        }
        match (permission, actor, owner) {
            // An agent that lost its contract to another one needs the name of the new owner, not the general rule.
            (Permission::Owner | Permission::OwnerOrSystem, Actor::Agent(_), Some(owner)) => {
                Err(TransitionError::NotOwner { actor: actor.clone(), owner: owner.to_owned() })
            }
            _ => Err(TransitionError::NotAllowed { actor: actor.clone(), from, to, allowed: permission.describe() }),
        }
    }

    /// Returns who may make the change. `None` if the table does not have it.
    const fn permission(self) -> Option<Permission> {
        use State::{
            Cancelled, Claimed, Completed, Executing, Failed, Pending, Ready, RolledBack, RollingBack, Verifying,
        };

        Some(match (self.from, self.to) {
            // Only the program has checked that dependencies are completed, or how a rollback ended.
            (Pending, Ready) | (RollingBack, RolledBack | Failed) => Permission::System,
            (Pending | Ready | Claimed | Executing | Failed, Cancelled) => Permission::Human,
            (Ready, Claimed) => Permission::Anyone,
            (Claimed, Executing) | (Executing, Verifying) => Permission::Owner,
            // The program makes these for an owner whose process died.
            (Claimed | Failed, Ready) | (Executing, Failed) | (Failed, RollingBack) => Permission::OwnerOrSystem,
            // A person decides where a contract requires an approval; the program decides otherwise.
            (Verifying, Completed | Failed) => Permission::HumanOrSystem,
            _ => return None,
        })
    }
}

impl Permission {
    const fn describe(self) -> &'static str {
        match self {
            Permission::System => "only the program may, after it has checked the condition",
            Permission::Human => "only a person may",
            Permission::Anyone => "only an agent or a person may",
            Permission::Owner => "only its owner or a person may",
            Permission::OwnerOrSystem => "only its owner, a person or the program may",
            Permission::HumanOrSystem => "only a person or the program may",
        }
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

    #[test]
    fn states_have_one_name_in_files_and_arguments_and_older_names_are_read() {
        for state in State::ALL {
            assert_eq!(serde_json::to_value(state).unwrap(), state.as_str());
            assert_eq!(state.as_str().parse(), Ok(state));
        }
        for (older, state) in [
            ("running", State::Executing),
            ("passed", State::Completed),
            ("rollingback", State::RollingBack),
            ("rolledback", State::RolledBack),
        ] {
            assert_eq!(older.parse(), Ok(state));
            assert_eq!(serde_json::from_value::<State>(older.into()).unwrap(), state);
        }
        assert!("done".parse::<State>().is_err());
    }

    /// The table, as the documentation states it.
    const TABLE: &[(State, &[State])] = &[
        (State::Pending, &[State::Ready, State::Cancelled]),
        (State::Ready, &[State::Claimed, State::Cancelled]),
        (State::Claimed, &[State::Ready, State::Executing, State::Cancelled]),
        (State::Executing, &[State::Verifying, State::Failed, State::Cancelled]),
        (State::Verifying, &[State::Completed, State::Failed]),
        (State::Failed, &[State::Ready, State::RollingBack, State::Cancelled]),
        (State::RollingBack, &[State::Failed, State::RolledBack]),
        (State::Completed, &[]),
        (State::RolledBack, &[]),
        (State::Cancelled, &[]),
    ];

    #[test]
    fn the_transitions_are_those_of_the_table() {
        assert_eq!(TABLE.len(), State::ALL.len());
        for (from, targets) in TABLE {
            assert_eq!(StateChange::targets(*from).collect::<Vec<_>>(), *targets, "{from}");
            assert_eq!(from.is_terminal(), targets.is_empty());
        }
    }

    #[test]
    fn an_agent_changes_only_contracts_that_it_owns() {
        let (ada, bob) = (Actor::Agent("ada".into()), Actor::Agent("bob".into()));
        let start = StateChange { from: State::Claimed, to: State::Executing };
        assert_eq!(start.check(&ada, Some("ada")), Ok(()));
        let refused = start.check(&bob, Some("ada")).unwrap_err();
        assert_eq!(refused.to_string(), "`agent:bob` does not own the contract; its owner is `ada`");
        assert!(start.check(&Actor::Human("ada".into()), Some("bob")).is_ok(), "a person may take over");
        assert!(matches!(start.check(&ada, None), Err(TransitionError::NotAllowed { .. })));
    }

    #[test]
    fn only_a_person_cancels_and_only_the_program_completes() {
        let (agent, human) = (Actor::Agent("a".into()), Actor::Human("h".into()));
        for from in [State::Pending, State::Ready, State::Claimed, State::Executing, State::Failed] {
            let cancel = StateChange { from, to: State::Cancelled };
            assert!(cancel.check(&human, Some("a")).is_ok(), "{from}");
            assert!(cancel.check(&agent, Some("a")).is_err() && cancel.check(&Actor::System, None).is_err(), "{from}");
        }
        let complete = StateChange { from: State::Verifying, to: State::Completed };
        assert!(complete.check(&Actor::System, Some("a")).is_ok() && complete.check(&agent, Some("a")).is_err());
        let refused = StateChange { from: State::RollingBack, to: State::RolledBack }.check(&human, None).unwrap_err();
        assert!(refused.to_string().contains("only the program may"), "{refused}");
    }

    #[test]
    fn a_change_outside_the_table_is_invalid_for_everyone() {
        let change = StateChange { from: State::Ready, to: State::Completed };
        for actor in [Actor::System, Actor::Agent("a".into()), Actor::Human("h".into())] {
            let refused = change.check(&actor, Some("a")).unwrap_err();
            assert_eq!(refused.to_string(), "invalid transition from ready to completed");
        }
    }
}
