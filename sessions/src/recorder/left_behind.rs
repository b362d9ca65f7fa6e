//! What recorders left behind: records that wait, commands and calls of the guard that came late, and sessions whose recorder
//! was killed.

use camino::Utf8Path;

use super::guard_calls::absorb;
use super::spool::{SessionSpool, SpoolError};
use crate::observe::{recorded_commands, remove_recorded};
use crate::store::SessionStore;

/// Adds what recorders left behind, and marks the sessions whose recorder was killed. `is_local` states that all recorders of the
/// ledger ran on this machine.
pub fn recover(store: &mut SessionStore, spool: &SessionSpool, is_local: bool) -> Result<(), SpoolError> {
    // What can be added is added, also if something else cannot.
    let drained = spool.drain(store);
    for (session_id, version) in store.running()? {
        // Without a lock file, the recorder may run on another machine.
        if spool.is_running(&session_id).unwrap_or(!is_local) {
            continue;
        }
        add_commands(store, &session_id, &spool.commands_folder(&session_id))?;
        absorb(store, &session_id)?;
        store.set_interrupted(&session_id, version)?;
        // Last, so that a failure before it is repaired by the next command.
        spool.remove_lock(&session_id);
    }
    // Of sessions that have ended: the guard or `safe-run` stored them after the end.
    for session_id in store.with_new_guard_calls()? {
        absorb(store, &session_id)?;
    }
    let folders = spool.commands_folders();
    if !folders.is_empty() {
        for session_id in store.ended()? {
            let folder = spool.commands_folder(&session_id);
            if folders.contains(&folder) {
                add_commands(store, &session_id, &folder)?;
            }
        }
    }
    drained
}

fn add_commands(store: &mut SessionStore, session_id: &str, folder: &Utf8Path) -> Result<(), SpoolError> {
    let (files, events): (Vec<_>, Vec<_>) = recorded_commands(folder).into_iter().unzip();
    if !events.is_empty() {
        store.add(session_id, events)?;
        remove_recorded(&files);
    }
    // Only an empty folder is removed.
    let _ = std::fs::remove_dir(folder);
    Ok(())
}
