//! The store: contracts and their transitions in one append-only JSON Lines file, with an index that can always be rebuilt.
//!
//! Each version of a contract is one line with the fields of the contract. Every other line has a field `record`, which
//! names its kind: a transition or a note. The file alone is the truth. The index next to it maps ids to lines; it is
//! updated from the lines that it does not cover yet, and rebuilt if it does not match the file.

mod compact;
mod cycle;
mod editor;
mod error;
mod history;
mod reading;

use camino::{Utf8Path, Utf8PathBuf};
use counterproof_store::line_log::LineLog;

pub(crate) use cycle::find_cycle;
pub(crate) use error::path as path_of_ids;

pub use crate::index::{Contradiction, IndexError, Status};
pub use crate::record::{Note, NoteKind, Record, RecordError};
pub use compact::{Compacted, CompactionPlan};
pub use editor::{Added, Editor, NewTransition, Then};
pub use error::StoreError;
pub use history::{History, VersionHistory};

use crate::index::Index;

/// The contracts of a project.
#[derive(Debug)]
pub struct Store {
    log: LineLog,
    index: Index,
}

impl Store {
    /// Opens the store whose lines are in this file. The file and its folder need not exist yet.
    pub fn open(path: impl Into<Utf8PathBuf>) -> Result<Self, StoreError> {
        let log = LineLog::new(path);
        let index = Index::open(&log)?;
        Ok(Self { log, index })
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
