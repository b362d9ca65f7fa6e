//! Changes a store: adds versions of contracts, transitions and notes, under the lock of the file.

use std::collections::{HashMap, HashSet};
use std::num::NonZeroU32;

use counterproof_store::line_log::{LineWriter, LockOptions, Repair};
use jiff::Timestamp;

use super::states::States;
use super::{Note, NoteKind, Record, Status, Store, StoreError};
use crate::contract::{Contract, ContractId, ContractKey};
use crate::lifecycle::{Actor, Details, State, StateChange, Transition};

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
    /// The dependencies that are not in the store yet.
    pub missing: Vec<ContractId>,
}

#[derive(Debug, Clone, PartialEq)]
pub struct NewTransition {
    /// The contract. Its version, if given, must be the latest one.
    pub key: ContractKey,
    pub to: State,
    pub actor: Actor,
    pub reason: String,
    /// The new owner, for [`State::Claimed`]. `None` means the actor.
    pub owner: Option<String>,
    pub details: Details,
}

/// What the program adds to a transition in the same change.
#[derive(Debug, Clone, PartialEq)]
pub enum Then {
    Transition { to: State, reason: String },
    Note { kind: NoteKind, reason: String, details: Details },
}

impl Then {
    fn into_record(self, after: &Transition) -> Result<Record, StoreError> {
        let (id, version, at, actor) = (after.id.clone(), after.version, after.at, Actor::System);
        match self {
            Then::Transition { to, reason } => {
                let from = after.to;
                let refused = |reason| StoreError::Transition { id: id.clone(), reason };
                // The table applies to what the program adds as well.
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
    /// Locks the store for changes, and repairs a torn last line. A damaged store is not changed.
    pub fn edit(&self, options: &LockOptions) -> Result<Editor<'_>, StoreError> {
        // The lock comes before the states are read: a decision on older states could be outdated when it is written.
        let writer = self.log.lock(options, |line| Record::parse(line).is_ok())?;
        drop(self.states()?);
        Ok(Editor { store: self, writer })
    }
}

impl Editor<'_> {
    pub fn repair(&self) -> Option<&Repair> {
        self.writer.repair()
    }

    /// Adds versions of contracts, all of them or none. A contract without open dependencies becomes ready.
    pub fn add(&mut self, contracts: &[Contract], at: Timestamp) -> Result<Vec<Added>, StoreError> {
        let states = self.store.states()?;
        let mut batch: HashMap<ContractId, &Contract> = HashMap::new();
        let mut new = Vec::new();
        let mut added = Vec::new();
        for contract in contracts {
            let is_new = check_version(&states, contract, batch.get(&contract.id).copied())?;
            if is_new {
                batch.insert(contract.id.clone(), contract);
                new.push(contract);
            }
            added.push(Added {
                id: contract.id.clone(),
                version: contract.version,
                state: State::Pending,
                is_new,
                missing: Vec::new(),
            });
        }
        // Against the batch as well: a file may name a dependency before the contract itself.
        check_dependencies(&states, &new, &batch)?;
        let mut records: Vec<Record> =
            new.iter().map(|&contract| Record::Contract(Box::new(contract.clone()))).collect();
        // A file may have several versions of one contract, and only the latest becomes ready.
        let mut seen = HashSet::new();
        for contract in contracts.iter().filter(|contract| seen.insert(&contract.id)) {
            records.extend(readiness(&states, &contract.id, &batch, at));
        }
        drop(states);
        self.commit(&records)?;
        let states = self.store.states()?;
        for item in &mut added {
            let status = states.get(&item.id).filter(|it| it.version == item.version);
            // A version of the same batch may have superseded this one.
            item.state = status.map_or(State::Pending, |it| it.state);
            let dependencies = status.map(|it| it.dependencies.as_slice()).unwrap_or_default();
            item.missing = dependencies.iter().filter(|id| states.get(id).is_none()).cloned().collect();
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
        let states = self.store.states()?;
        let status = latest_status(&states, &key)?.clone();
        let mut records = Vec::new();
        let mut from = status.state;
        if matches!(to, State::Ready | State::Claimed) {
            let open = open_dependency(&states, &status.dependencies, &HashMap::new());
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
                drop(states);
                self.commit(&[line(transition.clone())])?;
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
            // In the same write as the completion, so that a crash between two writes cannot leave these contracts pending.
            records.extend(freed_by(&states, &transition.id, at));
        }
        drop(states);
        if let Some(then) = then {
            records.push(then.into_record(&transition)?);
        }
        self.commit(&records)?;
        Ok(transition)
    }

    pub fn note(&mut self, note: Note) -> Result<(), StoreError> {
        let key = ContractKey { id: note.id.clone(), version: Some(note.version) };
        latest_status(&*self.store.states()?, &key)?;
        self.commit(&[Record::Note(note)])
    }

    fn commit(&mut self, records: &[Record]) -> Result<(), StoreError> {
        let mut lines = Vec::new();
        for record in records {
            record.write_to(&mut lines)?;
        }
        if !lines.is_empty() {
            // One write and one sync for the whole change. The states follow from the file, so a failure here changes neither.
            self.writer.append(&lines)?;
        }
        Ok(())
    }
}

fn latest_status<'s>(states: &'s States, key: &ContractKey) -> Result<&'s Status, StoreError> {
    let status = states.get(&key.id).ok_or_else(|| StoreError::NotFound(key.clone()))?;
    // A version that was named is a decision about that version: it must not apply to a later one.
    match key.version {
        Some(version) if version > status.version => Err(StoreError::NotFound(key.clone())),
        Some(version) if version < status.version => {
            Err(StoreError::Superseded { id: key.id.clone(), version, latest: status.version })
        }
        _ => Ok(status),
    }
}

