//! Reads contracts and their histories.

use std::cell::RefMut;
use std::collections::BTreeMap;

use super::states::States;
use super::{History, Status, Store, StoreError, VersionHistory};
use crate::contract::{Contract, ContractId, ContractKey};
use crate::lifecycle::State;

impl Store {
    /// Returns the states as the file has them now. The caller must not call the store again while it holds them.
    pub(super) fn states(&self) -> Result<RefMut<'_, States>, StoreError> {
        let mut states = self.states.borrow_mut();
        states.catch_up(&self.log)?;
        Ok(states)
    }

    /// Returns the length of a torn last line, which the next writer repairs; 0 if there is none.
    pub fn torn_bytes(&self) -> Result<u64, StoreError> {
        Ok(self.states()?.torn_bytes())
    }

    /// Returns the status of a contract, if it exists.
    pub fn status(&self, id: &ContractId) -> Result<Option<Status>, StoreError> {
        Ok(self.states()?.get(id).cloned())
    }

    /// Returns the status of every contract, in the order of their ids.
    pub fn statuses(&self) -> Result<Vec<Status>, StoreError> {
        let mut all: Vec<Status> = self.states()?.iter().cloned().collect();
        all.sort_unstable_by(|a, b| a.id.cmp(&b.id));
        Ok(all)
    }

    /// Returns a version of a contract, or the latest one.
    pub fn contract(&self, key: &ContractKey) -> Result<Contract, StoreError> {
        match key.version {
            None => self.states()?.latest(&key.id)?.ok_or_else(|| StoreError::NotFound(key.clone())),
            Some(_) => Ok(self.version(key)?.contract),
        }
    }

    /// Returns the latest version of the contract with this status.
    pub fn latest(&self, status: &Status) -> Result<Contract, StoreError> {
        let latest = self.states()?.latest(&status.id)?.filter(|latest| latest.version == status.version);
        latest.ok_or_else(|| StoreError::Changed(self.path().to_owned()))
    }

    /// Returns a version of a contract, or the latest one, with what happened to it.
    pub fn version(&self, key: &ContractKey) -> Result<VersionHistory, StoreError> {
        let history = self.states()?.history(&key.id)?;
        history.and_then(|history| history.into_version(key.version)).ok_or_else(|| StoreError::NotFound(key.clone()))
    }

    /// Returns everything that is stored about a contract.
    pub fn history(&self, id: &ContractId) -> Result<History, StoreError> {
        let not_found = || StoreError::NotFound(ContractKey { id: id.clone(), version: None });
        self.states()?.history(id)?.ok_or_else(not_found)
    }

    /// Returns the number of contracts in each state that occurs.
    pub fn counts(&self) -> Result<BTreeMap<State, u64>, StoreError> {
        let mut counts = BTreeMap::new();
        for status in self.states()?.iter() {
            *counts.entry(status.state).or_default() += 1;
        }
        Ok(counts)
    }

    /// Returns the dependencies of the latest version that are not completed, with their states.
    pub fn open_dependencies(&self, status: &Status) -> Result<Vec<(ContractId, State)>, StoreError> {
        let states = self.states()?;
        let state = |id| states.get(id).map_or(State::Pending, |status| status.state);
        let all = status.dependencies.iter().map(|id| (id.clone(), state(id)));
        Ok(all.filter(|(_, state)| *state != State::Completed).collect())
    }

    /// Returns the contracts that depend on this one, in the order of their ids.
    pub fn dependents(&self, id: &ContractId) -> Result<Vec<Status>, StoreError> {
        Ok(self.states()?.dependents(id).cloned().collect())
    }
}
