//! Notes: what happened to a contract without a change of its state.

use std::num::NonZeroU32;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::Map;

use crate::contract::ContractId;
use crate::lifecycle::{Actor, Details};

/// Something that happened to one version of a contract and did not change its state.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Note {
    pub id: ContractId,
    pub version: NonZeroU32,
    /// The time.
    pub at: Timestamp,
    /// Who reports it.
    pub actor: Actor,
    /// What happened.
    pub kind: NoteKind,
    /// The details, in one sentence.
    pub reason: String,
    /// The evidence.
    #[serde(default, skip_serializing_if = "Map::is_empty")]
    pub details: Details,
}

/// What happened.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum NoteKind {
    /// The check passed, and a person must approve the work.
    ApprovalRequested,
    /// The rollback was refused or failed, so a person must decide.
    NotRolledBack,
}
