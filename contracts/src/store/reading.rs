//! Reads contracts and their histories.

use std::collections::BTreeMap;

use counterproof_store::line_log::LineReader;

use super::{History, IndexError, Record, Status, Store, StoreError, VersionHistory};
use crate::contract::{Contract, ContractId, ContractKey};
use crate::index::{AgeOrder, AgeQuery, line_number};
use crate::lifecycle::State;

impl Store {
    /// Brings the index up to date. Returns the length of a torn last line, which the next writer repairs; 0 if there is none.
    pub fn refresh(&self) -> Result<u64, StoreError> {
        self.index.catch_up()?;
        let Some(mut reader) = self.log.read_from(self.index.covered()?)? else { return Ok(0) };
        while reader.next_line()?.is_some() {}
        Ok(reader.torn_bytes())
    }

    /// Returns the status of a contract, if it exists.
    pub fn status(&self, id: &ContractId) -> Result<Option<Status>, StoreError> {
        self.index.catch_up()?;
        Ok(self.index.status(id)?)
    }

    /// Returns a version of a contract, or the latest one.
    pub fn contract(&self, key: &ContractKey) -> Result<Contract, StoreError> {
        let status = self.status(&key.id)?.ok_or_else(|| StoreError::NotFound(key.clone()))?;
        match key.version {
            None => self.latest(&status),
            Some(version) if version == status.version => self.latest(&status),
            Some(_) => Ok(self.version(key)?.contract),
        }
    }

    /// Returns the latest version of the contract with this status.
    pub fn latest(&self, status: &Status) -> Result<Contract, StoreError> {
        self.latest_with(&mut None, status)
    }

    /// Returns a version of a contract, or the latest one, with what happened to it.
    pub fn version(&self, key: &ContractKey) -> Result<VersionHistory, StoreError> {
        let mut versions = self.history(&key.id)?.versions;
        let index = match key.version {
            None => versions.len().checked_sub(1),
            Some(version) => versions.iter().position(|it| it.contract.version == version),
        };
        index.map(|index| versions.swap_remove(index)).ok_or_else(|| StoreError::NotFound(key.clone()))
    }

    /// Returns everything that is stored about a contract.
    pub fn history(&self, id: &ContractId) -> Result<History, StoreError> {
        match self.read_history(id) {
            Err(error) if may_be_replaced(&error) => self.read_history(id),
            read => read,
        }
    }

    fn read_history(&self, id: &ContractId) -> Result<History, StoreError> {
        let not_found = || StoreError::NotFound(ContractKey { id: id.clone(), version: None });
        let status = self.status(id)?.ok_or_else(not_found)?;
        let mut reader = self.reader()?;
        let mut history = History::default();
        for offset in self.index.lines(&status)? {
            let record = self.record_at(&mut reader, offset)?;
            if record.id() != id {
                return Err(self.changed());
            }
            history.push(record);
        }
        let is_complete = history.latest().is_some_and(|latest| latest.contract.version == status.version);
        if is_complete { Ok(history) } else { Err(self.changed()) }
    }

    /// Returns the number of contracts in each state that occurs.
    pub fn counts(&self) -> Result<BTreeMap<State, u64>, StoreError> {
        self.index.catch_up()?;
        Ok(self.index.counts()?.into_iter().collect())
    }

    /// Calls `visit` with the status of every contract, or of those in one state, in the order of their ids.
    pub fn for_each(
        &self,
        state: Option<State>,
        mut visit: impl FnMut(&Status) -> Result<(), StoreError>,
    ) -> Result<(), StoreError> {
        self.index.catch_up()?;
        let mut last = String::new();
        loop {
            let page = self.index.page(&last, state)?;
            let Some(end) = page.last() else { return Ok(()) };
            end.id.as_str().clone_into(&mut last);
            for status in &page {
                visit(status)?;
            }
        }
    }

    /// Calls `visit` with the status and the latest version of every contract, or of those in one state.
    pub fn for_each_latest(
        &self,
        state: Option<State>,
        mut visit: impl FnMut(&Status, &Contract) -> Result<(), StoreError>,
    ) -> Result<(), StoreError> {
        let mut reader = None;
        self.for_each(state, |status| {
            let contract = self.latest_with(&mut reader, status)?;
            visit(status, &contract)
        })
    }

    /// Returns the dependencies of the latest version that are not completed, with their states.
    pub fn open_dependencies(&self, status: &Status) -> Result<Vec<(ContractId, State)>, StoreError> {
        let mut open = Vec::new();
        for dependency in self.index.dependencies(status)? {
            let state = self.index.status(&dependency)?.map_or(State::Pending, |status| status.state);
            if state != State::Completed {
                open.push((dependency, state));
            }
        }
        Ok(open)
    }

    /// Returns the contracts that depend on this one.
    pub fn dependents(&self, id: &ContractId) -> Result<Vec<Status>, StoreError> {
        self.index.catch_up()?;
        Ok(self.index.dependents(id)?)
    }

    /// Returns the number of contracts of a query, and the first of them.
    pub(crate) fn by_age(
        &self,
        query: &AgeQuery<'_>,
        order: AgeOrder,
        limit: usize,
    ) -> Result<(u64, Vec<Status>), StoreError> {
        self.index.catch_up()?;
        Ok((self.index.count_by_age(query)?, self.index.by_age(query, order, limit)?))
    }

    /// Reads the version of a status with an open reader, or opens one. If another process has replaced the file, the line is
    /// looked up once more in the new file.
    fn latest_with(&self, reader: &mut Option<LineReader>, status: &Status) -> Result<Contract, StoreError> {
        let open = match reader.take() {
            Some(open) => open,
            None => self.reader()?,
        };
        match self.contract_at(reader.insert(open), status) {
            Err(error) if may_be_replaced(&error) => {
                let now = self.status(&status.id)?.filter(|now| now.version == status.version);
                let now = now.ok_or_else(|| self.changed())?;
                self.contract_at(reader.insert(self.reader()?), &now)
            }
            read => read,
        }
    }

    fn contract_at(&self, reader: &mut LineReader, status: &Status) -> Result<Contract, StoreError> {
        match self.record_at(reader, status.offset)? {
            Record::Contract(contract) if (&contract.id, contract.version) == (&status.id, status.version) => {
                Ok(*contract)
            }
            _ => Err(self.changed()),
        }
    }

    fn reader(&self) -> Result<LineReader, StoreError> {
        self.log.read_from(0)?.ok_or_else(|| self.changed())
    }

    /// Reads the record at an offset that the index names.
    fn record_at(&self, reader: &mut LineReader, offset: u64) -> Result<Record, StoreError> {
        let line = reader.line_at(offset)?.ok_or_else(|| self.changed())?;
        Record::parse(&line.bytes).map_err(|reason| {
            let (path, line) = (self.path().to_owned(), line_number(&self.log, offset));
            StoreError::Index(IndexError::Line { path, line, reason })
        })
    }

    /// Returns the error for a line that is not where the index says.
    fn changed(&self) -> StoreError {
        StoreError::Index(IndexError::Changed { path: self.path().to_owned() })
    }
}

/// True if a line was read at an offset that may belong to the file before a compaction.
const fn may_be_replaced(error: &StoreError) -> bool {
    matches!(error, StoreError::Index(IndexError::Changed { .. } | IndexError::Line { .. }))
}
