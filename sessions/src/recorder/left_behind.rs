//! Sessions whose recorder was killed: what it left behind is added, and the session is marked as interrupted.

use super::guard_calls::absorb;
use super::spool::{SessionSpool, SpoolError};
use crate::observe::{recorded_commands, remove_recorded};
use crate::session::SessionStatus;
use crate::store::SessionStore;

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Settled {
    /// Files with records that were added.
    pub files: u64,
    /// Sessions that were marked.
    pub interrupted: u64,
}

/// Adds what recorders left behind. `is_local` states that all recorders of the ledger ran on this machine.
pub fn settle(store: &mut SessionStore, spool: &SessionSpool, is_local: bool) -> Result<Settled, SpoolError> {
    let mut settled = Settled { files: spool.drain(store)?, interrupted: 0 };
    for session_id in store.running()? {
        let is_running = spool.is_running(&session_id);
        // Without a lock file, the recorder may run on another machine.
        if is_running.unwrap_or(!is_local) {
            continue;
        }
        let folder = spool.commands_folder(&session_id);
        let (files, events): (Vec<_>, Vec<_>) = recorded_commands(&folder).into_iter().unzip();
        if !events.is_empty() {
            store.add(&session_id, events)?;
            remove_recorded(&files);
        }
        // Only an empty folder is removed.
        let _ = std::fs::remove_dir(&folder);
        absorb(store, &session_id)?;
        store.set_status(&session_id, SessionStatus::Interrupted)?;
        settled.interrupted += 1;
    }
    Ok(settled)
}
