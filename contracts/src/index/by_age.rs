//! Lists and counts contracts by the time since which they are in their state.

use rusqlite::params;

use super::status::{COLUMNS, Status};
use super::{Index, IndexError};
use crate::lifecycle::State;

/// Which contracts a list by age has.
#[derive(Debug, Clone, Copy)]
pub(crate) struct AgeQuery<'a> {
    pub(crate) states: &'a [State],
    /// Whether a person must decide about them.
    pub(crate) needs_decision: bool,
}

/// The order of a list by age.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum AgeOrder {
    OldestFirst,
    NewestFirst,
}

impl AgeQuery<'_> {
    fn condition(&self) -> String {
        let states: Vec<String> = self.states.iter().map(|state| format!("'{state}'")).collect();
        format!("WHERE state IN ({}) AND (awaits_approval OR rollback_refused) = ?1", states.join(", "))
    }
}

impl Index {
    /// Returns the number of contracts of a query.
    pub(crate) fn count_by_age(&self, query: &AgeQuery<'_>) -> Result<u64, IndexError> {
        let text = format!("SELECT count(*) FROM contract {}", query.condition());
        self.query(|connection| {
            connection.prepare_cached(&text)?.query_row(params![query.needs_decision], |row| row.get(0))
        })
    }

    /// Returns the first contracts of a query. Those of the same time are in the order of their projects and ids.
    pub(crate) fn by_age(
        &self,
        query: &AgeQuery<'_>,
        order: AgeOrder,
        limit: usize,
    ) -> Result<Vec<Status>, IndexError> {
        let direction = match order {
            AgeOrder::OldestFirst => "ASC",
            AgeOrder::NewestFirst => "DESC",
        };
        let text = format!(
            "SELECT {COLUMNS} FROM contract {} ORDER BY coalesce(since, created_at) {direction}, project {direction}, \
             id {direction} LIMIT ?2",
            query.condition()
        );
        let limit = i64::try_from(limit).unwrap_or(i64::MAX);
        self.query(|connection| {
            let values = params![query.needs_decision, limit];
            connection.prepare_cached(&text)?.query_map(values, Status::from_row)?.collect()
        })
    }
}
