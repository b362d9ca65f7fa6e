//! One folder that many threads write files into: its entries are synced for all of them at once.
//!
//! A synced write waits for the disk twice: for the file, and for the folder that lists it. The system already joins
//! the file syncs of threads that wait at the same time; this joins the folder syncs. Whoever comes while one is under way
//! waits for the next, which serves all who wait by then, as databases commit their transactions in groups. Nobody waits
//! for company: a thread by itself syncs at once.

use std::io;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};

use camino::Utf8Path;

/// The entries of one folder, synced in groups.
#[derive(Debug, Default)]
pub struct SharedFolder {
    state: Mutex<State>,
    ended: Condvar,
}

#[derive(Debug, Default)]
struct State {
    /// Syncs that were started so far, and of these, how many have ended.
    started: u64,
    ended: u64,
    /// The first failure. What it left undone stays undone, and a later sync would not tell: it is the answer from then on.
    failed: Option<Failure>,
    /// How many wait, for tests to see.
    #[cfg(test)]
    waiting: usize,
}

#[derive(Debug, Clone, Copy)]
struct Failure {
    kind: io::ErrorKind,
    os_code: Option<i32>,
}

impl SharedFolder {
    /// Returns once a sync that was started after this call has ended.
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
                state.failed = Some(Failure { kind: error.kind(), os_code: error.raw_os_error() });
            }
            self.ended.notify_all();
        }
        match state.failed {
            Some(failure) => Err(failure.os_code.map_or_else(|| failure.kind.into(), io::Error::from_raw_os_error)),
            None => Ok(()),
        }
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
    fn every_caller_is_served_by_a_sync_that_began_after_it_came() {
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
                        // One after another, so as many have ended only if one did that began after we came.
                        assert!(syncs.load(Ordering::SeqCst) > before);
                    }
                });
            }
        });
        assert!(syncs.into_inner() <= 8 * 200);
    }

    #[test]
    fn those_who_wait_at_the_same_time_share_one_sync() {
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
    fn a_failure_is_told_to_everyone_from_then_on() {
        let shared = SharedFolder::default();
        let full = || Err(io::ErrorKind::StorageFull.into());
        assert_eq!(shared.sync_by(full).unwrap_err().kind(), io::ErrorKind::StorageFull);
        assert_eq!(shared.sync_by(|| Ok(())).unwrap_err().kind(), io::ErrorKind::StorageFull);
    }
}
