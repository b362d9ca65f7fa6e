//! Moves the events of ended processes to the store.

use counterproof_store::line_log::LineLog;

use super::{DeadSpool, SpoolError, SpoolFolder, Step};
use crate::store::EventStore;

/// The outcome of [`replay`].
#[derive(Debug, Default)]
pub struct Replayed {
    /// Number of spool files that were moved.
    pub files: u64,
    /// Number of events that were added to the store.
    pub added: u64,
    /// Number of invalid lines. They are in files of their own next to the spool files.
    pub rejected: u64,
    /// Files that cannot be read or locked. They stay.
    pub failures: Vec<SpoolError>,
}

/// Moves the events of all spool files whose processes have ended to the store, and removes the files. Repeating it has no effect.
pub fn replay(folder: &SpoolFolder, store: &mut dyn EventStore) -> Result<Replayed, SpoolError> {
    let mut replayed = Replayed::default();
    for log in folder.files()? {
        match replay_file(folder, &log, store, &mut replayed) {
            Err(SpoolError::Store(error)) => return Err(SpoolError::Store(error)),
            Err(failure) => replayed.failures.push(failure),
            Ok(()) => {}
        }
    }
    Ok(replayed)
}

fn replay_file(
    folder: &SpoolFolder,
    log: &LineLog,
    store: &mut dyn EventStore,
    replayed: &mut Replayed,
) -> Result<(), SpoolError> {
    let mut spool = DeadSpool::take(folder, log)?;
    while let Some(dead) = spool {
        let (rest, step) = dead.step(store)?;
        spool = rest;
        match step {
            Step::Moved(appended) => replayed.added += appended.added,
            Step::Done { rejected } => {
                replayed.files += 1;
                replayed.rejected += rejected;
            }
        }
    }
    Ok(())
}
