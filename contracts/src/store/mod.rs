//! The store: contracts and their transitions in one append-only JSON Lines file.
//!
//! Each version of a contract is one line with the fields of the contract. Every other line has a field `record`, which
//! names its kind: a transition or a note. A command reads the whole file once for the states, and single lines in full.

mod compact;
mod cycle;
mod editor;
mod error;
mod history;
mod reading;
mod states;

use std::cell::RefCell;

use camino::{Utf8Path, Utf8PathBuf};
use counterproof_store::line_log::LineLog;

pub(crate) use cycle::find_cycle;
pub(crate) use error::path as path_of_ids;

pub use crate::record::{Note, NoteKind, Record, RecordError};
pub use compact::{Compacted, CompactionPlan};
pub use editor::{Added, Editor, NewTransition, Then};
pub use error::{Contradiction, StoreError};
pub use history::{History, VersionHistory};
pub use states::Status;

use states::States;

/// The contracts of a project.
#[derive(Debug)]
pub struct Store {
    log: LineLog,
    states: RefCell<States>,
}

impl Store {
    /// Names the store whose lines are in this file. The file and its folder need not exist yet.
    pub fn new(path: impl Into<Utf8PathBuf>) -> Self {
        Self { log: LineLog::new(path), states: RefCell::default() }
    }

    /// Returns the path of the file.
    pub fn path(&self) -> &Utf8Path {
        self.log.path()
    }

    /// Returns the folder for evidence and snapshots, which belongs to the store. It need not exist.
    pub fn files_folder(&self) -> Utf8PathBuf {
        format!("{}.files", self.path()).into()
    }
}
