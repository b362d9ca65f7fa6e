//! The lines of a store: contracts, transitions and notes.

use std::num::NonZeroU32;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::Map;

use crate::contract::{Contract, ContractId};
use crate::lifecycle::{Actor, Details, State, Transition};

/// Something that happened to one version of a contract and did not change its state.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Note {
    pub id: ContractId,
    pub version: NonZeroU32,
    pub at: Timestamp,
    pub actor: Actor,
    pub kind: NoteKind,
    pub reason: String,
    #[serde(default, skip_serializing_if = "Map::is_empty")]
    pub details: Details,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum NoteKind {
    /// The check passed, and a person must approve the work.
    ApprovalRequested,
    /// The rollback was refused or failed, so a person must decide.
    NotRolledBack,
}

#[derive(Debug, Clone, PartialEq)]
pub enum Record {
    Contract(Box<Contract>),
    Transition(Box<Transition>),
    Note(Note),
}

#[derive(Debug, thiserror::Error)]
pub enum RecordError {
    #[error("{0}")]
    Json(#[from] serde_json::Error),
    /// A kind of record that this program does not know.
    #[error("`{0}` is not a known kind of record; a newer program may have written it")]
    UnknownKind(String),
}

/// The field that distinguishes the kinds.
#[derive(Deserialize)]
struct Tag {
    #[serde(default)]
    record: Option<String>,
}

/// A record with the field that names its kind.
#[derive(Serialize)]
struct Tagged<'a, T> {
    record: &'static str,
    #[serde(flatten)]
    body: &'a T,
}

impl Record {
    /// The kinds of records, as the field `record` names them. A contract has no such field.
    pub(crate) const TRANSITION: &str = "transition";
    pub(crate) const NOTE: &str = "note";

    /// Parses a line. The line has no newline.
    pub fn parse(line: &[u8]) -> Result<Self, RecordError> {
        // Two passes instead of an untagged enum, whose errors do not name the field that is wrong.
        let tag: Tag = serde_json::from_slice(line)?;
        Ok(match tag.record.as_deref() {
            None => Record::Contract(serde_json::from_slice(line)?),
            Some(Self::TRANSITION) => Record::Transition(serde_json::from_slice(line)?),
            Some(Self::NOTE) => Record::Note(serde_json::from_slice(line)?),
            Some(other) => return Err(RecordError::UnknownKind(other.to_owned())),
        })
    }

    /// Appends the record as a line, with its newline.
    pub fn write_to(&self, lines: &mut Vec<u8>) -> Result<(), serde_json::Error> {
        match self {
            Record::Contract(contract) => serde_json::to_writer(&mut *lines, contract)?,
            Record::Transition(body) => serde_json::to_writer(&mut *lines, &Tagged { record: Self::TRANSITION, body })?,
            Record::Note(body) => serde_json::to_writer(&mut *lines, &Tagged { record: Self::NOTE, body })?,
        }
        lines.push(b'\n');
        Ok(())
    }

    pub fn id(&self) -> &ContractId {
        match self {
            Record::Contract(contract) => &contract.id,
            Record::Transition(transition) => &transition.id,
            Record::Note(note) => &note.id,
        }
    }
}

/// All versions of a contract, oldest first.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct History {
    pub versions: Vec<VersionHistory>,
}

#[derive(Debug, Clone, PartialEq)]
pub struct VersionHistory {
    pub contract: Contract,
    /// Its transitions and notes, in the order of the file.
    pub records: Vec<Record>,
}

impl History {
    pub(super) fn push(&mut self, record: Record) {
        // A checked store has no record before the first version, so such a record is dropped.
        match record {
            Record::Contract(contract) => {
                self.versions.push(VersionHistory { contract: *contract, records: Vec::new() });
            }
            other => {
                if let Some(last) = self.versions.last_mut() {
                    last.records.push(other);
                }
            }
        }
    }

    pub fn latest(&self) -> Option<&VersionHistory> {
        self.versions.last()
    }

    pub(super) fn into_version(mut self, version: Option<NonZeroU32>) -> Option<VersionHistory> {
        let index = match version {
            // The file has the versions in ascending order, so the last one is the latest.
            None => self.versions.len().checked_sub(1),
            Some(version) => self.versions.iter().position(|it| it.contract.version == version),
        };
        index.map(|index| self.versions.swap_remove(index))
    }

    pub fn version(&self, version: u32) -> Option<&VersionHistory> {
        self.versions.iter().find(|it| it.contract.version.get() == version)
    }
}

impl VersionHistory {
    /// Returns the transitions, oldest first.
    pub fn transitions(&self) -> impl DoubleEndedIterator<Item = &Transition> {
        self.records.iter().filter_map(|record| match record {
            Record::Transition(transition) => Some(&**transition),
            Record::Contract(_) | Record::Note(_) => None,
        })
    }

    /// Returns the notes since the last transition, oldest first.
    pub fn open_notes(&self) -> impl Iterator<Item = &Note> {
        // A transition settles the notes before it.
        let start = self.records.iter().rposition(|record| matches!(record, Record::Transition(_)));
        self.records[start.map_or(0, |index| index + 1)..].iter().filter_map(|record| match record {
            Record::Note(note) => Some(note),
            Record::Contract(_) | Record::Transition(_) => None,
        })
    }

    pub fn state(&self) -> State {
        self.transitions().next_back().map_or(State::Pending, |transition| transition.to)
    }

    /// Returns the owner, from the last claim. The owner of a contract that was given back is `None`.
    pub fn owner(&self) -> Option<&str> {
        // `Ready` too: it gives the contract back, and has no owner.
        let last = self.transitions().rev().find(|it| matches!(it.to, State::Claimed | State::Ready))?;
        last.owner.as_deref()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_without_a_kind_is_a_contract_and_an_unknown_kind_is_an_error() {
        let text = r#"{"record":"transition","id":"a","version":1,"from":"running","to":"verifying","at":"2026-01-01T00:00:00Z","actor":"agent:x","reason":"done"}"#;
        let record = Record::parse(text.as_bytes()).unwrap();
        let mut lines = Vec::new();
        record.write_to(&mut lines).unwrap();
        assert_eq!(String::from_utf8(lines).unwrap(), text.replace("running", "executing") + "\n");
        let error = Record::parse(br#"{"record":"vote","id":"a"}"#).unwrap_err();
        assert_eq!(error.to_string(), "`vote` is not a known kind of record; a newer program may have written it");
        assert!(matches!(Record::parse(br#"{"id":"a"}"#), Err(RecordError::Json(_))));
    }
}
