//! All checks of a ledger.

use super::check::Check;
use super::{events, permissions, waiting};
use crate::location::LedgerLocation;
use crate::spool::SpoolFolder;
use crate::store::EventStore;

/// Examines a ledger. Without a store, only its files are examined.
pub fn examine(location: &LedgerLocation, spool: &SpoolFolder, store: Option<&mut dyn EventStore>) -> Vec<Check> {
    let mut checks = Vec::new();
    if let Some(store) = store {
        match store.diagnose() {
            Ok(found) => checks.extend(found.into_iter().map(Check::from)),
            Err(error) => checks.push(Check::unusable(&error)),
        }
        checks.push(events::complete(store, location));
        checks.push(events::calls(store, location));
        checks.push(events::lost(store));
    }
    checks.push(waiting::spools(spool));
    checks.push(waiting::rejected(spool));
    checks.push(permissions::private(location, spool));
    checks
}
