//! A transition as it is stored.

use std::num::NonZeroU32;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::{Actor, State};
use crate::contract::ContractId;

/// Evidence of a transition, such as the outcome of the verification. Its fields depend on the transition.
pub type Details = Map<String, Value>;

/// A change of the state of one version of a contract.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Transition {
    pub id: ContractId,
    pub version: NonZeroU32,
    pub from: State,
    pub to: State,
    /// The time.
    pub at: Timestamp,
    /// Who made it.
    pub actor: Actor,
    /// Why it was made.
    pub reason: String,
    /// The new owner, for transitions to [`State::Claimed`].
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub owner: Option<String>,
    /// The evidence.
    #[serde(default, skip_serializing_if = "Map::is_empty")]
    pub details: Details,
}
