//! Changes a store: adds versions of contracts, transitions and notes, under the lock of the file.

use std::collections::{HashMap, HashSet};
use std::num::NonZeroU32;

use counterproof_store::line_log::{LineWriter, LockOptions, Repair};
use jiff::Timestamp;

use super::cycle::find_cycle;
use super::{Note, NoteKind, Record, Status, Store, StoreError};
use crate::contract::{Contract, ContractId, ContractKey};
use crate::index::Appended;
use crate::lifecycle::{Actor, Details, State, StateChange, Transition};

/// The reason of the transition that the program makes when the last dependency is completed.
const DEPENDENCIES_MET: &str = "all dependencies are completed";

/// A store that is locked for changes. Dropping it releases the lock.
#[derive(Debug)]
pub struct Editor<'s> {
    pub(super) store: &'s Store,
    pub(super) writer: LineWriter,
}

/// A version of a contract that was added, or that was in the store with the same content.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Added {
    pub id: ContractId,
    pub version: NonZeroU32,
    pub state: State,
    /// False if the same version was in the store.
    pub is_new: bool,
}

/// A requested transition.
#[derive(Debug, Clone, PartialEq)]
pub struct NewTransition {
    /// The contract. Its version, if given, must be the latest one.
    pub key: ContractKey,
    pub to: State,
    /// Who makes it.
    pub actor: Actor,
    /// Why it is made.
    pub reason: String,
    /// The new owner, for [`State::Claimed`]. `None` means the actor.
    pub owner: Option<String>,
    /// The evidence.
    pub details: Details,
}

/// What the program adds to a transition in the same change.
#[derive(Debug, Clone, PartialEq)]
pub enum Then {
    Transition {
        to: State,
        /// Why it is made.
        reason: String,
    },
    Note {
        /// What happened.
        kind: NoteKind,
        /// The details, in one sentence.
        reason: String,
        /// The evidence.
        details: Details,
    },
}

impl Then {
    fn into_record(self, after: &Transition) -> Result<Record, StoreError> {
        let (id, version, at, actor) = (after.id.clone(), after.version, after.at, Actor::System);
        match self {
            Then::Transition { to, reason } => {
                let from = after.to;
                let refused = |reason| StoreError::Transition { id: id.clone(), reason };
                StateChange { from, to }.check(&actor, None).map_err(refused)?;
                let (owner, details) = (None, Details::new());
                let transition = Transition { id, version, from, to, at, actor, reason, owner, details };
                Ok(Record::Transition(Box::new(transition)))
            }
            Then::Note { kind, reason, details } => {
                Ok(Record::Note(Note { id, version, at, actor, kind, reason, details }))
            }
        }
    }
}

impl Store {
    /// Locks the store for changes, repairs a torn last line, and brings the index up to date.
    pub fn edit(&self, options: &LockOptions) -> Result<Editor<'_>, StoreError> {
        let writer = self.log.lock(options, |line| Record::parse(line).is_ok())?;
        self.index.catch_up()?;
        Ok(Editor { store: self, writer })
    }
}

