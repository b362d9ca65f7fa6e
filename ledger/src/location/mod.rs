//! Where a ledger is: a SQLite file, or a PostgreSQL database.

mod ledger_location;
mod state_folder;

pub use ledger_location::{LedgerLocation, LocationError, PostgresUrl};
pub use state_folder::{StateFolder, StateFolderError};
