//! Questions to the index.

use std::result::Result as StdResult;

use rusqlite::{Connection, OptionalExtension as _, Result, ToSql, params};

use super::coverage::Coverage;
use super::status::{COLUMNS, Status};
use super::{Index, IndexError};
use crate::contract::ContractId;
use crate::lifecycle::State;

/// How many contracts are read at once for a list.
const PAGE: i64 = 500;

pub(super) fn status(connection: &Connection, id: &ContractId) -> Result<Option<Status>> {
    let text = select("WHERE id = ?1");
    connection.prepare_cached(&text)?.query_row([id.as_str()], Status::from_row).optional()
}

fn select(condition: &str) -> String {
    format!("SELECT {COLUMNS} FROM contract {condition}")
}

impl Index {
    /// Returns the length of the covered part of the file.
    pub(crate) fn covered(&self) -> StdResult<u64, IndexError> {
        Ok(self.query(Coverage::load)?.map_or(0, |coverage| coverage.bytes))
    }

    pub(crate) fn status(&self, id: &ContractId) -> StdResult<Option<Status>, IndexError> {
        self.query(|connection| status(connection, id))
    }

    /// Returns the offsets of all lines of a contract, in the order of the file.
    pub(crate) fn lines(&self, status: &Status) -> StdResult<Vec<u64>, IndexError> {
        // By the id: the number is another one if the index was rebuilt in the meantime.
        let text =
            "SELECT offset FROM line WHERE contract = (SELECT number FROM contract WHERE id = ?1) ORDER BY offset";
        self.query(|connection| {
            connection.prepare_cached(text)?.query_map([status.id.as_str()], |row| row.get(0))?.collect()
        })
    }

    /// Returns the contracts that depend on this one, in the order of their ids.
    pub(crate) fn dependents(&self, id: &ContractId) -> StdResult<Vec<Status>, IndexError> {
        let text = select("WHERE number IN (SELECT contract FROM dependency WHERE dependency = ?1) ORDER BY id");
        self.statuses_of(&text, params![id.as_str()])
    }

    pub(crate) fn dependencies(&self, status: &Status) -> StdResult<Vec<ContractId>, IndexError> {
        let text = "SELECT dependency FROM dependency WHERE contract = (SELECT number FROM contract WHERE id = ?1) \
                    ORDER BY dependency";
        let ids: Vec<String> = self.query(|connection| {
            connection.prepare_cached(text)?.query_map([status.id.as_str()], |row| row.get(0))?.collect()
        })?;
        Ok(ids.into_iter().filter_map(|id| id.parse().ok()).collect())
    }

    /// Returns the number of contracts in each state that occurs.
    pub(crate) fn counts(&self) -> StdResult<Vec<(State, u64)>, IndexError> {
        let text = "SELECT state, count(*) FROM contract GROUP BY state";
        let counts: Vec<(String, u64)> = self.query(|connection| {
            connection.prepare_cached(text)?.query_map([], |row| Ok((row.get(0)?, row.get(1)?)))?.collect()
        })?;
        Ok(counts.into_iter().filter_map(|(state, count)| Some((state.parse().ok()?, count))).collect())
    }

    /// Returns the next contracts after an id, in the order of their ids. Empty at the end.
    pub(crate) fn page(&self, after: &str, state: Option<State>) -> StdResult<Vec<Status>, IndexError> {
        match state {
            None => {
                let text = select("WHERE id > ?1 ORDER BY id LIMIT ?2");
                self.statuses_of(&text, params![after, PAGE])
            }
            Some(state) => {
                let text = select("WHERE state = ?3 AND id > ?1 ORDER BY id LIMIT ?2");
                self.statuses_of(&text, params![after, PAGE, state.as_str()])
            }
        }
    }

    fn statuses_of(&self, text: &str, values: &[&dyn ToSql]) -> StdResult<Vec<Status>, IndexError> {
        self.query(|connection| connection.prepare_cached(text)?.query_map(values, Status::from_row)?.collect())
    }
}
