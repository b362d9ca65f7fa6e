//! The index of a store: ids to lines, and the state of each contract. It contains nothing that the lines do not.

mod apply;
mod by_age;
mod catch_up;
mod coverage;
mod database;
mod error;
mod queries;
mod status;

use std::cell::RefCell;

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
    log: LineLog,
    /// Replaced where the index is damaged.
    connection: RefCell<Connection>,
}

impl Index {
    /// Opens the index of a log. Where its file cannot be created, the index is in memory, and each opening reads all lines.
    pub(crate) fn open(log: &LineLog) -> Result<Self, IndexError> {
        let path = Utf8PathBuf::from(format!("{}.index", log.path()));
        let connection = database::open(&path, log.path()).map_err(IndexError::database(&path))?;
        Ok(Self { path, log: log.clone(), connection: RefCell::new(connection) })
    }

    /// Reads from the index. A damaged index is rebuilt once.
    fn query<T>(&self, read: impl Fn(&Connection) -> rusqlite::Result<T>) -> Result<T, IndexError> {
        let result = read(&self.connection.borrow());
        match result {
            Err(error) if error::is_damage(&error) => {
                self.rebuild()?;
                read(&self.connection.borrow()).map_err(self.error())
            }
            other => other.map_err(self.error()),
        }
    }

    /// Empties a damaged index, and reads all lines again.
    fn rebuild(&self) -> Result<(), IndexError> {
        // The damaged file is closed first.
        let memory = Connection::open_in_memory().map_err(self.error())?;
        drop(self.connection.replace(memory));
        let connection = database::reset(&self.path, self.log.path()).map_err(self.error())?;
        self.connection.replace(connection);
        self.update()
    }

    fn error(&self) -> impl FnOnce(rusqlite::Error) -> IndexError + use<> {
        IndexError::database(&self.path)
    }
}
