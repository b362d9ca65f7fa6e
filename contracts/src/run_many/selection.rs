//! Which contracts a run executes, and in which order.

use std::collections::{BTreeMap, BTreeSet};

use crate::contract::{Contract, ContractId, ContractKey};
use crate::execution::was_interrupted;
use crate::lifecycle::State;
use crate::store::{Store, StoreError, VersionHistory};

/// What a run is asked to execute.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Selection {
    Ids(Vec<ContractId>),
    /// Every contract that is pending or ready, and those of this owner whose execution was interrupted.
    All {
        /// The name of the agent.
        owner: String,
    },
}

/// A selected contract.
#[derive(Debug, Clone, PartialEq)]
pub struct Selected {
    /// Its latest version.
    pub contract: Contract,
    pub state: State,
    /// Its dependencies within the selection.
    pub after: Vec<ContractId>,
    /// Its open dependencies outside of the selection, with their states.
    pub open: Vec<(ContractId, State)>,
}

/// A selection that cannot be run.
#[derive(Debug, thiserror::Error)]
pub enum SelectionError {
    /// The store refused a request, or failed.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// A contract is named twice.
    #[error("`{0}` is named twice")]
    Twice(ContractId),
}

/// Returns the selected contracts: each one after its dependencies, otherwise in the order of their ids.
pub fn select(store: &Store, selection: &Selection) -> Result<Vec<Selected>, SelectionError> {
    let mut found: BTreeMap<ContractId, VersionHistory> = BTreeMap::new();
    for id in ids(store, selection)? {
        let version = store.version(&ContractKey { id: id.clone(), version: None })?;
        if found.insert(id.clone(), version).is_some() {
            return Err(SelectionError::Twice(id));
        }
    }
    let mut selected = BTreeMap::new();
    for (id, version) in &found {
        let (mut after, mut open) = (Vec::new(), Vec::new());
        for dependency in version.contract.dependencies() {
            if found.contains_key(dependency) {
                after.push(dependency.clone());
            } else {
                let state = store.status(dependency)?.map_or(State::Pending, |status| status.state);
                open.extend((state != State::Completed).then(|| (dependency.clone(), state)));
            }
        }
        let state = version.state();
        selected.insert(id.clone(), Selected { contract: version.contract.clone(), state, after, open });
    }
    Ok(in_order(selected))
}

fn ids(store: &Store, selection: &Selection) -> Result<Vec<ContractId>, StoreError> {
    let owner = match selection {
        Selection::Ids(ids) => return Ok(ids.clone()),
        Selection::All { owner } => owner,
    };
    let mut candidates = Vec::new();
    for status in store.statuses()? {
        let is_own = status.owner.as_ref() == Some(owner) && !status.awaits_approval;
        match status.state {
            State::Pending | State::Ready => candidates.push((status.id.clone(), true)),
            State::Failed => candidates.extend(is_own.then(|| (status.id.clone(), false))),
            state if state.is_active() => candidates.extend(is_own.then(|| (status.id.clone(), true))),
            _ => {}
        }
    }
    let mut ids = Vec::new();
    for (id, is_certain) in candidates {
        // A failed contract is executed again only if its execution was interrupted; otherwise a person decides.
        if is_certain || was_interrupted(&store.version(&ContractKey { id: id.clone(), version: None })?) {
            ids.push(id);
        }
    }
    Ok(ids)
}

fn in_order(mut left: BTreeMap<ContractId, Selected>) -> Vec<Selected> {
    let mut ordered = Vec::with_capacity(left.len());
    let mut done: BTreeSet<ContractId> = BTreeSet::new();
    while !left.is_empty() {
        let next: Vec<ContractId> = left
            .iter()
            .filter(|(_, it)| it.after.iter().all(|id| done.contains(id)))
            .map(|(id, _)| id.clone())
            .collect();
        // The store has no cycles, so some contract is always free. Otherwise the rest keeps the order of its ids.
        let next = if next.is_empty() { left.keys().cloned().collect() } else { next };
        for id in next {
            ordered.extend(left.remove(&id));
            done.insert(id);
        }
    }
    ordered
}
