//! The transitions of one execution.

use counterproof_redaction::Applied;
use counterproof_store::line_log::LockOptions;
use jiff::Timestamp;

use super::began::LEFT;
use super::{ExecutionError, RunSettings};
use crate::contract::{Contract, ContractKey};
use crate::lifecycle::{Actor, Details, State};
use crate::record::{Note, NoteKind};
use crate::store::{NewTransition, Store, StoreError, Then};

/// The field of the evidence that describes how an execution began.
pub(super) const EXECUTION: &str = "execution";

/// Who finds that a contract has failed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum FailedBy {
    /// The owner: the work itself failed.
    Owner,
    /// The program: the check failed.
    System,
}

/// Records the transitions of one version of a contract.
#[derive(Debug)]
pub(super) struct Steps<'s> {
    store: &'s Store,
    settings: &'s RunSettings,
    key: ContractKey,
}

impl<'s> Steps<'s> {
    pub(super) fn new(store: &'s Store, settings: &'s RunSettings, contract: &Contract) -> Self {
        let key = ContractKey { id: contract.id.clone(), version: Some(contract.version) };
        Self { store, settings, key }
    }

    pub(super) fn now(&self) -> Timestamp {
        (self.settings.clock)()
    }

    /// Makes a transition as the owner.
    pub(super) fn by_owner(&self, to: State, reason: &str, details: Details) -> Result<(), StoreError> {
        self.make(to, Actor::Agent(self.settings.owner.clone()), reason, details)
    }

    /// Makes a transition as the program.
    pub(super) fn by_system(&self, to: State, reason: &str, details: Details) -> Result<(), StoreError> {
        self.make(to, Actor::System, reason, details)
    }

    fn make(&self, to: State, actor: Actor, reason: &str, details: Details) -> Result<(), StoreError> {
        self.make_then(to, actor, reason, details, None)
    }

    /// Fails the contract, as the owner or as the program, and adds what follows in the same change.
    pub(super) fn fail(
        &self,
        by: FailedBy,
        reason: &str,
        details: Details,
        then: Option<Then>,
    ) -> Result<(), StoreError> {
        let actor = match by {
            FailedBy::Owner => Actor::Agent(self.settings.owner.clone()),
            FailedBy::System => Actor::System,
        };
        let then = then.map(|then| match then {
            Then::Note { kind, reason, details } => {
                Then::Note { kind, reason: self.redacted(&reason), details: self.redacted_details(details) }
            }
            other @ Then::Transition { .. } => other,
        });
        self.make_then(State::Failed, actor, reason, details, then)
    }

    fn make_then(
        &self,
        to: State,
        actor: Actor,
        reason: &str,
        details: Details,
        then: Option<Then>,
    ) -> Result<(), StoreError> {
        let request = NewTransition {
            key: self.key.clone(),
            to,
            actor,
            reason: self.redacted(reason),
            owner: None,
            details: self.redacted_details(details),
        };
        self.store.edit(&LockOptions::default())?.transition_then(request, then, self.now()).map(drop)
    }

    /// Adds a note.
    pub(super) fn note(&self, kind: NoteKind, reason: &str, details: Details) -> Result<(), ExecutionError> {
        let Some(version) = self.key.version else { return Ok(()) };
        let note = Note {
            id: self.key.id.clone(),
            version,
            at: self.now(),
            actor: Actor::System,
            kind,
            reason: self.redacted(reason),
            details: self.redacted_details(details),
        };
        Ok(self.store.edit(&LockOptions::default())?.note(note)?)
    }

    fn redacted(&self, text: &str) -> String {
        self.settings.redactor.text(text, &mut Applied::default())
    }

    /// Masks secrets in evidence. What a rollback reads later stays as it is.
    fn redacted_details(&self, mut details: Details) -> Details {
        let kept = [EXECUTION, LEFT].map(|name| details.remove(name).map(|value| (name.to_owned(), value)));
        self.settings.redactor.object(&mut details, &mut Applied::default());
        details.extend(kept.into_iter().flatten());
        details
    }
}
