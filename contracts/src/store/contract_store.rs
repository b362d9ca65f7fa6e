//! The store of a project: reads states and lines, and removes superseded lines.

use std::cell::{RefCell, RefMut};
use std::collections::{BTreeMap, BTreeSet};
use std::io::Write as _;

use camino::{Utf8Path, Utf8PathBuf};
use counterproof_store::line_log::{LineLog, LogError};

use super::states::States;
use super::{Editor, History, Status, StoreError, VersionHistory};
use crate::contract::{Contract, ContractId, ContractKey};
use crate::lifecycle::State;

#[derive(Debug)]
pub struct Store {
    pub(super) log: LineLog,
    states: RefCell<States>,
}

impl Store {
    /// Names the store whose lines are in this file. The file and its folder need not exist yet.
    pub fn new(path: impl Into<Utf8PathBuf>) -> Self {
        Self { log: LineLog::new(path), states: RefCell::default() }
    }

    pub fn path(&self) -> &Utf8Path {
        self.log.path()
    }

    /// Returns the folder for evidence and snapshots, which belongs to the store. It need not exist.
    pub fn files_folder(&self) -> Utf8PathBuf {
        format!("{}.files", self.path()).into()
    }

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

    pub fn status(&self, id: &ContractId) -> Result<Option<Status>, StoreError> {
        Ok(self.states()?.get(id).cloned())
    }

    /// Returns the status of every contract, in the order of their ids.
    pub fn statuses(&self) -> Result<Vec<Status>, StoreError> {
        let mut all: Vec<Status> = self.states()?.iter().cloned().collect();
        // The map has a random order; lists must not.
        all.sort_unstable_by(|a, b| a.id.cmp(&b.id));
        Ok(all)
    }

    pub fn contract(&self, key: &ContractKey) -> Result<Contract, StoreError> {
        match key.version {
            None => self.states()?.latest(&key.id)?.ok_or_else(|| StoreError::NotFound(key.clone())),
            Some(_) => Ok(self.version(key)?.contract),
        }
    }

    pub fn latest(&self, status: &Status) -> Result<Contract, StoreError> {
        let latest = self.states()?.latest(&status.id)?.filter(|latest| latest.version == status.version);
        latest.ok_or_else(|| StoreError::Changed(self.path().to_owned()))
    }

    /// Returns a version of a contract, or the latest one, with what happened to it.
    pub fn version(&self, key: &ContractKey) -> Result<VersionHistory, StoreError> {
        let history = self.states()?.history(&key.id)?;
        history.and_then(|history| history.into_version(key.version)).ok_or_else(|| StoreError::NotFound(key.clone()))
    }

    pub fn history(&self, id: &ContractId) -> Result<History, StoreError> {
        let not_found = || StoreError::NotFound(ContractKey { id: id.clone(), version: None });
        self.states()?.history(id)?.ok_or_else(not_found)
    }

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

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct CompactionPlan {
    pub kept_lines: u64,
    pub removed_lines: u64,
    pub removed_bytes: u64,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Compacted {
    pub plan: CompactionPlan,
    /// The whole store as it was before.
    pub archive: Utf8PathBuf,
}

impl Store {
    pub fn compaction_plan(&self) -> Result<CompactionPlan, StoreError> {
        // A damaged store is refused here: removing lines could hide the damage.
        let superseded = self.states()?.superseded();
        Ok(self.each_kept_line(&superseded, |_| Ok(()))?)
    }

    /// Calls `keep` with every line, newline included, except for the ones at these offsets.
    fn each_kept_line(
        &self,
        superseded: &BTreeSet<u64>,
        mut keep: impl FnMut(&[u8]) -> Result<(), LogError>,
    ) -> Result<CompactionPlan, LogError> {
        let mut plan = CompactionPlan::default();
        let Some(mut lines) = self.log.read_from(0)? else { return Ok(plan) };
        while let Some(mut line) = lines.next_line()? {
            // The reader strips it, and the copy must have the same bytes as the original.
            line.bytes.push(b'\n');
            if superseded.contains(&line.offset) {
                plan.removed_lines += 1;
                plan.removed_bytes += line.bytes.len() as u64;
            } else {
                plan.kept_lines += 1;
                keep(&line.bytes)?;
            }
        }
        Ok(plan)
    }
}

impl Editor<'_> {
    /// Removes the lines of superseded versions. The whole store is kept in the file `archive`, which must not exist.
    pub fn compact(self, archive: Utf8PathBuf) -> Result<Compacted, StoreError> {
        let store = self.store;
        let superseded = store.states()?.superseded();
        let mut plan = CompactionPlan::default();
        // The lock is kept until the new file is in place, so no line is appended to the old one.
        self.writer.replace(&archive, |file| {
            let keep = |line: &[u8]| {
                file.write_all(line).map_err(|source| LogError::Write { path: store.path().to_owned(), source })
            };
            plan = store.each_kept_line(&superseded, keep)?;
            Ok(())
        })?;
        Ok(Compacted { plan, archive })
    }
}
