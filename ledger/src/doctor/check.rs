//! A check and its outcome.

use counterproof_artifact::with_causes;
use serde::Serialize;

use crate::store::{Diagnosis, StoreError};

/// A check and its outcome.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Check {
    pub name: &'static str,
    pub found: String,
    /// What to do about it. `None` if all is well.
    pub remedy: Option<String>,
}

impl Check {
    /// States that a ledger cannot be opened.
    pub fn unusable(error: &StoreError) -> Self {
        let remedy = match error {
            StoreError::Missing { .. } => {
                "record calls with `counterproof guard`, or name another ledger with `--ledger`"
            }
            StoreError::Newer { .. } => "use the newer version of this program",
            StoreError::NotALedger { .. } => "name another file with `--ledger`",
            _ => "restore a backup, or move the file away; events that wait are added to a new one",
        };
        Self::problem("open", with_causes(error), remedy)
    }

    pub(super) fn well(name: &'static str, found: impl Into<String>) -> Self {
        Self { name, found: found.into(), remedy: None }
    }

    pub(super) fn problem(name: &'static str, found: impl Into<String>, remedy: impl Into<String>) -> Self {
        Self { name, found: found.into(), remedy: Some(remedy.into()) }
    }
}

impl From<Diagnosis> for Check {
    fn from(Diagnosis { name, found, remedy }: Diagnosis) -> Self {
        Self { name, found, remedy }
    }
}
