//! The table of transitions, and who may make each of them.

use super::{Actor, State};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct StateChange {
    pub from: State,
    pub to: State,
}

/// Who may make a transition.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Permission {
    /// The program, after it has checked the condition.
    System,
    /// A person.
    Human,
    /// Any agent, or a person.
    Anyone,
    /// The owner, or a person.
    Owner,
    /// The owner, a person, or the program.
    OwnerOrSystem,
    /// A person, or the program.
    HumanOrSystem,
}

/// A refused transition.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum TransitionError {
    /// The table has no such transition.
    #[error("invalid transition from {from} to {to}")]
    Invalid { from: State, to: State },
    /// An agent that does not own the contract.
    #[error("`{actor}` does not own the contract; its owner is `{owner}`")]
    NotOwner {
        /// Who asked.
        actor: Actor,
        owner: String,
    },
    /// A kind of actor that may not make this transition.
    #[error("`{actor}` may not move a contract from {from} to {to}: {allowed}")]
    NotAllowed {
        /// Who asked.
        actor: Actor,
        from: State,
        to: State,
        /// Who may.
        allowed: &'static str,
    },
}

impl StateChange {
    /// Returns the states that can follow a state.
    pub fn targets(from: State) -> impl Iterator<Item = State> {
        State::ALL.into_iter().filter(move |&to| StateChange { from, to }.permission().is_some())
    }

    /// Checks the change against the table, and the actor against its permission.
    pub fn check(self, actor: &Actor, owner: Option<&str>) -> Result<(), TransitionError> {
        let StateChange { from, to } = self;
        let Some(permission) = self.permission() else { return Err(TransitionError::Invalid { from, to }) };
        let owns = matches!(actor, Actor::Agent(name) if owner == Some(name));
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
            (Pending, Ready) | (RollingBack, RolledBack | Failed) => Permission::System,
            (Pending | Ready | Claimed | Executing | Failed, Cancelled) => Permission::Human,
            (Ready, Claimed) => Permission::Anyone,
            (Claimed, Executing) | (Executing, Verifying) => Permission::Owner,
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
