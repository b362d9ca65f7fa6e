//! Group commit of folder entries: one sync for all threads that wait for the same folder.
//!
//! A synced write waits for the disk twice: for the file and for the folder that lists it. The system already joins
//! concurrent syncs of files; this type joins the syncs of the folder. A thread that arrives during a sync waits for the
//! next one, which covers all threads that wait by then, as databases do when they commit transactions in groups. A single
//! thread syncs at once.

use std::io;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};

use camino::Utf8Path;

use super::RepeatableError;

/// A folder that many threads write into: concurrent syncs of its entries are joined.
#[derive(Debug, Default)]
pub struct SharedFolder {
    state: Mutex<State>,
    ended: Condvar,
}

#[derive(Debug, Default)]
struct State {
    /// Syncs started so far, and how many of them have ended.
    started: u64,
    ended: u64,
    /// The first failure, which every later call returns. A later sync that succeeds would hide that entries are lost: the
    /// system reports a write error only once.
    failed: Option<RepeatableError>,
    /// Number of waiting threads, for tests.
    #[cfg(test)]
    waiting: usize,
}

impl SharedFolder {
    /// Syncs the entries of the folder. Returns once a sync that started after this call has ended.
    pub(super) fn sync(&self, folder: &Utf8Path) -> io::Result<()> {
        self.sync_by(|| super::folders::sync_folder(folder))
    }

    fn sync_by(&self, sync: impl FnOnce() -> io::Result<()>) -> io::Result<()> {
        let mut state = self.lock();
        let wanted = state.started + 1;
        while state.ended < wanted && state.started > state.ended {
            #[cfg(test)]
            {
                state.waiting += 1;
            }
            state = self.ended.wait(state).unwrap_or_else(PoisonError::into_inner);
            #[cfg(test)]
            {
                state.waiting -= 1;
            }
        }
        if state.ended < wanted && state.failed.is_none() {
            state.started += 1;
            drop(state);
            let result = sync();
            state = self.lock();
            state.ended += 1;
            if let Err(error) = result {
                state.failed = Some((&error).into());
            }
            self.ended.notify_all();
        }
        state.failed.as_ref().map_or(Ok(()), |failure| Err(failure.into()))
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};
    use std::sync::mpsc::channel;
    use std::thread;

    use super::*;

    #[test]
    fn every_caller_waits_for_a_sync_that_began_after_its_call() {
        let (shared, begun, syncs) = (SharedFolder::default(), AtomicUsize::new(0), AtomicUsize::new(0));
        thread::scope(|scope| {
            for _ in 0..8 {
                scope.spawn(|| {
                    for _ in 0..200 {
                        let before = begun.load(Ordering::SeqCst);
                        shared
                            .sync_by(|| {
                                begun.fetch_add(1, Ordering::SeqCst);
                                thread::yield_now();
                                syncs.fetch_add(1, Ordering::SeqCst);
                                Ok(())
                            })
                            .unwrap();
                        // Syncs run one at a time, so more have ended than had begun before this call.
                        assert!(syncs.load(Ordering::SeqCst) > before);
                    }
                });
            }
        });
        assert!(syncs.into_inner() <= 8 * 200);
    }

    #[test]
    fn callers_that_wait_at_the_same_time_share_one_sync() {
        let (shared, syncs) = (SharedFolder::default(), AtomicUsize::new(0));
        let (entered, first_is_in) = channel();
        let (release, released) = channel::<()>();
        let count = || {
            syncs.fetch_add(1, Ordering::SeqCst);
            Ok(())
        };
        thread::scope(|scope| {
            let shared = &shared;
            scope.spawn(move || {
                shared
                    .sync_by(|| {
                        entered.send(()).unwrap();
                        released.recv().map_err(io::Error::other)
                    })
                    .unwrap();
            });
            first_is_in.recv().unwrap();
            let waiting: Vec<_> = (0..4).map(|_| scope.spawn(|| shared.sync_by(count).unwrap())).collect();
            while shared.lock().waiting < 4 {
                thread::yield_now();
            }
            release.send(()).unwrap();
            for thread in waiting {
                thread.join().unwrap();
            }
        });
        assert_eq!(syncs.into_inner(), 1);
    }

    #[test]
    fn a_failure_is_returned_to_every_later_caller() {
        let shared = SharedFolder::default();
        let full = || Err(io::ErrorKind::StorageFull.into());
        assert_eq!(shared.sync_by(full).unwrap_err().kind(), io::ErrorKind::StorageFull);
        assert_eq!(shared.sync_by(|| Ok(())).unwrap_err().kind(), io::ErrorKind::StorageFull);
    }
}
