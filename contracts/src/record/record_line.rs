//! The lines of a store.

use serde::{Deserialize, Serialize};

use super::note::Note;
use crate::contract::{Contract, ContractId};
use crate::lifecycle::Transition;

/// One line of a store.
#[derive(Debug, Clone, PartialEq)]
pub enum Record {
    /// A version of a contract.
    Contract(Box<Contract>),
    /// A change of its state.
    Transition(Box<Transition>),
    /// Something else that happened to it.
    Note(Note),
}

/// A line that is no record.
#[derive(Debug, thiserror::Error)]
pub enum RecordError {
    /// The line is not JSON, or has not the fields of its kind.
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

    /// Returns the contract that the record belongs to.
    pub fn id(&self) -> &ContractId {
        match self {
            Record::Contract(contract) => &contract.id,
            Record::Transition(transition) => &transition.id,
            Record::Note(note) => &note.id,
        }
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
