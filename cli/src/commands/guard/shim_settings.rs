//! Settings of shims that other subcommands pass on: the policy and the ledger.

use camino::{Utf8Path, Utf8PathBuf};
use counterproof_ledger::location::LedgerLocation;

use super::policy_file;
use crate::command_error::CommandError;
use crate::value_parsers::LedgerParser;

/// The policy and the ledger of shims.
#[derive(Debug, clap::Args)]
pub(super) struct ShimSettings {
    /// Policy of the shims, a JSON or YAML file. Without it, every call is allowed and recorded
    #[arg(long, value_name = "FILE")]
    policy: Option<Utf8PathBuf>,

    /// Ledger of the shims: a SQLite file, or a `postgres://` URL [default: ledger.db in the folder for state]
    #[arg(long, value_name = "FILE|URL", value_parser = LedgerParser)]
    ledger: Option<LedgerLocation>,
}

impl ShimSettings {
    /// Returns the absolute path of the policy, which is valid: with an invalid one no server would start.
    pub(super) fn policy(&self) -> Result<Option<Utf8PathBuf>, CommandError> {
        let Some(path) = &self.policy else { return Ok(None) };
        policy_file::load(path)?;
        absolute(path).map(Some)
    }

    /// Returns the ledger with an absolute path.
    pub(super) fn ledger(&self) -> Result<Option<LedgerLocation>, CommandError> {
        match &self.ledger {
            Some(LedgerLocation::SqliteFile(path)) => Ok(Some(LedgerLocation::SqliteFile(absolute(path)?))),
            ledger => Ok(ledger.clone()),
        }
    }
}

/// The shims run in other folders.
fn absolute(path: &Utf8Path) -> Result<Utf8PathBuf, CommandError> {
    let absolute =
        std::path::absolute(path).map_err(|error| CommandError::io(format!("cannot resolve `{path}`: {error}")))?;
    Utf8PathBuf::from_path_buf(absolute)
        .map_err(|_| CommandError::usage(format!("the folder of `{path}` is not valid UTF-8")))
}
