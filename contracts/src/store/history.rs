//! Everything that is stored about one contract.

use std::num::NonZeroU32;

use super::{Note, Record};
use crate::contract::Contract;
use crate::lifecycle::{State, Transition};

/// All versions of a contract, oldest first.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct History {
    pub versions: Vec<VersionHistory>,
}

/// One version of a contract and what happened to it.
#[derive(Debug, Clone, PartialEq)]
pub struct VersionHistory {
    pub contract: Contract,
    /// Its transitions and notes, in the order of the file.
    pub records: Vec<Record>,
}

impl History {
    /// Adds the next record of the contract. Records before the first version are dropped, because a checked store has none.
    pub(super) fn push(&mut self, record: Record) {
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

    /// Returns a version, or the latest one.
    pub(super) fn into_version(mut self, version: Option<NonZeroU32>) -> Option<VersionHistory> {
        let index = match version {
            None => self.versions.len().checked_sub(1),
            Some(version) => self.versions.iter().position(|it| it.contract.version == version),
        };
        index.map(|index| self.versions.swap_remove(index))
    }

    /// Returns a version by its number.
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
        let last = self.transitions().rev().find(|it| matches!(it.to, State::Claimed | State::Ready))?;
        last.owner.as_deref()
    }
}
