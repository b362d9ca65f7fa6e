//! Adds records to the index, in the order of the file. A record that contradicts the earlier ones is refused.

use jiff::Timestamp;
use rusqlite::{Connection, params};

use super::error::Contradiction;
use super::queries::status;
use super::status::Status;
use crate::contract::Contract;
use crate::lifecycle::{State, StateChange, Transition};
use crate::record::{Note, NoteKind, Record};

/// A record that cannot be added.
#[derive(Debug)]
pub(super) enum ApplyError {
    Database(rusqlite::Error),
    Contradiction(Contradiction),
}

impl From<rusqlite::Error> for ApplyError {
    fn from(error: rusqlite::Error) -> Self {
        ApplyError::Database(error)
    }
}

/// Adds the record whose line starts at `offset`.
pub(super) fn apply(connection: &Connection, record: &Record, offset: u64) -> Result<(), ApplyError> {
    let offset = i64::try_from(offset).unwrap_or(i64::MAX);
    let before = status(connection, record.id())?;
    let number = match (record, before) {
        (Record::Contract(contract), before) => add_version(connection, contract, before.as_ref(), offset)?,
        (other, None) => {
            return Err(ApplyError::Contradiction(Contradiction::NoContract(other.id().clone())));
        }
        (Record::Transition(transition), Some(before)) => change_state(connection, transition, &before)?,
        (Record::Note(note), Some(before)) => add_note(connection, note, &before)?,
    };
    let text = "INSERT INTO line (contract, offset) VALUES (?1, ?2)";
    connection.prepare_cached(text)?.execute(params![number, offset])?;
    Ok(())
}

fn add_version(
    connection: &Connection,
    contract: &Contract,
    before: Option<&Status>,
    offset: i64,
) -> Result<i64, ApplyError> {
    let version = contract.version.get();
    if let Some(before) = before
        && version <= before.version.get()
    {
        let (id, version, latest) = (contract.id.clone(), contract.version, before.version);
        return Err(ApplyError::Contradiction(Contradiction::Version { id, version, latest }));
    }
    let text =
        "INSERT INTO contract (id, version, state, awaits_approval, rollback_refused, offset, project, created_at)
                VALUES (?1, ?2, ?3, 0, 0, ?4, ?5, ?6)
                ON CONFLICT (id) DO UPDATE SET
                    version = ?2, state = ?3, since = NULL, owner = NULL, awaits_approval = 0, rollback_refused = 0,
                    offset = ?4, project = ?5, created_at = ?6
                RETURNING number";
    let (state, project) = (State::Pending.as_str(), contract.project());
    let created_at = contract.created_at.parse().ok().map(time);
    let values = params![contract.id.as_str(), version, state, offset, project, created_at];
    let number: i64 = connection.prepare_cached(text)?.query_row(values, |row| row.get(0))?;
    if before.is_some() {
        connection.prepare_cached("DELETE FROM dependency WHERE contract = ?1")?.execute([number])?;
    }
    for dependency in contract.dependencies() {
        let text = "INSERT OR IGNORE INTO dependency (dependency, contract) VALUES (?1, ?2)";
        connection.prepare_cached(text)?.execute(params![dependency.as_str(), number])?;
    }
    Ok(number)
}

fn change_state(connection: &Connection, transition: &Transition, before: &Status) -> Result<i64, ApplyError> {
    let Transition { from, to, .. } = *transition;
    let id = || transition.id.clone();
    let contradiction = if transition.version != before.version {
        Some(Contradiction::OtherVersion { id: id(), version: transition.version, latest: before.version })
    } else if from != before.state {
        Some(Contradiction::OtherState { id: id(), from, state: before.state })
    } else if !StateChange::targets(from).any(|target| target == to) {
        Some(Contradiction::InvalidTransition { id: id(), from, to })
    } else {
        None
    };
    if let Some(contradiction) = contradiction {
        return Err(ApplyError::Contradiction(contradiction));
    }
    let owner = match to {
        State::Claimed | State::Ready => transition.owner.clone(),
        _ => before.owner.clone(),
    };
    let text = "UPDATE contract SET state = ?2, since = ?3, owner = ?4, awaits_approval = 0, rollback_refused = 0
                WHERE number = ?1";
    let values = params![before.number, to.as_str(), time(transition.at), owner];
    connection.prepare_cached(text)?.execute(values)?;
    Ok(before.number)
}

fn add_note(connection: &Connection, note: &Note, before: &Status) -> Result<i64, ApplyError> {
    if note.version == before.version {
        let text = match note.kind {
            NoteKind::ApprovalRequested => "UPDATE contract SET awaits_approval = 1 WHERE number = ?1",
            NoteKind::NotRolledBack => "UPDATE contract SET rollback_refused = 1 WHERE number = ?1",
        };
        connection.prepare_cached(text)?.execute([before.number])?;
    }
    Ok(before.number)
}

/// Returns a time as a text whose order is that of the times.
fn time(at: Timestamp) -> String {
    format!("{at:.9}")
}
