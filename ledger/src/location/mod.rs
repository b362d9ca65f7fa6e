//! Where a ledger is: a SQLite file, or a PostgreSQL database.

mod ledger_location;
mod postgres_url;
mod real_path;
mod state_folder;

pub use ledger_location::{LedgerLocation, LocationError};
pub use postgres_url::PostgresUrl;
pub use real_path::real_path;
pub use state_folder::{StateFolder, StateFolderError};
