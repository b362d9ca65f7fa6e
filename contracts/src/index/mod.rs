//! The index of a store: ids to lines, and the state of each contract. It contains nothing that the lines do not.

mod apply;
mod by_age;
mod catch_up;
mod coverage;
mod database;
mod error;
mod queries;
mod status;

use camino::Utf8PathBuf;
use counterproof_store::line_log::LineLog;
use rusqlite::Connection;

pub(crate) use by_age::{AgeOrder, AgeQuery};
pub(crate) use catch_up::{Appended, line_number};
pub use error::{Contradiction, IndexError};
pub use status::Status;

/// An open index.
#[derive(Debug)]
pub(crate) struct Index {
    path: Utf8PathBuf,
    connection: Connection,
}

impl Index {
    /// Opens the index of a log. Where its file cannot be created, the index is in memory, and each opening reads all lines.
    pub(crate) fn open(log: &LineLog) -> Result<Self, IndexError> {
        let path = Utf8PathBuf::from(format!("{}.index", log.path()));
        let connection = database::open(&path, log.path().exists()).map_err(IndexError::database(&path))?;
        Ok(Self { path, connection })
    }

    fn error(&self) -> impl FnOnce(rusqlite::Error) -> IndexError + use<> {
        IndexError::database(&self.path)
    }
}