impl Editor<'_> {
    /// Returns what was done about a torn last line.
    pub fn repair(&self) -> Option<&Repair> {
        self.writer.repair()
    }

    /// Adds versions of contracts, all of them or none. A contract without open dependencies becomes ready.
    pub fn add(&mut self, contracts: &[Contract], at: Timestamp) -> Result<Vec<Added>, StoreError> {
        self.store.index.catch_up()?;
        let mut batch: HashMap<ContractId, &Contract> = HashMap::new();
        let mut new = Vec::new();
        let mut added = Vec::new();
        for contract in contracts {
            let is_new = self.check_version(contract, batch.get(&contract.id).copied())?;
            if is_new {
                batch.insert(contract.id.clone(), contract);
                new.push(contract);
            }
            added.push(Added { id: contract.id.clone(), version: contract.version, state: State::Pending, is_new });
        }
        self.check_dependencies(&new, &batch)?;
        let mut records: Vec<Record> =
            new.iter().map(|&contract| Record::Contract(Box::new(contract.clone()))).collect();
        let mut seen = HashSet::new();
        for contract in contracts.iter().filter(|contract| seen.insert(&contract.id)) {
            records.extend(self.readiness(&contract.id, &batch, at)?);
        }
        self.commit(records)?;
        for item in &mut added {
            let status = self.store.status(&item.id)?;
            item.state = status.filter(|it| it.version == item.version).map_or(State::Pending, |it| it.state);
        }
        Ok(added)
    }

    /// Changes the state of the latest version of a contract, and makes the contracts ready whose last open dependency it is.
    pub fn transition(&mut self, request: NewTransition, at: Timestamp) -> Result<Transition, StoreError> {
        self.transition_then(request, None, at)
    }

    /// Makes a transition and what follows from it as one change: a crash leaves both or, in a torn file, only the first.
    pub fn transition_then(
        &mut self,
        request: NewTransition,
        then: Option<Then>,
        at: Timestamp,
    ) -> Result<Transition, StoreError> {
        let NewTransition { key, to, actor, reason, owner, details } = request;
        let status = self.status(&key)?;
        let mut records = Vec::new();
        let mut from = status.state;
        if matches!(to, State::Ready | State::Claimed) {
            let dependencies = self.store.index.dependencies(&status)?;
            let open = self.open_dependency(&dependencies, &HashMap::new())?;
            let is_possible = StateChange::targets(from).any(|target| target == to) || from == State::Pending;
            if let Some((dependency, state)) = open
                && is_possible
            {
                return Err(StoreError::DependencyNotMet { id: key.id, dependency, state });
            }
            if from == State::Pending && to == State::Claimed {
                // The program that completed the last dependency died before it could do this.
                records.push(line(ready(&status.id, status.version, at)));
                from = State::Ready;
            }
            if from == State::Pending && matches!(actor, Actor::Human(_)) {
                // The program does at the request of a person what it could not do then.
                let transition = ready(&status.id, status.version, at);
                self.commit(vec![line(transition.clone())])?;
                return Ok(transition);
            }
        }
        let change = StateChange { from, to };
        let refused = |reason| StoreError::Transition { id: key.id.clone(), reason };
        change.check(&actor, status.owner.as_deref()).map_err(refused)?;
        if to == State::Completed && actor != Actor::System && !status.awaits_approval {
            return Err(StoreError::NoApprovalRequested { id: key.id });
        }
        let owner = (to == State::Claimed).then(|| owner.or_else(|| actor.name().map(str::to_owned))).flatten();
        let transition =
            Transition { id: key.id, version: status.version, from, to, at, actor, reason, owner, details };
        records.push(line(transition.clone()));
        if to == State::Completed {
            records.extend(self.freed_by(&transition.id, at)?);
        }
        if let Some(then) = then {
            records.push(then.into_record(&transition)?);
        }
        self.commit(records)?;
        Ok(transition)
    }

    /// Adds a note to the latest version of a contract.
    pub fn note(&mut self, note: Note) -> Result<(), StoreError> {
        self.status(&ContractKey { id: note.id.clone(), version: Some(note.version) })?;
        self.commit(vec![Record::Note(note)])
    }

    /// Returns the status of the latest version. Fails for older ones.
    fn status(&self, key: &ContractKey) -> Result<Status, StoreError> {
        self.store.index.catch_up()?;
        let status = self.store.index.status(&key.id)?.ok_or_else(|| StoreError::NotFound(key.clone()))?;
        match key.version {
            Some(version) if version > status.version => Err(StoreError::NotFound(key.clone())),
            Some(version) if version < status.version => {
                Err(StoreError::Superseded { id: key.id.clone(), version, latest: status.version })
            }
            _ => Ok(status),
        }
    }

    /// Checks that a version follows the latest one. Returns false if it is in the store with the same content.
    fn check_version(&self, contract: &Contract, in_batch: Option<&Contract>) -> Result<bool, StoreError> {
        let status = self.store.index.status(&contract.id)?;
        let latest = in_batch.map(|it| it.version).or_else(|| status.as_ref().map(|it| it.version));
        let expected = latest.map_or(1, |latest| u64::from(latest.get()) + 1);
        if u64::from(contract.version.get()) == expected {
            return match status {
                Some(status) if status.state.is_active() && in_batch.is_none() => {
                    Err(StoreError::InUse { id: contract.id.clone(), state: status.state })
                }
                _ => Ok(true),
            };
        }
        let key = ContractKey { id: contract.id.clone(), version: Some(contract.version) };
        let stored = match in_batch.filter(|it| it.version == contract.version) {
            Some(same) => Some(same.clone()),
            None if status.is_some() => self.store.version(&key).ok().map(|version| version.contract),
            None => None,
        };
        if stored.is_some_and(|stored| stored == *contract) {
            return Ok(false);
        }
        Err(StoreError::VersionConflict { id: contract.id.clone(), found: contract.version, expected })
    }

    fn check_dependencies(&self, new: &[&Contract], batch: &HashMap<ContractId, &Contract>) -> Result<(), StoreError> {
        for contract in new {
            for dependency in contract.dependencies() {
                if !batch.contains_key(dependency) && self.store.index.status(dependency)?.is_none() {
                    let (id, dependency) = (contract.id.clone(), dependency.clone());
                    return Err(StoreError::DependencyNotFound { id, dependency });
                }
            }
        }
        let roots: Vec<&ContractId> = new.iter().map(|contract| &contract.id).collect();
        let cycle = find_cycle(&roots, |id| match batch.get(id) {
            Some(contract) => Ok(contract.dependencies().to_vec()),
            None => match self.store.index.status(id)? {
                Some(status) => self.store.index.dependencies(&status),
                None => Ok(Vec::new()),
            },
        })?;
        cycle.map_or(Ok(()), |cycle| Err(StoreError::CircularDependency(cycle)))
    }

    /// Returns the transition that makes the latest version of a contract ready, if nothing else is missing. A stored contract can
    /// be in this position too: a crash can tear the lines of one change apart.
    fn readiness(
        &self,
        id: &ContractId,
        batch: &HashMap<ContractId, &Contract>,
        at: Timestamp,
    ) -> Result<Option<Record>, StoreError> {
        let (version, dependencies) = match (batch.get(id), self.store.index.status(id)?) {
            (Some(contract), _) => (contract.version, contract.dependencies().to_vec()),
            (None, Some(status)) if status.state == State::Pending => {
                (status.version, self.store.index.dependencies(&status)?)
            }
            (None, _) => return Ok(None),
        };
        let is_ready = self.open_dependency(&dependencies, batch)?.is_none();
        Ok(is_ready.then(|| line(ready(id, version, at))))
    }

    /// Returns the first dependency that is not completed, with its state. A contract of the batch is not completed.
    fn open_dependency(
        &self,
        dependencies: &[ContractId],
        batch: &HashMap<ContractId, &Contract>,
    ) -> Result<Option<(ContractId, State)>, StoreError> {
        for dependency in dependencies {
            let state = if batch.contains_key(dependency) {
                State::Pending
            } else {
                self.store.index.status(dependency)?.map_or(State::Pending, |status| status.state)
            };
            if state != State::Completed {
                return Ok(Some((dependency.clone(), state)));
            }
        }
        Ok(None)
    }

    /// Returns the transitions of the contracts whose last open dependency is completed by this change.
    fn freed_by(&self, id: &ContractId, at: Timestamp) -> Result<Vec<Record>, StoreError> {
        let mut records = Vec::new();
        for dependent in self.store.index.dependents(id)? {
            if dependent.state != State::Pending {
                continue;
            }
            let mut others = self.store.index.dependencies(&dependent)?;
            others.retain(|other| other != id);
            if self.open_dependency(&others, &HashMap::new())?.is_none() {
                records.push(line(ready(&dependent.id, dependent.version, at)));
            }
        }
        Ok(records)
    }

    /// Appends records as lines, durably, and adds them to the index.
    fn commit(&mut self, records: Vec<Record>) -> Result<(), StoreError> {
        let mut lines = Vec::new();
        let mut placed = Vec::with_capacity(records.len());
        for record in records {
            placed.push((record, self.writer.length() + lines.len() as u64));
            if let Some((record, _)) = placed.last() {
                record.write_to(&mut lines)?;
            }
        }
        if lines.is_empty() {
            return Ok(());
        }
        self.writer.append(&lines)?;
        let appended = Appended { records: &placed, end: self.writer.length() };
        // The lines are durable, so the change has succeeded. An index that could not be updated is brought up to date by the
        // next change or reader.
        let _ = self.store.index.extend(self.writer.file(), &appended);
        Ok(())
    }
}

/// Returns the transition that makes a contract ready.
fn ready(id: &ContractId, version: NonZeroU32, at: Timestamp) -> Transition {
    Transition {
        id: id.clone(),
        version,
        from: State::Pending,
        to: State::Ready,
        at,
        actor: Actor::System,
        reason: DEPENDENCIES_MET.to_owned(),
        owner: None,
        details: Details::new(),
    }
}

fn line(transition: Transition) -> Record {
    Record::Transition(Box::new(transition))
}
