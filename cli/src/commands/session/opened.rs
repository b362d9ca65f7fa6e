//! The store of sessions of a command.

use counterproof_artifact::with_causes;
use counterproof_ledger::location::LedgerLocation;
use counterproof_sessions::recorder::{SessionSpool, recover};
use counterproof_sessions::store::{SessionStore, SessionSummary};

use crate::command_error::CommandError;
use crate::commands::ledger::{Place, failed};
use crate::streams::Streams;

pub(super) fn spool(place: &Place) -> SessionSpool {
    SessionSpool::new(place.spool.path())
}

/// Opens the sessions of a ledger for reading, with what recorders have left behind. Fails if there is no ledger.
pub(super) fn open(place: &Place, streams: &mut Streams) -> Result<SessionStore, CommandError> {
    let spool = spool(place);
    if spool.files().is_ok_and(|files| !files.is_empty()) {
        // Records wait for a ledger that could not be created before.
        drop(counterproof_ledger::open_or_create(&place.location).map_err(failed)?);
    }
    let ledger = place.open(streams)?;
    let is_read_only = ledger.is_read_only();
    let mut store = SessionStore::new(ledger).map_err(failed)?;
    if !is_read_only {
        recover_sessions(&mut store, place, streams);
    }
    Ok(store)
}

/// Adds what recorders have left behind.
pub(super) fn recover_sessions(store: &mut SessionStore, place: &Place, streams: &mut Streams) {
    let is_local = matches!(place.location, LedgerLocation::SqliteFile(_));
    // What the ledger has can be read all the same.
    if let Err(error) = recover(store, &spool(place), is_local) {
        streams.warn(format_args!("records that wait were not added: {}", with_causes(&error)));
    }
}

pub(super) fn find(store: &mut SessionStore, id: &str, place: &Place) -> Result<SessionSummary, CommandError> {
    store.find(id).map_err(failed)?.ok_or_else(|| unknown(id, place))
}

pub(super) fn unknown(id: &str, place: &Place) -> CommandError {
    CommandError::usage(format!("the ledger `{}` has no session `{id}`", place.location))
        .hint(format!("list the sessions with `counterproof session list{}`", place.option()))
}
