//! The state of a contract, as lists show it.

use std::num::NonZeroU32;

use jiff::Timestamp;
use rusqlite::types::Type;
use rusqlite::{Error, Result, Row};

use crate::contract::ContractId;
use crate::lifecycle::State;

/// The state of the latest version of a contract.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Status {
    pub id: ContractId,
    pub version: NonZeroU32,
    pub state: State,
    /// The time of the last transition. `None` if there was none.
    pub since: Option<Timestamp>,
    /// The owner, while there is one.
    pub owner: Option<String>,
    /// True if the check passed and a person must approve the work.
    pub awaits_approval: bool,
    /// True if the work could not be undone and a person must decide.
    pub rollback_refused: bool,
    pub project: String,
    /// The time of creation of the latest version. `None` if the contract has another text there.
    pub created_at: Option<Timestamp>,
    /// The number of the contract in the index.
    pub(crate) number: i64,
    /// The offset of the line of the latest version.
    pub(crate) offset: u64,
}

/// The columns that [`Status::from_row`] reads.
pub(super) const COLUMNS: &str =
    "number, id, version, state, since, owner, awaits_approval, offset, rollback_refused, project, created_at";

impl Status {
    /// Returns the time since which the contract is in its state: of the last transition, or of its creation.
    pub fn in_state_since(&self) -> Option<Timestamp> {
        self.since.or(self.created_at)
    }

    pub(super) fn from_row(row: &Row<'_>) -> Result<Self> {
        let text = |index: usize| row.get::<_, String>(index);
        let invalid = |index, error: Box<dyn std::error::Error + Send + Sync>| {
            Error::FromSqlConversionFailure(index, Type::Text, error)
        };
        let time = |index: usize| -> Result<Option<Timestamp>> {
            let text = row.get::<_, Option<String>>(index)?;
            text.map(|it| it.parse()).transpose().map_err(|error: jiff::Error| invalid(index, Box::new(error)))
        };
        Ok(Self {
            number: row.get(0)?,
            id: text(1)?.parse().map_err(|error| invalid(1, Box::new(error)))?,
            version: NonZeroU32::new(row.get(2)?).unwrap_or(NonZeroU32::MIN),
            state: text(3)?.parse().map_err(|error| invalid(3, Box::new(error)))?,
            since: time(4)?,
            owner: row.get(5)?,
            awaits_approval: row.get(6)?,
            offset: row.get(7)?,
            rollback_refused: row.get(8)?,
            project: row.get(9)?,
            created_at: time(10)?,
        })
    }
}