/// Checks that a version follows the latest one. Returns false if it is in the store with the same content.
fn check_version(states: &States, contract: &Contract, in_batch: Option<&Contract>) -> Result<bool, StoreError> {
    let status = states.get(&contract.id);
    let latest = in_batch.map(|it| it.version).or_else(|| status.map(|it| it.version));
    let expected = latest.map_or(1, |latest| u64::from(latest.get()) + 1);
    if u64::from(contract.version.get()) == expected {
        // A new version would change the rules for work that is in progress.
        return match status {
            Some(status) if status.state.is_active() && in_batch.is_none() => {
                Err(StoreError::InUse { id: contract.id.clone(), state: status.state })
            }
            _ => Ok(true),
        };
    }
    // The same content again is not an error, so that a file can be added twice.
    let is_stored = if let Some(same) = in_batch.filter(|it| it.version == contract.version) {
        same == contract
    } else {
        let history = states.history(&contract.id)?.unwrap_or_default();
        history.version(contract.version.get()).is_some_and(|stored| stored.contract == *contract)
    };
    if is_stored {
        return Ok(false);
    }
    Err(StoreError::VersionConflict { id: contract.id.clone(), found: contract.version, expected })
}

fn check_dependencies(
    states: &States,
    new: &[&Contract],
    batch: &HashMap<ContractId, &Contract>,
) -> Result<(), StoreError> {
    // A new cycle needs a new edge, so it contains a new contract.
    let roots: Vec<&ContractId> = new.iter().map(|contract| &contract.id).collect();
    let cycle = find_cycle(&roots, |id| match batch.get(id) {
        Some(contract) => contract.dependencies().to_vec(),
        None => states.get(id).map(|status| status.dependencies.clone()).unwrap_or_default(),
    });
    cycle.map_or(Ok(()), |cycle| Err(StoreError::CircularDependency(cycle)))
}

/// Returns the transition that makes the latest version of a contract ready, if nothing else is missing.
fn readiness(
    states: &States,
    id: &ContractId,
    batch: &HashMap<ContractId, &Contract>,
    at: Timestamp,
) -> Option<Record> {
    let (version, dependencies) = match (batch.get(id), states.get(id)) {
        (Some(contract), _) => (contract.version, contract.dependencies()),
        // A stored contract can be pending with nothing missing: a crash can tear the lines of one change apart.
        (None, Some(status)) if status.state == State::Pending => (status.version, status.dependencies.as_slice()),
        (None, _) => return None,
    };
    let is_ready = open_dependency(states, dependencies, batch).is_none();
    is_ready.then(|| line(ready(id, version, at)))
}

fn open_dependency(
    states: &States,
    dependencies: &[ContractId],
    batch: &HashMap<ContractId, &Contract>,
) -> Option<(ContractId, State)> {
    // A new version begins as pending, whatever the state of the one before.
    let in_batch = |id| batch.contains_key(id).then_some(State::Pending);
    let stored = |id| states.get(id).map_or(State::Pending, |status| status.state);
    let mut all = dependencies.iter().map(|id| (id, in_batch(id).unwrap_or_else(|| stored(id))));
    all.find(|(_, state)| *state != State::Completed).map(|(id, state)| (id.clone(), state))
}

