//! What a rollback would do, and how it ended.

use camino::Utf8Path;
use serde::{Deserialize, Serialize};

use super::snapshot::{Restored, SnapshotRefusal};
use crate::git::{self, Reset};
use crate::process::EvidenceFiles;

/// What a rollback would do.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RollbackPlan {
    /// These steps, in words. None if nothing differs.
    Steps(Vec<String>),
    Refused(RollbackRefusal),
}

/// A rollback that is refused. Nothing was changed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RollbackRefusal {
    /// The stable code of the reason.
    pub code: String,
    /// The reason, and what to do.
    pub reason: String,
}

/// How a rollback ended.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "outcome", rename_all = "snake_case")]
pub enum RollbackEnd {
    /// The work is undone.
    RolledBack {
        /// What was done, in words.
        done: Vec<String>,
        /// How to get back what was undone.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        way_back: Option<String>,
        /// The record of the command, for a custom rollback.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        evidence: Option<EvidenceFiles>,
    },
    /// Nothing was changed.
    Refused(RollbackRefusal),
    /// The command of a custom rollback failed, or was stopped.
    Failed {
        reason: String,
        /// The record of the command.
        evidence: EvidenceFiles,
    },
}

impl RollbackRefusal {
    /// Returns the refusal for an execution that recorded nothing to return to.
    pub(super) fn unavailable(reason: &str) -> Self {
        Self { code: "unavailable".to_owned(), reason: reason.to_owned() }
    }
}

impl RollbackEnd {
    /// Returns the end for a repository that was reset. `root` is its top folder.
    pub(super) fn from_reset(reset: &Reset, root: &Utf8Path) -> Self {
        RollbackEnd::RolledBack {
            done: vec![format!("discarded {}", reset.discarded.summary())],
            way_back: reset.way_back(root),
            evidence: None,
        }
    }
}

impl From<git::Refusal> for RollbackRefusal {
    fn from(refusal: git::Refusal) -> Self {
        Self { code: refusal.code().to_owned(), reason: refusal.to_string() }
    }
}

impl From<SnapshotRefusal> for RollbackRefusal {
    fn from(refusal: SnapshotRefusal) -> Self {
        Self { code: refusal.code().to_owned(), reason: refusal.to_string() }
    }
}

impl Restored {
    /// Returns what is done, in words, with `verbs` for putting back and for removing.
    fn steps(&self, verbs: (&str, &str)) -> Vec<String> {
        let named =
            |verb: &str, paths: &[String]| paths.iter().map(|path| format!("{verb} `{path}`")).collect::<Vec<_>>();
        let mut steps = named(verbs.1, &self.removed);
        steps.extend(named(verbs.0, &self.restored));
        steps
    }
}

impl From<Restored> for RollbackPlan {
    fn from(planned: Restored) -> Self {
        RollbackPlan::Steps(planned.steps(("restore", "remove")))
    }
}

impl From<Restored> for RollbackEnd {
    fn from(restored: Restored) -> Self {
        let done = restored.steps(("restored", "removed"));
        let not_saved = restored.not_saved.join("`, `");
        let except =
            if not_saved.is_empty() { String::new() } else { format!(", except for the special files `{not_saved}`") };
        let way_back = restored.saved.map(|folder| {
            format!("the files as they were before the rollback are in `{folder}/files`{except}; copy them back with `cp -a`")
        });
        RollbackEnd::RolledBack { done, way_back, evidence: None }
    }
}