/// Returns the transitions of the contracts whose last open dependency is completed by this change.
fn freed_by(states: &States, id: &ContractId, at: Timestamp) -> Vec<Record> {
    let is_free = |dependent: &&Status| {
        let others: Vec<ContractId> = dependent.dependencies.iter().filter(|other| *other != id).cloned().collect();
        // The completed contract itself still has its earlier state here, so it is left out.
        dependent.state == State::Pending && open_dependency(states, &others, &HashMap::new()).is_none()
    };
    states.dependents(id).filter(is_free).map(|it| line(ready(&it.id, it.version, at))).collect()
}

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

/// Finds a cycle that can be reached from `start`: its ids in order, with the first one again at the end. `dependencies` returns
/// the direct dependencies of a contract.
pub(crate) fn find_cycle(
    start: &[&ContractId],
    mut dependencies: impl FnMut(&ContractId) -> Vec<ContractId>,
) -> Option<Vec<ContractId>> {
    let mut finished: HashSet<ContractId> = HashSet::new();
    for &root in start {
        // A depth-first walk without recursion, because a chain of dependencies may be long. The path is on the stack.
        let mut stack: Vec<(ContractId, std::vec::IntoIter<ContractId>)> = Vec::new();
        let mut on_path: HashMap<ContractId, usize> = HashMap::new();
        let mut next = Some(root.clone());
        loop {
            if let Some(id) = next.take() {
                if let Some(&from) = on_path.get(&id) {
                    let mut cycle: Vec<ContractId> = stack[from..].iter().map(|(id, _)| id.clone()).collect();
                    cycle.push(id);
                    return Some(cycle);
                }
                if !finished.contains(&id) {
                    on_path.insert(id.clone(), stack.len());
                    let below = dependencies(&id).into_iter();
                    stack.push((id, below));
                }
            }
            let Some((_, below)) = stack.last_mut() else { break };
            next = below.next();
            if next.is_none()
                && let Some((id, _)) = stack.pop()
            {
                on_path.remove(&id);
                // Everything below it was visited without a cycle, so other roots can skip it.
                finished.insert(id);
            }
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn id(number: usize) -> ContractId {
        format!("c{number}").parse().unwrap()
    }

    fn cycle_in(edges: &[Vec<usize>]) -> Option<Vec<ContractId>> {
        let ids: Vec<ContractId> = (0..edges.len()).map(id).collect();
        find_cycle(&ids.iter().collect::<Vec<_>>(), |of| {
            let index: usize = of.as_str()[1..].parse().unwrap();
            edges[index].iter().map(|&to| id(to)).collect()
        })
    }

    #[test]
    fn the_cycle_is_named_from_its_start_to_its_start() {
        assert_eq!(cycle_in(&[vec![1], vec![2], vec![1]]), Some(vec![id(1), id(2), id(1)]));
        assert_eq!(cycle_in(&[vec![0]]), Some(vec![id(0), id(0)]));
        assert_eq!(cycle_in(&[vec![1, 2], vec![2], vec![]]), None);
    }

    #[test]
    fn a_long_chain_does_not_overflow_the_stack() {
        let edges: Vec<Vec<usize>> = (0..50_000).map(|it| if it == 49_999 { vec![] } else { vec![it + 1] }).collect();
        assert_eq!(cycle_in(&edges), None);
    }

    proptest! {
        #[test]
        fn a_cycle_is_found_exactly_if_no_order_exists(
            edges in (1_usize..8).prop_flat_map(|count| proptest::collection::vec(proptest::collection::vec(0..count, 0..3), count))
        ) {
            // Kahn's algorithm: remove contracts without dependencies until none is left.
            let mut left: HashSet<usize> = (0..edges.len()).collect();
            while let Some(free) = left.iter().copied().find(|it| edges[*it].iter().all(|to| !left.contains(to))) {
                left.remove(&free);
            }
            let cycle = cycle_in(&edges);
            prop_assert_eq!(cycle.is_some(), !left.is_empty());
            for pair in cycle.unwrap_or_default().windows(2) {
                let index = |it: &ContractId| it.as_str()[1..].parse::<usize>().unwrap();
                prop_assert!(edges[index(&pair[0])].contains(&index(&pair[1])));
            }
        }
    }
}
